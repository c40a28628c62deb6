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

/// google.protobuf.Duration. Both parts have the same sign.
package struct DurationMessage: WireMessage, Hashable {
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

    package static let typeName = "google.protobuf.Duration"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.int64(1, "seconds", &seconds)
        try visitor.int32(2, "nanos", &nanos)
    }

    package mutating func decode(_ decoder: inout JSONFieldDecoder) throws(Status) {
        self = try decoder.readDuration()
    }

    package func encode(_ encoder: inout JSONFieldEncoder) {
        encoder.writer.string(string)
    }

    /// `1.5s`, with 0, 3, 6 or 9 fraction digits.
    package var string: String {
        var result: [UInt8] = seconds < 0 || nanos < 0 ? [UInt8(ascii: "-")] : []
        result.append(contentsOf: String(seconds.magnitude).utf8)
        RFC3339.appendFraction(Int32(clamping: nanos.magnitude), to: &result)
        result.append(UInt8(ascii: "s"))
        return String(decoding: result, as: UTF8.self)
    }

    /// Parses `1.5s`: up to nine fraction digits, at most 10,000 years.
    package init?(parsing string: String) {
        var rest = Substring(string)
        guard rest.utf8.last == UInt8(ascii: "s") else { return nil }
        rest.removeLast()
        let isNegative = rest.utf8.first == UInt8(ascii: "-")
        if isNegative { rest.removeFirst() }
        let parts = rest.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts.first, Self.isDigits(whole), let seconds = Int64(Substring(whole)),
            seconds <= 315_576_000_000
        else { return nil }
        var nanos: Int32 = 0
        if parts.count == 2 {
            guard Self.isDigits(parts[1]), parts[1].count <= 9,
                let number = Int32(String(Substring(parts[1])) + String(repeating: "0", count: 9 - parts[1].count))
            else { return nil }
            nanos = number
        }
        self.init(seconds: isNegative ? -seconds : seconds, nanos: isNegative ? -nanos : nanos)
    }

    private static func isDigits(_ digits: Substring.UTF8View) -> Bool {
        !digits.isEmpty && digits.allSatisfy { $0 &- UInt8(ascii: "0") < 10 }
    }
}

/// google.protobuf.Empty
package struct EmptyMessage: WireMessage {
    package init() {}

    package static let typeName = "google.protobuf.Empty"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
}
