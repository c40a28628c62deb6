/// Numbers from their JSON form.
enum JSONNumber {
    /// Whether the whole string is one number by JSON's grammar.
    static func isNumber(_ string: UnsafeRawBufferPointer) -> Bool {
        var index = 0
        let count = string.count
        func digits() -> Bool {
            let start = index
            while index < count, string[index] &- UInt8(ascii: "0") < 10 { index += 1 }
            return index > start
        }
        if index < count, string[index] == UInt8(ascii: "-") { index += 1 }
        let whole = index
        guard digits() else { return false }
        if string[whole] == UInt8(ascii: "0"), index > whole + 1 { return false }
        if index < count, string[index] == UInt8(ascii: ".") {
            index += 1
            guard digits() else { return false }
        }
        if index < count, string[index] | 0x20 == UInt8(ascii: "e") {
            index += 1
            if index < count, string[index] == UInt8(ascii: "+") || string[index] == UInt8(ascii: "-") { index += 1 }
            guard digits() else { return false }
        }
        return index == count
    }

    /// The integer value of a JSON number, including `1e3` and `2.0`; nil when it has a fraction or is out of range.
    static func int64(_ string: UnsafeRawBufferPointer) -> Int64? {
        let isNegative = string.first == UInt8(ascii: "-")
        guard let magnitude = magnitude(string, from: isNegative ? 1 : 0) else { return nil }
        if isNegative {
            return magnitude <= 1 << 63 ? Int64(truncatingIfNeeded: 0 &- magnitude) : nil
        }
        return Int64(exactly: magnitude)
    }

    static func uint64(_ string: UnsafeRawBufferPointer) -> UInt64? {
        if string.first == UInt8(ascii: "-") { return int64(string) == 0 ? 0 : nil }
        return magnitude(string, from: 0)
    }

    private static func magnitude(_ string: UnsafeRawBufferPointer, from start: Int) -> UInt64? {
        var value: UInt64 = 0
        for index in start..<string.count {
            let digit = string[index] &- UInt8(ascii: "0")
            if digit >= 10 { return unsigned(double(string)?.magnitude) }
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(digit))
            if overflow || carry { return nil }
            value = sum
        }
        return value
    }

    private static func unsigned(_ double: Double?) -> UInt64? {
        guard let double else { return nil }
        return UInt64(exactly: double)
    }

    private static let powersOfTen: [Double] = [
        1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20,
        1e21, 1e22,
    ]

    /// The double nearest to a JSON number; nil when it is beyond the finite range.
    static func double(_ string: UnsafeRawBufferPointer) -> Double? {
        if let exact = shortDouble(string) { return exact }
        guard let number = Double(String(decoding: string, as: UTF8.self)), number.isFinite else { return nil }
        return number
    }

    /// A short decimal: when the digits fit 53 bits and the power of ten is exact, one operation rounds correctly.
    private static func shortDouble(_ string: UnsafeRawBufferPointer) -> Double? {
        var index = 0
        let isNegative = string.first == UInt8(ascii: "-")
        if isNegative { index = 1 }
        var digits: UInt64 = 0
        var count = 0
        var scale = 0
        var isFraction = false
        while index < string.count {
            let byte = string[index]
            if byte == UInt8(ascii: ".") {
                isFraction = true
            } else {
                let digit = byte &- UInt8(ascii: "0")
                // An exponent, or more digits than certainly fit.
                if digit >= 10 || count >= 18 { return nil }
                digits = digits * 10 + UInt64(digit)
                count += 1
                if isFraction { scale += 1 }
            }
            index += 1
        }
        guard digits <= 1 << 53, scale <= 22 else { return nil }
        let number = scale == 0 ? Double(digits) : Double(digits) / powersOfTen[scale]
        return isNegative ? -number : number
    }
}
