/// Hexadecimal digits of bytes.
enum Hexadecimal {
    static func digits(_ byte: UInt8, uppercase: Bool) -> String {
        let string = String(byte, radix: 16, uppercase: uppercase)
        return byte < 16 ? "0" + string : string
    }

    static func string(_ bytes: [UInt8]) -> String {
        bytes.map { digits($0, uppercase: true) }.joined()
    }
}

/// Decimal strings of floating-point numbers.
enum Decimal {
    /// The shortest digits that represent this number, and the exponent: value = 0.digits × 10^exponent.
    private static func parts(_ value: Double) -> (digits: [Character], exponent: Int) {
        let string = value.magnitude.description
        let halves = string.split(separator: "e", maxSplits: 1)
        let mantissa = halves.first ?? "0"
        var exponent = halves.count > 1 ? Int(halves[1]) ?? 0 : 0
        let numbers = mantissa.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        let whole = numbers.first ?? "0"
        var digits = Array(whole) + Array(numbers.count > 1 ? numbers[1] : "")
        exponent += whole.count
        let zeros = digits.prefix { $0 == "0" }.count
        digits.removeFirst(zeros)
        exponent -= zeros
        while digits.last == "0" { digits.removeLast() }
        return digits.isEmpty ? (["0"], 1) : (digits, exponent)
    }

    /// Without an exponent, like literals in rules.
    static func expanded(_ value: Double) -> String {
        let (digits, exponent) = parts(value)
        let sign = value.sign == .minus ? "-" : ""
        return sign + plain(digits, exponent)
    }

    private static func plain(_ digits: [Character], _ exponent: Int) -> String {
        if exponent <= 0 { return "0." + String(repeating: "0", count: -exponent) + String(digits) }
        if exponent >= digits.count {
            return String(digits) + String(repeating: "0", count: exponent - digits.count) + ".0"
        }
        return String(digits[..<exponent]) + "." + String(digits[exponent...])
    }

    /// The form of Java and of `string(float)`: with an exponent from 10^7 and below 10^-3.
    static func java(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        let sign = value.sign == .minus ? "-" : ""
        if value.isInfinite { return sign + "Infinity" }
        let (digits, exponent) = parts(value)
        if value == 0 || (value.magnitude >= 1e-3 && value.magnitude < 1e7) { return sign + plain(digits, exponent) }
        let fraction = digits.count > 1 ? String(digits[1...]) : "0"
        return sign + "\(digits[0]).\(fraction)E\(exponent - 1)"
    }

    /// The form of JavaScript: with an exponent from 10^21 and below 10^-6, whole numbers without a point.
    static func javaScript(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value == 0 { return "0" }
        let sign = value < 0 ? "-" : ""
        if value.isInfinite { return sign + "Infinity" }
        let (digits, exponent) = parts(value)
        if exponent > 21 || exponent <= -6 {
            let fraction = digits.count > 1 ? "." + String(digits[1...]) : ""
            return sign + "\(digits[0])\(fraction)e\(exponent > 0 ? "+" : "")\(exponent - 1)"
        }
        if exponent >= digits.count {
            return sign + String(digits) + String(repeating: "0", count: exponent - digits.count)
        }
        return sign + plain(digits, exponent)
    }
}
