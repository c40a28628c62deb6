import HearthConcurrency
import Synchronization

/// The memory of caches of one kind, of all databases together: documents of the latest commits, or feed indexes.
///
/// When the caches are crowded, each keeps little. When the pool that clients' data comes from is tight, or the process is
/// large, an eighth of the bytes counts as crowded, and each cache keeps a quarter of little.
final class SharedCacheBytes: Sendable {
    let used = Atomic<Int>(0)
    private let bytesMax: Int
    private let pool: MemoryPool?

    init(max: Int, pool: MemoryPool? = nil) {
        bytesMax = max
        self.pool = pool
    }

    private var isTight: Bool { pool?.areCachesTight == true }

    var isCrowded: Bool { used.load(ordering: .relaxed) > (isTight ? bytesMax / 8 : bytesMax) }

    /// The bytes that each cache may keep even then.
    func littleBytes(_ bytes: Int) -> Int { isTight ? bytes / 4 : bytes }
}
