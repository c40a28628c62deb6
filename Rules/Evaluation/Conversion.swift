import HearthModel

/// Conversions between types, and the messages of failed ones.
enum Conversion {
    static var invalidTimestamp: RuleValue {
        .failure(
            .other(
                "Timestamp is not valid. Seconds must be in range [-62,135,596,800, +253,402,300,799]. Nanos must be in range "
                    + "[0, +999,999,999]."))
    }
    static var invalidDuration: RuleValue {
        .failure(
            .other(
                "Duration is not valid. Seconds must be in range [-315,576,000,000, +315,576,000,000]. Nanos must be in range "
                    + "[-999,999,999, +999,999,999]. Nanos must have the same sign as seconds."))
    }

    static func unbound(_ name: String) -> RuleValue {
        .failure(.other("Variable \(name) is not bound in path template."))
    }

    private static func refused(_ string: String, _ type: String) -> RuleValue {
        .failure(.other("Type conversion error. Argument: [\(string)], From type: [string], To type: [\(type)]."))
    }

    /// `string(value)`; nil for types without a string form.
    static func string(of value: RuleValue) -> String? {
        switch value {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .int(let value): String(value)
        case .float(let value): Decimal.java(value)
        case .string(let value): value
        case .path(let value): value.string
        default: nil
        }
    }

    /// `int(value)`
    static func integer(_ value: RuleValue) -> RuleValue {
        switch value {
        case .int: return value
        case .float(let number): return .int(saturated(number))
        case .string(let string):
            // ASCII digits with a sign only, which Swift's initializer accepts as well.
            return Int64(string).map { .int($0) } ?? refused(string, "int")
        default: return Signatures.unsupported("int", [value])
        }
    }

    /// Rounds towards zero; NaN is 0, and values out of range are clamped.
    static func saturated(_ number: Double) -> Int64 {
        if number.isNaN { return 0 }
        if number >= 0x1p63 { return .max }
        if number < -0x1p63 { return .min }
        return Int64(number)
    }

    /// `float(value)`
    static func float(_ value: RuleValue) -> RuleValue {
        switch value {
        case .float: return value
        case .int(let number): return .float(Double(number))
        case .string(let string): return number(string).map { .float($0) } ?? refused(string, "float")
        default: return Signatures.unsupported("float", [value])
        }
    }

    /// The syntax of Java: with white space around the number, hexadecimal numbers with an exponent, and `f` or `d` as
    /// a suffix.
    private static func number(_ string: String) -> Double? {
        var bytes = Substring(string).utf8
        while let first = bytes.first, first <= 0x20 { bytes = bytes.dropFirst() }
        while let last = bytes.last, last <= 0x20 { bytes = bytes.dropLast() }
        var number = String(Substring(bytes))
        let unsigned = number.first == "+" || number.first == "-" ? number.dropFirst() : number[...]
        if unsigned == "NaN" { return .nan }
        if unsigned == "Infinity" { return number.first == "-" ? -.infinity : .infinity }
        // Swift accepts `inf` and `nan`, Java does not.
        guard let first = unsigned.utf8.first, Lexer.isDigit(first) || first == UInt8(ascii: ".") else { return nil }
        if let suffix = number.last, "fFdD".contains(suffix) { number.removeLast() }
        let isHexadecimal = unsigned.hasPrefix("0x") || unsigned.hasPrefix("0X")
        if isHexadecimal, !number.contains("p"), !number.contains("P") { return nil }
        if let value = Double(number) { return value }
        if number.hasSuffix(".") { return Double(number + "0") }
        return number.contains(".e") || number.contains(".E")
            ? Double(number.split(separator: ".", maxSplits: 1).joined(separator: ".0")) : nil
    }

    /// `path(string)`: a leading slash is optional.
    static func path(_ string: String) -> RuleValue {
        let bytes = string.utf8.first == UInt8(ascii: "/") ? Substring(string.dropFirst()) : Substring(string)
        if string.isEmpty { return .failure(.other("Empty Path Template is not allowed.")) }
        let segments = bytes.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        if segments.contains(where: \.isEmpty) {
            return .failure(.other("Invalid Path Template \(string). Empty segment is not allowed."))
        }
        return .path(RulePath(segments.map { segment($0) }))
    }

    /// `{name}` is a placeholder for `bind`; all other segments are literal.
    private static func segment(_ bytes: Substring.UTF8View) -> RulePath.Segment {
        let string = String(Substring(bytes))
        guard bytes.first == UInt8(ascii: "{"), bytes.last == UInt8(ascii: "}") else { return .string(string) }
        let name = bytes.dropFirst().dropLast()
        let isName = name.allSatisfy { byte in
            byte == UInt8(ascii: "_") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
        }
        guard isName, let first = name.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else {
            return .string(string)
        }
        return .open(String(Substring(name)))
    }

    /// A path in the text format of Google's protos, for the argument of a service call.
    static func argument(_ path: RulePath) -> String {
        let segments = path.segments.map { segment in
            switch segment {
            case .string(let string): "  segments {\n    simple: \"\(string)\"\n  }\n"
            case .open(let name): "  segments {\n    single_capture: \"\(name)\"\n  }\n"
            }
        }
        return "path_value {\n\(segments.joined())}\n"
    }
}
