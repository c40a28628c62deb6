import HearthConcurrency
import Synchronization

/// Whoever has a connection whose page cache a budget bounds.
///
/// SQLite's connections are for one thread at a time, so each holder enters its own way.
protocol CacheHolder: AnyObject {
    /// Frees what the cache has too much. Never waits: one that is busy does it when it no longer is.
    func shrinkCacheUnlessBusy()
    /// The bound in force, in pages; for tests.
    var cachePagesNow: Int { get }
}

/// One budget of memory for the page caches of some connections.
///
/// The fewer there are, the more pages each may keep. When one is opened, what the others may keep shrinks at once, also of
/// those that are idle or wait for somebody; one that is busy shrinks when it no longer is.
final class CacheBudget: @unchecked Sendable {
    /// That of the connections that write, one for each database which was written to. Half of it for one database makes
    /// commits no slower than more would.
    static let writers = CacheBudget(bytesMax: 64 << 20, eachBytesMax: 32 << 20, eachBytesMin: 512 << 10)

    // Guards the fields below.
    private let monitor = Monitor()
    private var holders: [ObjectIdentifier: any CacheHolder] = [:]
    private var isTight = false
    private let pages: Atomic<Int>
    /// For a walk over a tree.
    private static let tightBytesMin = 64 << 10
    private let bytesMax: Int
    private let eachBytesMax: Int
    private let eachBytesMin: Int

    /// - Parameters:
    ///   - bytesMax: of all together, as long as each can have `eachBytesMin`.
    ///   - eachBytesMax: of one.
    ///   - eachBytesMin: what one needs for a walk over a tree; the bound where there are very many.
    init(bytesMax: Int, eachBytesMax: Int, eachBytesMin: Int) {
        self.bytesMax = bytesMax
        self.eachBytesMax = eachBytesMax
        self.eachBytesMin = eachBytesMin
        pages = Atomic(eachBytesMax / FileFormat.pageSizeBytes)
    }

    /// Pages that one may keep.
    var pagesEach: Int { pages.load(ordering: .relaxed) }

    var count: Int { monitor.withLock { holders.count } }

    /// For tests.
    var all: [any CacheHolder] { monitor.withLock { Array(holders.values) } }

    func add(_ holder: any CacheHolder) {
        let others = monitor.withLock { () -> [any CacheHolder] in
            holders[ObjectIdentifier(holder)] = holder
            return setPages() ? Array(holders.values) : []
        }
        for other in others { other.shrinkCacheUnlessBusy() }
    }

    func remove(_ holder: any CacheHolder) {
        monitor.withLock {
            holders[ObjectIdentifier(holder)] = nil
            // They grow when they are next used.
            _ = setPages()
        }
    }

    /// While memory is tight, all together may keep a quarter.
    func setTight(_ isTight: Bool) {
        let all = monitor.withLock { () -> [any CacheHolder] in
            self.isTight = isTight
            return setPages() ? Array(holders.values) : []
        }
        for holder in all { holder.shrinkCacheUnlessBusy() }
    }

    /// Whether each may keep less than before. By halves, so that the others hear of it seldom.
    private func setPages() -> Bool {
        let bytesMax = isTight ? bytesMax / 4 : bytesMax
        let eachBytesMin = isTight ? min(eachBytesMin, Self.tightBytesMin) : eachBytesMin
        var bytes = min(eachBytesMax, bytesMax)
        while bytes * holders.count > bytesMax, bytes > eachBytesMin { bytes /= 2 }
        let pagesNow = bytes / FileFormat.pageSizeBytes
        return pages.exchange(pagesNow, ordering: .relaxed) > pagesNow
    }
}

/// The page caches of the process.
package enum PageCaches {
    /// While memory is tight they are small. Never waits for a database that is busy: it follows when it no longer is.
    package static func setTight(_ isTight: Bool) {
        CacheBudget.writers.setTight(isTight)
        ReaderMemory.process.cache.setTight(isTight)
    }
}
