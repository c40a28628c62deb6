import Glibc

/// MD5 (RFC 1321). Bloom filters of document names use this hash; it has no security purpose.
enum MD5 {
    private static let shifts: [UInt32] = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21]

    /// The first 32 bits of the fraction of |sin(i + 1)|, as in the RFC.
    private static let constants: [UInt32] = (0..<64).map { index in
        let sine = sin(Double(index + 1))
        return UInt32((sine < 0 ? -sine : sine) * 4_294_967_296)
    }

    /// The sixteen bytes of the digest.
    static func digest(_ message: some Sequence<UInt8>) -> [UInt8] {
        var bytes = Array(message)
        let bitCount = UInt64(bytes.count) * 8
        bytes.append(0x80)
        while bytes.count % 64 != 56 { bytes.append(0) }
        for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: bitCount >> UInt64(8 * shift))) }
        var state: (UInt32, UInt32, UInt32, UInt32) = (0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476)
        bytes.withUnsafeBytes { buffer in
            for block in stride(from: 0, to: buffer.count, by: 64) { mix(buffer, at: block, into: &state) }
        }
        return [state.0, state.1, state.2, state.3].flatMap { word in
            (0..<4).map { UInt8(truncatingIfNeeded: word >> UInt32(8 * $0)) }
        }
    }

    private static func mix(
        _ buffer: UnsafeRawBufferPointer, at block: Int, into state: inout (UInt32, UInt32, UInt32, UInt32)
    ) {
        var (a, b, c, d) = state
        constants.withUnsafeBufferPointer { constants in
            shifts.withUnsafeBufferPointer { shifts in
                for index in 0..<64 {
                    var mixed: UInt32
                    var word: Int
                    switch index / 16 {
                    case 0:
                        mixed = (b & c) | (~b & d)
                        word = index
                    case 1:
                        mixed = (d & b) | (~d & c)
                        word = (5 * index + 1) % 16
                    case 2:
                        mixed = b ^ c ^ d
                        word = (3 * index + 5) % 16
                    default:
                        mixed = c ^ (b | ~d)
                        word = (7 * index) % 16
                    }
                    let part = UInt32(
                        littleEndian: buffer.loadUnaligned(fromByteOffset: block + 4 * word, as: UInt32.self))
                    mixed = mixed &+ a &+ constants[index] &+ part
                    a = d
                    d = c
                    c = b
                    let shift = shifts[index / 16 * 4 + index % 4]
                    b = b &+ (mixed << shift | mixed >> (32 - shift))
                }
            }
        }
        state = (state.0 &+ a, state.1 &+ b, state.2 &+ c, state.3 &+ d)
    }
}
