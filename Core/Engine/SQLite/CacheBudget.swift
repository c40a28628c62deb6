import HearthConcurrency
import Synchronization

/// An owner of a connection whose page cache a budget bounds.
///
/// SQLite's connections are for one thread at a time, so each owner enters in its own manner.
protocol CacheHolder: AnyObject {
    /// Frees the excess of the cache. Never waits: a busy owner does it when it is no longer busy.
    func shrinkCacheUnlessBusy()
    /// The bound in force, in pages; for tests.
    var cachePagesNow: Int { get }
}

/// One memory budget for the page caches of some connections.
///
/// The fewer there are, the more pages each may keep. When a connection is opened, the limit of the others shrinks at
/// once, also of idle and waiting ones; a busy one shrinks when it is no longer busy.
final class CacheBudget: @unchecked Sendable {
    /// The budget of the writers' connections, one for each database that was written to. Half of it for one database
    /// is enough: more makes commits no faster.
    static let writers = CacheBudget(bytesMax: 64 << 20, eachBytesMax: 32 << 20, eachBytesMin: 512 << 10)

    // Guards the fields below.
    private let monitor = Monitor()
    private var holders: [ObjectIdentifier: any CacheHolder] = [:]
    private var isTight = false
    private let pages: Atomic<Int>
    /// Enough for a walk over a tree.
    private static let tightBytesMin = 64 << 10
    private let bytesMax: Int
    private let eachBytesMax: Int
    private let eachBytesMin: Int

    /// - Parameters:
    ///   - bytesMax: limit of all together, as long as each can have `eachBytesMin`.
    ///   - eachBytesMax: limit of one.
    ///   - eachBytesMin: what one needs for a walk over a tree; the limit when there are very many.
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

    /// While memory is tight, all together may keep an eighth.
    func setTight(_ isTight: Bool) {
        let all = monitor.withLock { () -> [any CacheHolder] in
            self.isTight = isTight
            return setPages() ? Array(holders.values) : []
        }
        for holder in all { holder.shrinkCacheUnlessBusy() }
    }

    /// Whether each may keep less than before. The limit changes by halves, so that the others are notified seldom.
    private func setPages() -> Bool {
        let bytesMax = isTight ? bytesMax / 8 : bytesMax
        let eachBytesMin = isTight ? min(eachBytesMin, Self.tightBytesMin) : eachBytesMin
        var bytes = min(eachBytesMax, bytesMax)
        while bytes * holders.count > bytesMax, bytes > eachBytesMin { bytes /= 2 }
        let pagesNow = bytes / FileFormat.pageSizeBytes
        return pages.exchange(pagesNow, ordering: .relaxed) > pagesNow
    }
}

/// The page caches of the process.
package enum PageCaches {
    /// While memory is tight they are small. Never waits for a busy database: it follows when it is no longer busy.
    package static func setTight(_ isTight: Bool) {
        CacheBudget.writers.setTight(isTight)
        ReaderMemory.process.cache.setTight(isTight)
    }
}
