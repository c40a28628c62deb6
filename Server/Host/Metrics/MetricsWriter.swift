import HearthWire

/// Writes metrics in the text format that Prometheus reads. Source: "Exposition formats", text format 0.0.4.
package struct MetricsWriter {
    package enum Kind: String {
        case counter
        case gauge
        case histogram
    }

    package typealias Labels = [(name: String, value: String)]

    private(set) var writer = JSONWriter()

    package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    /// Opens a family; its samples follow.
    package mutating func family(_ name: String, _ kind: Kind, _ help: String) {
        writer.raw("# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n")
    }

    package mutating func sample(_ name: String, _ labels: Labels, _ value: Int) {
        begin(name, labels)
        writer.integer(Int64(value))
        writer.byte(UInt8(ascii: "\n"))
    }

    package mutating func sample(_ name: String, _ labels: Labels, _ value: Double) {
        begin(name, labels)
        writer.raw(Self.number(value))
        writer.byte(UInt8(ascii: "\n"))
    }

    /// - Parameters:
    ///   - bounds: the upper bounds of all buckets except the last, which has none.
    ///   - counts: the count of each bucket alone; the format's cumulative counts are computed here.
    package mutating func histogram(_ name: String, _ labels: Labels, bounds: [Double], _ counts: [Int], sum: Double) {
        var total = 0
        for (index, count) in counts.enumerated() {
            total += count
            let bound = index < bounds.count ? Self.number(bounds[index]) : "+Inf"
            sample(name + "_bucket", labels + [("le", bound)], total)
        }
        sample(name + "_sum", labels, sum)
        sample(name + "_count", labels, total)
    }

    private mutating func begin(_ name: String, _ labels: Labels) {
        writer.raw(name)
        if !labels.isEmpty {
            writer.byte(UInt8(ascii: "{"))
            for (index, label) in labels.enumerated() {
                if index > 0 { writer.byte(UInt8(ascii: ",")) }
                writer.raw(label.name)
                writer.byte(UInt8(ascii: "="))
                writer.byte(UInt8(ascii: "\""))
                for byte in label.value.utf8 { escape(byte) }
                writer.byte(UInt8(ascii: "\""))
            }
            writer.byte(UInt8(ascii: "}"))
        }
        writer.byte(UInt8(ascii: " "))
    }

    private mutating func escape(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\\"): writer.raw("\\\\")
        case UInt8(ascii: "\""): writer.raw("\\\"")
        case UInt8(ascii: "\n"): writer.raw("\\n")
        default: writer.byte(byte)
        }
    }

    /// The shortest string, without the `.0` of whole numbers.
    private static func number(_ value: Double) -> String {
        let string = value.description
        return string.hasSuffix(".0") ? String(string.dropLast(2)) : string
    }
}
