import HearthModel

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
