/// XORs a payload with the four bytes of its mask. Source: RFC 6455, 5.3.
enum WebSocketMask {
    /// - Parameters:
    ///   - mask: the first byte lowest.
    ///   - offset: the number of payload bytes before `bytes`.
    static func apply(_ mask: UInt32, offset: Int, to bytes: UnsafeMutableRawBufferPointer) {
        let shift = UInt32(offset & 3) * 8
        let turned = shift == 0 ? mask : mask >> shift | mask << (32 - shift)
        let wide = (UInt64(turned) | UInt64(turned) << 32).littleEndian
        var position = 0
        while position + 8 <= bytes.count {
            let word = bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)
            bytes.storeBytes(of: word ^ wide, toByteOffset: position, as: UInt64.self)
            position += 8
        }
        while position < bytes.count {
            bytes[position] ^= UInt8(truncatingIfNeeded: turned >> (UInt32(position & 3) * 8))
            position += 1
        }
    }
}
