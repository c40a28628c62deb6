/// Appends tokens to bytes. The caller writes the structure (commas, braces).
@usableFromInline package enum JSONTokens {
    // MARK: Strings

    /// Appends a string in quotes and escaped.
    @inlinable package static func append(_ string: String, to output: inout [UInt8]) {
        var string = string
        string.withUTF8 { append(utf8: UnsafeRawBufferPointer($0), to: &output) }
    }

    /// Appends a string of valid UTF-8 bytes in quotes and escaped.
    @usableFromInline package static func append(utf8: UnsafeRawBufferPointer, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        var start = 0
        while true {
            let index = JSONScanner.firstSpecial(utf8, from: start)
            output.append(contentsOf: UnsafeRawBufferPointer(rebasing: utf8[start..<index]))
            if index == utf8.count { break }
            appendEscape(utf8[index], to: &output)
            start = index + 1
        }
        output.append(UInt8(ascii: "\""))
    }

    @inline(never)
    private static func appendEscape(_ byte: UInt8, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x08: output.append(UInt8(ascii: "b"))
        case 0x09: output.append(UInt8(ascii: "t"))
        case 0x0a: output.append(UInt8(ascii: "n"))
        case 0x0c: output.append(UInt8(ascii: "f"))
        case 0x0d: output.append(UInt8(ascii: "r"))
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): output.append(byte)
        default:
            append(literal: "u00", to: &output)
            output.append(hexadecimal(byte >> 4))
            output.append(hexadecimal(byte & 15))
        }
    }

    private static func hexadecimal(_ digit: UInt8) -> UInt8 {
        digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
    }

    /// Appends a character of a string as it is.
    @inlinable package static func append(_ scalar: Unicode.Scalar, to output: inout [UInt8]) {
        if scalar.isASCII {
            output.append(UInt8(truncatingIfNeeded: scalar.value))
        } else {
            output.append(contentsOf: UTF8.encode(scalar)!)
        }
    }

    // MARK: Numbers and literals

    /// Appends an integer.
    @inlinable package static func append(_ value: Int64, to output: inout [UInt8]) {
        if value < 0 { output.append(UInt8(ascii: "-")) }
        append(value.magnitude, to: &output)
    }

    @usableFromInline package static func append(_ value: UInt64, to output: inout [UInt8]) {
        // Twenty digits hold every 64-bit number; the last digit is produced first.
        var digits: (UInt64, UInt64, UInt64) = (0, 0, 0)
        withUnsafeMutableBytes(of: &digits) { buffer in
            var rest = value
            var index = buffer.count
            repeat {
                index -= 1
                buffer[index] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest != 0
            output.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[index...]))
        }
    }

    /// Appends the shortest form that parses to the same double (`1.0`, `1e+16`).
    @usableFromInline package static func append(_ value: Double, to output: inout [UInt8]) {
        precondition(value.isFinite, "no number of JSON")
        var description = value.description
        description.withUTF8 { output.append(contentsOf: $0) }
    }

    @inlinable package static func append(_ value: Bool, to output: inout [UInt8]) {
        if value { append(literal: "true", to: &output) } else { append(literal: "false", to: &output) }
    }

    @inlinable package static func appendNull(to output: inout [UInt8]) { append(literal: "null", to: &output) }

    /// Appends what is JSON already.
    @inlinable package static func append(literal: StaticString, to output: inout [UInt8]) {
        output.append(contentsOf: UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
    }
}
