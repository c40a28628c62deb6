import HearthModel

/// Appends JSON to a buffer. The caller writes the structure (commas, braces); this type writes the tokens.
package struct JSONWriter {
    package var bytes: [UInt8]
    /// Writes empty maps and arrays of stored fields with their empty member (`{"mapValue":{"fields":{}}}`), which
    /// proto3 JSON omits: some readers of bundles require it.
    package var writesEmptyMembers = false

    @inlinable package init(_ bytes: [UInt8] = []) {
        self.bytes = bytes
    }

    /// Reserves capacity for `count` more bytes; the buffer grows by doubling.
    @inlinable package mutating func reserve(_ count: Int) {
        let needed = bytes.count + count
        if bytes.capacity < needed { bytes.reserveCapacity(max(needed, 2 * bytes.capacity)) }
    }

    @inline(never)
    @inlinable package mutating func raw(_ string: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: string.utf8Start, count: string.utf8CodeUnitCount))
    }

    @inline(__always)
    @inlinable package mutating func byte(_ byte: UInt8) {
        bytes.append(byte)
    }

    /// Appends a string that needs no escapes, without quotes.
    @inlinable package mutating func raw(_ string: String) {
        let done: Void? = string.utf8.withContiguousStorageIfAvailable { bytes.append(contentsOf: $0) }
        if done == nil { bytes.append(contentsOf: string.utf8) }
    }

    // MARK: Strings

    @inlinable package mutating func string(_ string: String) {
        let done: Void? = string.utf8.withContiguousStorageIfAvailable { self.string(UnsafeRawBufferPointer($0)) }
        if done == nil { Array(string.utf8).withUnsafeBytes { self.string($0) } }
    }

    /// Appends a string of valid UTF-8 bytes, in quotes and escaped.
    package mutating func string(_ utf8: UnsafeRawBufferPointer) {
        bytes.append(UInt8(ascii: "\""))
        var start = 0
        while true {
            let index = JSONScanner.firstSpecial(utf8, from: start)
            bytes.append(contentsOf: ProtobufReader.slice(utf8, start..<index))
            if index == utf8.count { break }
            escape(utf8[index])
            start = index + 1
        }
        bytes.append(UInt8(ascii: "\""))
    }

    @inline(never)
    private mutating func escape(_ byte: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        case 0x0a: bytes.append(UInt8(ascii: "n"))
        case 0x0c: bytes.append(UInt8(ascii: "f"))
        case 0x0d: bytes.append(UInt8(ascii: "r"))
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
        default:
            raw("u00")
            bytes.append(Self.hexadecimal(byte >> 4))
            bytes.append(Self.hexadecimal(byte & 15))
        }
    }

    private static func hexadecimal(_ digit: UInt8) -> UInt8 {
        digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
    }

    // MARK: Other tokens

    @inlinable package mutating func bool(_ value: Bool) {
        if value { raw("true") } else { raw("false") }
    }

    @inlinable package mutating func integer(_ value: Int64) {
        if value < 0 { bytes.append(UInt8(ascii: "-")) }
        unsigned(value.magnitude)
    }

    package mutating func unsigned(_ value: UInt64) {
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
            bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[index...]))
        }
    }

    /// A 64-bit number in quotes, as proto3 JSON requires: JavaScript's numbers lose the low bits.
    @inlinable package mutating func quotedInteger(_ value: Int64) {
        bytes.append(UInt8(ascii: "\""))
        integer(value)
        bytes.append(UInt8(ascii: "\""))
    }

    /// The shortest form that parses to the same double; NaN and the infinities as strings.
    package mutating func double(_ value: Double) {
        if value.isFinite {
            raw(value.description)
        } else if value.isNaN {
            raw("\"NaN\"")
        } else {
            raw(value > 0 ? "\"Infinity\"" : "\"-Infinity\"")
        }
    }

    /// Standard base64 with padding, in quotes.
    @inlinable package mutating func base64(_ content: UnsafeRawBufferPointer) {
        bytes.append(UInt8(ascii: "\""))
        Base64.encode(content, into: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }

    /// RFC 3339 in UTC, in quotes.
    @inlinable package mutating func timestamp(seconds: Int64, nanoseconds: Int32) {
        bytes.append(UInt8(ascii: "\""))
        RFC3339.append(seconds: seconds, nanoseconds: nanoseconds, to: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }
}
