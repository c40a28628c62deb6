import HearthConcurrency
import Synchronization

/// One memory budget for the page caches of all readers of the process, and a bound on their number.
///
/// While many are open at once there may be one too many for a moment: each counts as opening until its cache counts.
final class ReaderMemory: @unchecked Sendable {
    /// The budget of the process.
    static let process = ReaderMemory()

    // Guards the fields below.
    private let monitor = Monitor()
    private var pools: [ObjectIdentifier: WeakPool] = [:]
    private var opening = 0
    let cache: CacheBudget

    private let readersMax: Int
    /// Above this, opening a reader closes idle ones of other databases.
    private let readersIdleMax: Int

    private struct WeakPool {
        weak var pool: ReaderPool?
    }

    /// The limit of one reader; twice as much made no read faster.
    private static let readerBytesMax = 8 << 20
    /// The needs of one reader for a walk over a tree; the limit when there are very many.
    private static let readerBytesMin = 64 << 10

    init(bytesMax: Int = 64 << 20, readersMax: Int = 512, readersIdleMax: Int = 128) {
        cache = CacheBudget(
            bytesMax: bytesMax, eachBytesMax: Self.readerBytesMax, eachBytesMin: Self.readerBytesMin)
        self.readersMax = readersMax
        self.readersIdleMax = readersIdleMax
    }

    /// Pages that a reader may keep.
    var pagesPerReader: Int { cache.pagesEach }

    var readerCount: Int { cache.count }

    func add(_ pool: ReaderPool) {
        monitor.withLock { pools[ObjectIdentifier(pool)] = WeakPool(pool: pool) }
    }

    func remove(_ pool: ObjectIdentifier) { monitor.withLock { pools[pool] = nil } }

    /// Frees capacity for one more reader; `add` or `cancelOpening` follows.
    /// - Parameter pool: it has no idle readers, or it would have taken one of them.
    /// - Returns: false when there are too many, and none is idle.
    func beginOpening(for pool: ReaderPool) -> Bool {
        let (count, others) = monitor.withLock { () -> (Int, [ReaderPool]) in
            opening += 1
            let count = cache.count + opening
            return (count, count > readersIdleMax ? pools.values.compactMap(\.pool).filter { $0 !== pool } : [])
        }
        if count <= readersIdleMax { return true }
        // One reader of each database is kept if possible, so that alternating databases don't open files all the time.
        for other in others { other.closeIdle(keeping: count > readersMax ? 0 : 1) }
        if count <= readersMax { return true }
        return monitor.withLock {
            if cache.count + opening <= readersMax { return true }
            opening -= 1
            return false
        }
    }

    func cancelOpening() { monitor.withLock { opening -= 1 } }

    func add(_ reader: Connection) {
        cache.add(reader)
        cancelOpening()
    }

    func remove(_ reader: Connection) { cache.remove(reader) }
}
