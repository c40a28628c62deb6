/// A number of JSON. Which kinds of numbers a reader distinguishes is its own choice, so all of them are here: protobuf's
/// integers may be written as `1e3`, the Realtime Database's may not.
@usableFromInline package struct JSONNumber {
    /// The number as it is written.
    @usableFromInline package let literal: UnsafeRawBufferPointer
    /// All digits before the exponent, as one integer; wrong when they are more than 19.
    @usableFromInline let digits: UInt64
    /// The number of digits before the point, and behind it.
    @usableFromInline let wholeCount: Int
    @usableFromInline let fractionCount: Int
    @usableFromInline let hasExponent: Bool

    @inlinable init(
        literal: UnsafeRawBufferPointer, digits: UInt64, wholeCount: Int, fractionCount: Int, hasExponent: Bool
    ) {
        self.literal = literal
        self.digits = digits
        self.wholeCount = wholeCount
        self.fractionCount = fractionCount
        self.hasExponent = hasExponent
    }

    /// A string that is one number as a whole; nil when it is not.
    @usableFromInline package init?(_ literal: UnsafeRawBufferPointer) {
        var lexer = JSONLexer<JSONError>(literal, depthMax: 0, isUTF8: true)
        do throws(JSONError) { self = try lexer.number() } catch { return nil }
        guard lexer.position == literal.count else { return nil }
    }

    @inlinable package var isNegative: Bool { literal.first == UInt8(ascii: "-") }

    /// Whether it has neither fraction nor exponent.
    @inlinable package var isPlain: Bool { fractionCount == 0 && !hasExponent }

    // MARK: Integers

    /// Its value if it is an integer in any form (`1000`, `1e3`, `1000.0`) and fits.
    @inlinable package var int64: Int64? {
        guard let magnitude else { return nil }
        if isNegative { return magnitude <= 1 << 63 ? Int64(truncatingIfNeeded: 0 &- magnitude) : nil }
        return Int64(exactly: magnitude)
    }

    /// Its value if it is an integer without fraction and exponent and fits.
    @inlinable package var plainInt64: Int64? { isPlain ? int64 : nil }

    /// Its value if it is an integer in any form and fits.
    @inlinable package var uint64: UInt64? {
        if isNegative { return int64 == 0 ? 0 : nil }
        return magnitude
    }

    @inlinable var magnitude: UInt64? {
        // Nineteen digits always fit.
        isPlain && wholeCount <= 19 ? digits : unusualMagnitude
    }

    @usableFromInline var unusualMagnitude: UInt64? {
        var value: UInt64 = 0
        for byte in literal.dropFirst(isNegative ? 1 : 0) {
            let digit = byte &- UInt8(ascii: "0")
            if digit >= 10 { return UInt64(exactly: double.magnitude) }
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(digit))
            if overflow || carry { return nil }
            value = sum
        }
        return value
    }

    // MARK: Doubles

    /// The nearest double; an infinity beyond the finite range.
    @usableFromInline package var double: Double {
        // When the digits fit 53 bits and the power of ten is exact, one operation rounds correctly.
        if !hasExponent, wholeCount + fractionCount <= 19, digits <= 1 << 53, fractionCount < Self.powersOfTen.count {
            let magnitude = Double(digits) / Self.powersOfTen[fractionCount]
            return isNegative ? -magnitude : magnitude
        }
        guard let number = Double(String(decoding: literal, as: UTF8.self)) else {
            preconditionFailure("a number of JSON that is none of Swift")
        }
        return number
    }

    /// The nearest double; nil beyond the finite range.
    @inlinable package var finiteDouble: Double? {
        let double = double
        return double.isFinite ? double : nil
    }

    private static let powersOfTen: [Double] = [
        1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20, 1e21, 1e22,
    ]
}

extension JSONLexer {
    /// Takes a number, after white space. The grammar of RFC 8259: no plus sign, no leading zeros, digits on both sides
    /// of a point.
    @inlinable package mutating func readNumber() throws(Failure) -> JSONNumber {
        _ = peek()
        return try number()
    }

    /// Takes a number that begins at the position.
    @inlinable mutating func number() throws(Failure) -> JSONNumber {
        let first = position
        var digits: UInt64 = 0
        _ = take(UInt8(ascii: "-"))
        let whole = position
        try takeDigits(&digits)
        let wholeCount = position &- whole
        if wholeCount > 1, bytes[whole] == UInt8(ascii: "0") {
            position = whole &+ 1
            throw unexpected()
        }
        var fractionCount = 0
        if take(UInt8(ascii: ".")) {
            let fraction = position
            try takeDigits(&digits)
            fractionCount = position &- fraction
        }
        let hasExponent = take(UInt8(ascii: "e")) || take(UInt8(ascii: "E"))
        if hasExponent {
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            var ignored: UInt64 = 0
            try takeDigits(&ignored)
        }
        return JSONNumber(
            literal: UnsafeRawBufferPointer(rebasing: bytes[first..<position]), digits: digits, wholeCount: wholeCount,
            fractionCount: fractionCount, hasExponent: hasExponent)
    }

    @inline(__always)
    @inlinable mutating func take(_ byte: UInt8) -> Bool {
        guard position < bytes.count, bytes[position] == byte else { return false }
        position &+= 1
        return true
    }

    /// Takes one digit or more, and appends them to an integer.
    @inline(__always)
    @inlinable mutating func takeDigits(_ digits: inout UInt64) throws(Failure) {
        let first = position
        while position < bytes.count {
            let digit = bytes[position] &- UInt8(ascii: "0")
            if digit >= 10 { break }
            digits = digits &* 10 &+ UInt64(digit)
            position &+= 1
        }
        guard position > first else { throw unexpected() }
    }
}

extension JSONError: JSONReadingError {
    @inlinable package init(json error: JSONError) { self = error }
}
