import CZlib

/// Compressors and decompressors that the connections of one thread share.
///
/// A decompressor costs 40 KB and a compressor 260 KB, more than the rest of an idle connection. Without context
/// takeover a message needs them only from its first byte to its last.
///
/// Not Sendable: it has one owner, a thread or a lock.
package final class DeflateCodecs {
    private var inflaters: [Inflater] = []
    private var deflaters: [Deflater] = []
    /// Idle codecs beyond this number are freed.
    private static let idleMax = 4

    package init() {}

    func takeInflater() -> Inflater? { inflaters.popLast() ?? Inflater() }

    func giveBack(_ inflater: Inflater) {
        inflater.reset()
        if inflaters.count < DeflateCodecs.idleMax { inflaters.append(inflater) }
    }

    func takeDeflater(windowBits: Int) -> Deflater? {
        if let index = deflaters.lastIndex(where: { $0.windowBits == windowBits }) {
            return deflaters.remove(at: index)
        }
        return Deflater(windowBits: windowBits)
    }

    func giveBack(_ deflater: Deflater) {
        deflater.reset()
        if deflaters.count < DeflateCodecs.idleMax { deflaters.append(deflater) }
    }
}
