/// Reads a header byte by byte, so that the split of the input does not matter and an unfinished header owns no memory.
///
/// It checks everything that a header alone shows: reserved bits that were not negotiated, unknown opcodes, control
/// frames that are long or fragmented, lengths that do not use the shortest form or have the top bit set.
struct WebSocketFrameReader {
    private enum Stage: UInt8 { case flags, length, extendedLength, mask }

    private var stage = Stage.flags
    private var bytesLeft: UInt8 = 0
    private var isMasked = false
    private var shortLength: UInt8 = 0
    private var length: UInt64 = 0
    private var mask: UInt32 = 0
    private var flags: UInt8 = 0
    private var opcode = WebSocketOpcode.continuation

    /// Some but not all bytes of a header have arrived.
    var isUnfinished: Bool { stage != .flags }

    /// - Parameter allowsCompression: RSV1 has a meaning.
    /// - Returns: the header, after its last byte.
    mutating func read(
        _ byte: UInt8, allowsCompression: Bool
    ) throws(WebSocketFailure) -> WebSocketFrameHeader? {
        switch stage {
        case .flags: try readFlags(byte, allowsCompression)
        case .length: return try readLength(byte)
        case .extendedLength:
            length = length << 8 | UInt64(byte)
            bytesLeft -= 1
            if bytesLeft == 0 { return try endOfLength() }
        case .mask:
            // First byte lowest: the order of application.
            mask = mask >> 8 | UInt32(byte) << 24
            bytesLeft -= 1
            if bytesLeft == 0 { return header(mask) }
        }
        return nil
    }

    private mutating func readFlags(_ byte: UInt8, _ allowsCompression: Bool) throws(WebSocketFailure) {
        guard let opcode = WebSocketOpcode(rawValue: byte & 0x0F) else {
            throw .violation("unknown opcode \(byte & 0x0F)")
        }
        guard byte & 0x30 == 0 else { throw .violation("reserved bits are set") }
        if byte & 0x40 != 0 {
            guard allowsCompression else { throw .violation("compression was not negotiated") }
            guard opcode == .string || opcode == .binary else {
                throw .violation("a compressed message is marked by its first frame only")
            }
        }
        if opcode.isControl, byte & 0x80 == 0 { throw .violation("a control frame is fragmented") }
        self.opcode = opcode
        flags = byte
        stage = .length
    }

    private mutating func readLength(_ byte: UInt8) throws(WebSocketFailure) -> WebSocketFrameHeader? {
        isMasked = byte & 0x80 != 0
        shortLength = byte & 0x7F
        length = 0
        if opcode.isControl, shortLength > WebSocketFrameHeader.controlBytesMax {
            throw .violation("a control frame is longer than \(WebSocketFrameHeader.controlBytesMax) bytes")
        }
        guard shortLength >= 126 else {
            length = UInt64(shortLength)
            return try endOfLength()
        }
        bytesLeft = shortLength == 126 ? 2 : 8
        stage = .extendedLength
        return nil
    }

    private mutating func endOfLength() throws(WebSocketFailure) -> WebSocketFrameHeader? {
        let shortest: UInt64 = shortLength == 127 ? 0x1_0000 : shortLength == 126 ? 126 : 0
        guard length >= shortest else { throw .violation("a length does not use the shortest form") }
        guard length <= UInt64(Int64.max) else { throw .violation("a length has its top bit set") }
        guard isMasked else { return header(nil) }
        mask = 0
        bytesLeft = 4
        stage = .mask
        return nil
    }

    private mutating func header(_ mask: UInt32?) -> WebSocketFrameHeader {
        stage = .flags
        return WebSocketFrameHeader(
            opcode: opcode, isFinal: flags & 0x80 != 0, isCompressed: flags & 0x40 != 0, mask: mask,
            payloadBytes: Int(length))
    }
}
