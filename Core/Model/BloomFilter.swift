import Glibc

/// A set of hashes. It may contain hashes that were not added, with a small probability, but never lacks one that was.
///
/// Firestore sends it to a client to state which of the client's documents still match. Source:
/// google.firestore.v1.BloomFilter.
@usableFromInline package struct BloomFilter: Sendable, Equatable {
    /// Two halves of a hash, from which all bit positions follow.
    @usableFromInline package struct Hash: Sendable, Equatable {
        @usableFromInline package var first: UInt64
        @usableFromInline package var second: UInt64

        @inlinable package init(first: UInt64, second: UInt64) {
            self.first = first
            self.second = second
        }

        /// - Parameter digest: sixteen bytes, as two numbers whose first byte is the least.
        @inlinable package init(digest: [UInt8]) {
            precondition(digest.count == 16, "a digest has sixteen bytes")
            func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
                bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
            }
            self.init(first: number(digest[..<8]), second: number(digest[8...]))
        }
    }

    @usableFromInline package private(set) var bitmap: [UInt8]
    /// Unused bits of the last byte.
    package let padding: Int
    @usableFromInline package let hashCount: Int

    private let bitCount: Int

    /// A filter has some dozens at most; each look-up takes so many steps.
    private static let hashCountMax = 1000

    /// An empty filter.
    /// - Parameters:
    ///   - count: how many hashes will be put in; above 0.
    ///   - falsePositiveRate: how often another hash may seem to be in; between 0 and 1.
    package init(count: Int, falsePositiveRate: Double) {
        let bits = (Double(count) * log(1 / falsePositiveRate) / (M_LN2 * M_LN2)).rounded(.up)
        // Among few bits, the positions of different hashes are too often the same.
        bitCount = max(512, Int(bits))
        hashCount = max(1, Int((bits / Double(count) * M_LN2).rounded()))
        bitmap = [UInt8](repeating: 0, count: (bitCount + 7) / 8)
        padding = bitmap.count * 8 - bitCount
    }

    /// A filter from a peer; nil when its parts are inconsistent.
    package init?(bitmap: [UInt8], padding: Int, hashCount: Int) {
        guard (0...7).contains(padding), (0...Self.hashCountMax).contains(hashCount),
            bitmap.isEmpty ? padding == 0 : hashCount > 0
        else { return nil }
        self.bitmap = bitmap
        self.padding = padding
        self.hashCount = hashCount
        bitCount = bitmap.count * 8 - padding
    }

    package mutating func insert(_ hash: Hash) {
        for index in 0..<hashCount {
            let bit = position(hash, index)
            bitmap[bit / 8] |= 1 << UInt8(bit % 8)
        }
    }

    package func contains(_ hash: Hash) -> Bool {
        if bitCount == 0 { return false }
        return (0..<hashCount).allSatisfy { index in
            let bit = position(hash, index)
            return bitmap[bit / 8] & 1 << UInt8(bit % 8) != 0
        }
    }

    private func position(_ hash: Hash, _ index: Int) -> Int {
        Int((hash.first &+ UInt64(index) &* hash.second) % UInt64(bitCount))
    }
}
