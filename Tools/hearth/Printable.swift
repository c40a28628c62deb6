/// Strings of others for a terminal.
enum Printable {
    /// Without characters that a terminal obeys or that reorder a line: they are escaped as in Swift. Line ends and tabs
    /// stay.
    static func string(_ string: String) -> String {
        if string.unicodeScalars.allSatisfy({ !isObeyed($0) }) { return string }
        var result = String.UnicodeScalarView()
        for scalar in string.unicodeScalars {
            if isObeyed(scalar) {
                result.append(contentsOf: "\\u{\(String(scalar.value, radix: 16))}".unicodeScalars)
            } else {
                result.append(scalar)
            }
        }
        return String(result)
    }

    /// The same on one line.
    static func line(_ string: String) -> String {
        let printable = self.string(string)
        if !printable.unicodeScalars.contains(where: { $0 == "\n" || $0 == "\t" }) { return printable }
        return printable.unicodeScalars.map { $0 == "\n" ? "\\n" : $0 == "\t" ? "\\t" : String($0) }.joined()
    }

    private static func isObeyed(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x09, 0x0A: false
        case 0..<0x20, 0x7F..<0xA0, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
