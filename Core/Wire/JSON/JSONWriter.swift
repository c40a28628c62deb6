import HearthJSON
import HearthModel

/// Appends proto3 JSON to a buffer. The caller writes the structure (commas, braces); this type writes the tokens.
package struct JSONWriter {
    package var bytes: [UInt8]
    /// Writes empty maps and arrays of stored fields with their empty member (`{"mapValue":{"fields":{}}}`), which
    /// proto3 JSON omits: some readers of bundles require it.
    package var writesEmptyMembers = false

    package init(_ bytes: [UInt8] = []) {
        self.bytes = bytes
    }

    /// Reserves capacity for `count` more bytes; the buffer grows by doubling.
    package mutating func reserve(_ count: Int) {
        let needed = bytes.count + count
        if bytes.capacity < needed { bytes.reserveCapacity(max(needed, 2 * bytes.capacity)) }
    }

    @inline(never)
    package mutating func raw(_ string: StaticString) {
        JSONTokens.append(literal: string, to: &bytes)
    }

    @inline(__always)
    package mutating func byte(_ byte: UInt8) {
        bytes.append(byte)
    }

    /// Appends a string that needs no escapes, without quotes.
    package mutating func raw(_ string: String) {
        let done: Void? = string.utf8.withContiguousStorageIfAvailable { bytes.append(contentsOf: $0) }
        if done == nil { bytes.append(contentsOf: string.utf8) }
    }

    // MARK: Strings

    package mutating func string(_ string: String) {
        JSONTokens.append(string, to: &bytes)
    }

    /// Appends a string of valid UTF-8 bytes, in quotes and escaped.
    package mutating func string(_ utf8: UnsafeRawBufferPointer) {
        JSONTokens.append(utf8: utf8, to: &bytes)
    }

    // MARK: Other tokens

    package mutating func bool(_ value: Bool) {
        JSONTokens.append(value, to: &bytes)
    }

    package mutating func integer(_ value: Int64) {
        JSONTokens.append(value, to: &bytes)
    }

    package mutating func unsigned(_ value: UInt64) {
        JSONTokens.append(value, to: &bytes)
    }

    /// A 64-bit number in quotes, as proto3 JSON requires: JavaScript's numbers lose the low bits.
    mutating func quotedInteger(_ value: Int64) {
        bytes.append(UInt8(ascii: "\""))
        integer(value)
        bytes.append(UInt8(ascii: "\""))
    }

    /// The shortest form that parses to the same double; NaN and the infinities as strings.
    package mutating func double(_ value: Double) {
        if value.isFinite {
            JSONTokens.append(value, to: &bytes)
        } else if value.isNaN {
            raw("\"NaN\"")
        } else {
            raw(value > 0 ? "\"Infinity\"" : "\"-Infinity\"")
        }
    }

    /// Standard base64 with padding, in quotes.
    package mutating func base64(_ content: UnsafeRawBufferPointer) {
        bytes.append(UInt8(ascii: "\""))
        Base64.encode(content, into: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }

    /// RFC 3339 in UTC, in quotes.
    package mutating func timestamp(seconds: Int64, nanoseconds: Int32) {
        bytes.append(UInt8(ascii: "\""))
        RFC3339.append(seconds: seconds, nanoseconds: nanoseconds, to: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }
}
