/// A frame without its payload.
struct WebSocketFrameHeader: Equatable {
    var opcode: WebSocketOpcode
    var isFinal: Bool
    /// RSV1, which permessage-deflate uses.
    var isCompressed: Bool
    var mask: UInt32?
    var payloadBytes: Int

    /// Bytes of a control frame's payload.
    static let controlBytesMax = 125
    /// Bytes of the longest header.
    static let sizeBytesMax = 14

    func append(to bytes: inout [UInt8]) {
        bytes.append((isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0) | opcode.rawValue)
        let maskBit: UInt8 = mask == nil ? 0 : 0x80
        switch payloadBytes {
        case ...125: bytes.append(maskBit | UInt8(payloadBytes))
        case ...0xFFFF:
            bytes.append(maskBit | 126)
            withUnsafeBytes(of: UInt16(payloadBytes).bigEndian) { bytes.append(contentsOf: $0) }
        default:
            bytes.append(maskBit | 127)
            withUnsafeBytes(of: UInt64(payloadBytes).bigEndian) { bytes.append(contentsOf: $0) }
        }
        if let mask { withUnsafeBytes(of: mask.littleEndian) { bytes.append(contentsOf: $0) } }
    }
}
