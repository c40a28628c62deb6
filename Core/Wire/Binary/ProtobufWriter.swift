/// Appends protobuf fields to a buffer. Source: "Encoding", Protocol Buffers documentation.
///
/// A nested message's length is written after its content: one byte is reserved for it, and the content moves only when
/// the length needs more bytes, which is rare.
package struct ProtobufWriter {
    package var bytes: [UInt8]

    package init(_ bytes: [UInt8] = []) {
        self.bytes = bytes
    }

    /// Reserves capacity for `count` more bytes; the buffer grows by doubling, so that many small calls stay linear.
    package mutating func reserve(_ count: Int) {
        let needed = bytes.count + count
        if bytes.capacity < needed { bytes.reserveCapacity(max(needed, 2 * bytes.capacity)) }
    }

    // MARK: Scalars

    /// `number << 3 | wireType`
    @inline(__always)
    package mutating func tag(_ number: UInt32, _ wireType: UInt32) {
        varint(UInt64(number << 3 | wireType))
    }

    @inline(__always)
    package mutating func varint(_ value: UInt64) {
        if value < 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: value))
        } else {
            longVarint(value)
        }
    }

    @inline(never)
    mutating func longVarint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    package mutating func fixed64(_ value: UInt64) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    // MARK: Length-delimited content

    package mutating func string(_ string: String) {
        varint(UInt64(string.utf8.count))
        raw(string)
    }

    /// The string's bytes without a length.
    package mutating func raw(_ string: String) {
        let done: Void? = string.utf8.withContiguousStorageIfAvailable { bytes.append(contentsOf: $0) }
        if done == nil { bytes.append(contentsOf: string.utf8) }
    }

    package mutating func lengthDelimited(_ content: [UInt8]) {
        varint(UInt64(content.count))
        bytes.append(contentsOf: content)
    }

    /// Reserves a byte for a length and returns the start of the content, which `endLength` takes.
    @inline(__always)
    package mutating func beginLength() -> Int {
        bytes.append(0)
        return bytes.count
    }

    /// Writes the length of everything appended since `beginLength`.
    @inline(__always)
    package mutating func endLength(_ start: Int) {
        let length = bytes.count - start
        if length < 0x80 {
            bytes[start - 1] = UInt8(truncatingIfNeeded: length)
        } else {
            insertLength(start, length)
        }
    }

    @inline(never)
    mutating func insertLength(_ start: Int, _ length: Int) {
        let extra = Self.varintSize(UInt64(length)) - 1
        for _ in 0..<extra { bytes.append(0) }
        bytes.withUnsafeMutableBytes { buffer in
            UnsafeMutableRawBufferPointer(rebasing: buffer[(start + extra)...])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[start..<(start + length)]))
            var rest = UInt64(length)
            var index = start - 1
            while rest >= 0x80 {
                buffer[index] = UInt8(truncatingIfNeeded: rest) | 0x80
                rest >>= 7
                index += 1
            }
            buffer[index] = UInt8(truncatingIfNeeded: rest)
        }
    }

    /// The size of a varint: 1 to 10 bytes.
    @inline(__always)
    package static func varintSize(_ value: UInt64) -> Int {
        (63 - (value | 1).leadingZeroBitCount) / 7 + 1
    }
}
