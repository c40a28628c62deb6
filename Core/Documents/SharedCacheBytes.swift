import HearthConcurrency
import Synchronization

/// What caches of one kind take, of all databases together: those of documents of the latest commits, or of where the feed
/// has what.
///
/// While they are crowded each keeps little. While the pool is tight from which comes what clients hold, they are crowded
/// with a quarter, and each keeps a quarter of little.
final class SharedCacheBytes: Sendable {
    let used = Atomic<Int>(0)
    private let bytesMax: Int
    private let pool: MemoryPool?

    init(max: Int, pool: MemoryPool? = nil) {
        bytesMax = max
        self.pool = pool
    }

    private var isTight: Bool { pool?.isTight == true }

    var isCrowded: Bool { used.load(ordering: .relaxed) > (isTight ? bytesMax / 4 : bytesMax) }

    /// What each may keep even then.
    func littleBytes(_ bytes: Int) -> Int { isTight ? bytes / 4 : bytes }
}
