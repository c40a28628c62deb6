import Glibc

/// Bytes that a key determines, so that a lost, repeated or exchanged byte is found wherever it is.
package enum Content {
    /// A prime: no two positions of a buffer have the same bytes around them.
    private static let period = 65_521

    private static let pattern: [UInt8] = {
        let choices = Choices(seed: 0x7261_6666_6963)
        return (0..<2 * period).reduce(into: []) { bytes, index in
            bytes.append(index < period ? UInt8(choices.below(256)) : bytes[index - period])
        }
    }()

    /// Letters only, for strings: the same positions.
    private static let letters: [UInt8] = pattern.map { UInt8(ascii: "a") + $0 % 26 }

    private static func start(_ key: Int, _ offset: Int) -> Int { (key &* 7_919 &+ offset) % period }

    package static func bytes(_ key: Int, from offset: Int = 0, count: Int, isText: Bool = false) -> [UInt8] {
        let source = isText ? letters : pattern
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, written in
            while written < count {
                let start = start(key, offset + written)
                let length = min(count - written, 2 * period - start)
                source.withUnsafeBytes { source in
                    if let base = source.baseAddress, let target = buffer.baseAddress {
                        memcpy(target + written, base + start, length)
                    }
                }
                written += length
            }
        }
    }

    package static func string(_ key: Int, count: Int) -> String {
        String(decoding: bytes(key, count: count, isText: true), as: UTF8.self)
    }

    /// The position of the first byte that is not that of the key; nil: all are.
    package static func firstDifference(
        _ key: Int, from offset: Int, _ bytes: UnsafeRawBufferPointer, isText: Bool = false
    ) -> Int? {
        let source = isText ? letters : pattern
        var checked = 0
        while checked < bytes.count {
            let start = start(key, offset + checked)
            let length = min(bytes.count - checked, 2 * period - start)
            let isEqual = source.withUnsafeBytes { source in
                guard let base = source.baseAddress, let other = bytes.baseAddress else { return true }
                return memcmp(base + start, other + checked, length) == 0
            }
            guard isEqual else {
                return (0..<length).first { source[start + $0] != bytes[checked + $0] }.map { offset + checked + $0 }
            }
            checked += length
        }
        return nil
    }
}
