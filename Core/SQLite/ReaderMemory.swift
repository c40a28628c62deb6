import HearthConcurrency
import Synchronization

/// One budget of memory for the page caches of all readers of the process, and a bound on their number.
///
/// The fewer readers there are, the more pages each may keep. When a reader is opened, what the others may keep
/// shrinks at once, also of those that are idle or wait for somebody; a reader whose call is running shrinks at its next call.
final class ReaderMemory: @unchecked Sendable {
    /// That of the process.
    static let process = ReaderMemory()

    // Guards the fields below.
    private let monitor = Monitor()
    private var readers: [ObjectIdentifier: Connection] = [:]
    private var pools: [ObjectIdentifier: WeakPool] = [:]
    private var opening = 0
    /// What each reader may keep at present.
    private let pagesEach: Atomic<Int>

    private let bytesMax: Int
    private let readersMax: Int
    /// From here on a reader that is opened closes idle ones of other databases.
    private let readersIdleMax: Int

    private struct WeakPool {
        weak var pool: ReaderPool?
    }

    /// What one reader keeps at most; twice of it made no read faster.
    private static let readerBytesMax = 8 << 20
    /// What one reader needs for a walk over a tree; the bound where there are very many.
    private static let readerBytesMin = 64 << 10

    init(bytesMax: Int = 64 << 20, readersMax: Int = 512, readersIdleMax: Int = 128) {
        self.bytesMax = bytesMax
        self.readersMax = readersMax
        self.readersIdleMax = readersIdleMax
        pagesEach = Atomic(Self.readerBytesMax / FileFormat.pageSizeBytes)
    }

    /// Pages that a reader may keep.
    var pagesPerReader: Int { pagesEach.load(ordering: .relaxed) }

    var readerCount: Int { monitor.withLock { readers.count } }

    func add(_ pool: ReaderPool) {
        monitor.withLock { pools[ObjectIdentifier(pool)] = WeakPool(pool: pool) }
    }

    func remove(_ pool: ObjectIdentifier) { monitor.withLock { pools[pool] = nil } }

    /// Makes room for one more reader; `add` or `cancelOpening` follows.
    /// - Parameter pool: its idle readers are none: it would have taken one of them.
    /// - Returns: false when there are too many, and none is idle.
    func beginOpening(for pool: ReaderPool) -> Bool {
        let (count, others) = monitor.withLock { () -> (Int, [ReaderPool]) in
            opening += 1
            let count = readers.count + opening
            return (count, count > readersIdleMax ? pools.values.compactMap(\.pool).filter { $0 !== pool } : [])
        }
        if count <= readersIdleMax { return true }
        // One of each database stays where it can, so that databases in turn don't open files all the time.
        for other in others { other.closeIdle(keeping: count > readersMax ? 0 : 1) }
        if count <= readersMax { return true }
        return monitor.withLock {
            if readers.count + opening <= readersMax { return true }
            opening -= 1
            return false
        }
    }

    func cancelOpening() { monitor.withLock { opening -= 1 } }

    func add(_ reader: Connection) {
        let others = monitor.withLock { () -> [Connection] in
            opening -= 1
            readers[ObjectIdentifier(reader)] = reader
            return setPages() ? Array(readers.values) : []
        }
        for other in others { other.shrinkCacheUnlessBusy() }
    }

    func remove(_ reader: Connection) {
        monitor.withLock {
            readers[ObjectIdentifier(reader)] = nil
            // They grow when they are next renewed.
            _ = setPages()
        }
    }

    /// Whether each may keep less than before. By halves, so that the others hear of it seldom.
    private func setPages() -> Bool {
        var bytes = Self.readerBytesMax
        while bytes * readers.count > bytesMax, bytes > Self.readerBytesMin { bytes /= 2 }
        let pages = bytes / FileFormat.pageSizeBytes
        return pagesEach.exchange(pages, ordering: .relaxed) > pages
    }
}
