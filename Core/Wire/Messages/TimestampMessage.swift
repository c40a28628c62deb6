import HearthModel

/// google.protobuf.Timestamp in wire form: in nanoseconds, and possibly out of range.
///
/// Messages use this form because some requests must fail for a time finer than a microsecond, which
/// `HearthModel.Timestamp` cannot represent: use `preciseTimestamp()` for those, and `timestamp()` where a time is
/// rounded down.
package struct TimestampMessage: WireMessage, Hashable {
    package var seconds: Int64
    package var nanos: Int32

    package init() {
        seconds = 0
        nanos = 0
    }

    package init(seconds: Int64, nanos: Int32 = 0) {
        self.seconds = seconds
        self.nanos = nanos
    }

    package init(_ timestamp: Timestamp) {
        seconds = timestamp.seconds
        nanos = Int32(truncatingIfNeeded: timestamp.nanoseconds)
    }

    package static let typeName = "google.protobuf.Timestamp"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.int64(1, "seconds", &seconds)
        try visitor.int32(2, "nanos", &nanos)
    }

    package mutating func decode(_ decoder: inout JSONFieldDecoder) throws(Status) {
        self = try decoder.readTimestamp()
    }

    package func encode(_ encoder: inout JSONFieldEncoder) {
        encoder.writer.timestamp(seconds: seconds, nanoseconds: nanos)
    }

    /// Whether the time has a part below a microsecond.
    package var isFinerThanMicroseconds: Bool { nanos % 1000 != 0 }

    /// The time in whole microseconds, rounded down.
    /// - Throws: INVALID_ARGUMENT outside of years 1 to 9999.
    package func timestamp() throws(Status) -> Timestamp {
        guard let timestamp = Timestamp(seconds: seconds, nanoseconds: Int64(nanos)) else { throw Self.outOfRange() }
        return timestamp
    }

    /// The time, which must be in whole microseconds.
    /// - Throws: `INVALID_ARGUMENT` when it is finer, or outside of years 1 to 9999.
    package func preciseTimestamp() throws(Status) -> Timestamp {
        if isFinerThanMicroseconds {
            throw .invalidArgument("timestamp cannot have more than microseconds precision")
        }
        return try timestamp()
    }

    @inline(never)
    private static func outOfRange() -> Status {
        .invalidArgument(
            "A timestamp must lie between 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999999Z inclusive, "
                + "with nanos between 0 and 999999999.")
    }
}
