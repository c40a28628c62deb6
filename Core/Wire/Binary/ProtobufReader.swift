import HearthModel

/// Reads the fields of a protobuf message in borrowed memory. Source: "Encoding", Protocol Buffers documentation.
///
/// A reader never reads outside of `position..<end`, whatever the bytes are: every failure is an `INVALID_ARGUMENT`. It
/// holds a borrowed pointer and must not outlive the `withUnsafeBytes` call that created it.
package struct ProtobufReader {
    /// The low three bits of a tag.
    package enum WireType {
        package static let varint: UInt32 = 0
        package static let fixed64: UInt32 = 1
        package static let lengthDelimited: UInt32 = 2
        static let startGroup: UInt32 = 3
        package static let endGroup: UInt32 = 4
        package static let fixed32: UInt32 = 5
    }

    /// The whole buffer; positions are relative to its start.
    package let bytes: UnsafeRawBufferPointer
    package var position: Int
    /// The end of the current message; a nested message is read by moving this end.
    package var end: Int

    @inline(__always)
    package init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
        position = 0
        end = bytes.count
    }

    @inline(__always)
    package init(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
        self.bytes = bytes
        position = range.lowerBound
        end = range.upperBound
    }

    @inline(__always)
    package var isAtEnd: Bool { position >= end }

    // MARK: Scalars

    /// The next field's number and wire type in wire form: `number << 3 | wireType`.
    @inline(__always)
    package mutating func readTag() throws(Status) -> UInt32 {
        if position < end {
            let byte = bytes[position]
            if byte < 0x80, byte >= 8 {
                position &+= 1
                return UInt32(byte)
            }
            // Two bytes, as the tag of every string value has.
            if byte >= 0x80, end &- position >= 2 {
                let high = bytes[position &+ 1]
                if high < 0x80, high > 0 {
                    position &+= 2
                    return UInt32(byte & 0x7f) | UInt32(high) << 7
                }
            }
        }
        return try readLongTag()
    }

    @inline(never)
    private mutating func readLongTag() throws(Status) -> UInt32 {
        let value = try readVarint()
        guard value >> 3 != 0, value <= UInt64(UInt32.max) else {
            throw Self.malformed("a field number is out of range")
        }
        return UInt32(value)
    }

    @inline(__always)
    package mutating func readVarint() throws(Status) -> UInt64 {
        if position < end {
            let byte = bytes[position]
            if byte < 0x80 {
                position &+= 1
                return UInt64(byte)
            }
        }
        return try readLongVarint()
    }

    @inline(never)
    private mutating func readLongVarint() throws(Status) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while position < end {
            let byte = bytes[position]
            position += 1
            // The tenth byte holds the highest bit; its other bits are ignored, as in other implementations.
            value |= UInt64(byte & 0x7f) &<< shift
            if byte < 0x80 { return value }
            shift += 7
            if shift >= 70 { throw Self.malformed("a varint is longer than ten bytes") }
        }
        throw Self.truncated()
    }

    @inline(__always)
    package mutating func readFixed64() throws(Status) -> UInt64 {
        guard end &- position >= 8 else { throw Self.truncated() }
        let value = bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)
        position += 8
        return UInt64(littleEndian: value)
    }

    @inline(__always)
    package mutating func readFixed32() throws(Status) -> UInt32 {
        guard end &- position >= 4 else { throw Self.truncated() }
        let value = bytes.loadUnaligned(fromByteOffset: position, as: UInt32.self)
        position += 4
        return UInt32(littleEndian: value)
    }

    // MARK: Lengths

    /// The range of a length-delimited field's content; the position moves past it.
    @inline(__always)
    package mutating func readRange() throws(Status) -> Range<Int> {
        let length = try readVarint()
        // The position never passes the end, so that the difference is not negative.
        guard length <= UInt64(truncatingIfNeeded: end &- position) else { throw Self.truncated() }
        let start = position
        position = start &+ Int(truncatingIfNeeded: length)
        return Range(uncheckedBounds: (start, position))
    }

    /// The bytes of a range that this reader returned.
    @inline(__always)
    func slice(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        Self.slice(bytes, range)
    }

    /// Ranges come from `readRange`, which checked them against the buffer.
    @inline(__always)
    static func slice(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> UnsafeRawBufferPointer {
        guard let base = bytes.baseAddress else { return bytes }
        return UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.upperBound &- range.lowerBound)
    }

    @inline(__always)
    package mutating func readString() throws(Status) -> String {
        let range = try readRange()
        return try UTF8String.string(slice(range))
    }

    @inline(__always)
    package mutating func readBytes() throws(Status) -> [UInt8] {
        let range = try readRange()
        return Array(slice(range))
    }

    // MARK: Unknown fields

    /// Skips the content of a field whose tag was just read.
    /// - Parameter depth: the levels of messages around the field; groups count as levels.
    @inline(never)
    package mutating func skip(_ tag: UInt32, depth: Int = 0) throws(Status) {
        switch tag & 7 {
        case WireType.varint: _ = try readVarint()
        case WireType.fixed64: _ = try readFixed64()
        case WireType.lengthDelimited: _ = try readRange()
        case WireType.fixed32: _ = try readFixed32()
        case WireType.startGroup: try skipGroup(tag, depth: depth + 1)
        default: throw Self.malformed("unknown wire type \(tag & 7)")
        }
    }

    private mutating func skipGroup(_ start: UInt32, depth: Int) throws(Status) {
        if depth > Limits.messageDepthMax { throw Self.tooDeep() }
        while true {
            let tag = try readTag()
            if tag & 7 == WireType.endGroup {
                guard tag >> 3 == start >> 3 else { throw Self.malformed("a group's ends don't match") }
                return
            }
            try skip(tag, depth: depth)
        }
    }

    // MARK: Errors

    @inline(never)
    static func truncated() -> Status { malformed("it ends inside a field") }

    @inline(never)
    static func malformed(_ reason: String) -> Status {
        .invalidArgument("The protobuf message is malformed: \(reason).")
    }

    @inline(never)
    static func tooDeep() -> Status {
        .invalidArgument("The message nests deeper than \(Limits.messageDepthMax) levels.")
    }
}
