/// CRC-32C (Castagnoli). Source: RFC 3720, appendix B.4; eight bytes a step, by eight tables ("slicing-by-8").
package struct CRC32C {
    private var state: UInt32 = 0xFFFF_FFFF

    package init() {}

    /// The checksum of the bytes so far.
    package var value: UInt32 { ~state }

    /// Eight tables of 256 numbers, one behind the other. Never freed: the program has one.
    private nonisolated(unsafe) static let tables: UnsafePointer<UInt32> = {
        let tables = UnsafeMutablePointer<UInt32>.allocate(capacity: 8 * 256)
        for byte in 0..<256 {
            var remainder = UInt32(byte)
            for _ in 0..<8 { remainder = remainder & 1 == 0 ? remainder >> 1 : remainder >> 1 ^ 0x82F6_3B78 }
            tables[byte] = remainder
        }
        for index in 256..<(8 * 256) {
            let before = tables[index - 256]
            tables[index] = before >> 8 ^ tables[Int(before & 0xFF)]
        }
        return UnsafePointer(tables)
    }()

    package mutating func update(_ byte: UInt8) {
        state = state >> 8 ^ Self.tables[Int((state ^ UInt32(byte)) & 0xFF)]
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        let tables = Self.tables
        var crc = state
        var index = 0
        while bytes.count &- index >= 8 {
            let low = crc ^ UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt32.self))
            let high = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: index &+ 4, as: UInt32.self))
            crc = tables[7 * 256 + Int(low & 0xFF)] ^ tables[6 * 256 + Int(low >> 8 & 0xFF)]
            crc ^= tables[5 * 256 + Int(low >> 16 & 0xFF)] ^ tables[4 * 256 + Int(low >> 24)]
            crc ^= tables[3 * 256 + Int(high & 0xFF)] ^ tables[2 * 256 + Int(high >> 8 & 0xFF)]
            crc ^= tables[256 + Int(high >> 16 & 0xFF)] ^ tables[Int(high >> 24)]
            index &+= 8
        }
        while index < bytes.count {
            crc = crc >> 8 ^ tables[Int((crc ^ UInt32(bytes[index])) & 0xFF)]
            index &+= 1
        }
        state = crc
    }

    /// The form in which LevelDB stores a checksum, so that the checksum of a record that holds one is not trivial.
    package var masked: UInt32 { (value >> 15 | value << 17) &+ 0xA282_EAD8 }
}
