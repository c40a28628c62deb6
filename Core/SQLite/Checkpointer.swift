import CSQLite
import HearthConcurrency
import HearthModel
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Copies pages from the WAL to the database, beside the writer.
///
/// A commit appends to the WAL. A *checkpoint* copies the newest form of each page from there to its place; when all is
/// copied and no snapshot reads from the WAL any more, the next commit begins again at its start. A large WAL is cheap to
/// write: pages that changed many times are copied once.
///
/// 1. When the WAL is past `walPages`, the bulk is copied while commits go on (PASSIVE), which never keeps up fully with
///    a busy writer.
/// 2. The rest is copied under the writer's lock, which takes milliseconds, and snapshots that still read from the WAL
///    are waited for (RESTART), the longer the longer the WAL is. Snapshots that begin meanwhile read from the database
///    and aren't in the way. Where the others don't end, all is tried again when the WAL has grown some more.
/// 3. From `walPagesMax` on the writer waits for the checkpoint, and snapshots that outlast it are taken away from
///    their holders. So the WAL has at most so many pages and those of one commit.
final class Checkpointer: @unchecked Sendable {
    // Guards the fields below it.
    private let monitor = Monitor()
    private var request: Request?
    private var isRunning = false
    private var isWorking = false
    private var isStopping = false
    /// The WAL's length at which the next checkpoint is due.
    private var duePages: Int

    // Used by the checkpointer's thread only, and by `stop` when that has ended.
    private var connection: Connection?

    /// The longest that the WAL was since its file was cut.
    private let largestWALPages = Atomic<Int>(0)

    private let path: String
    private let bounds: WALBounds
    private let gate: WriterGate
    private let pool: ReaderPool
    private let counters: StoreCounters

    private enum Request {
        case quiet
        case due
    }

    /// - Parameter gate: the writer's lock.
    init(path: String, bounds: WALBounds, gate: WriterGate, pool: ReaderPool, counters: StoreCounters) {
        self.path = path
        self.bounds = bounds
        self.gate = gate
        self.pool = pool
        self.counters = counters
        duePages = bounds.walPages
    }

    /// After a commit, under the writer's lock.
    func committed() {
        let pages = counters.walPages.load(ordering: .relaxed)
        if pages < bounds.walPages { return }
        monitor.withLock {
            if pages < duePages { return }
            ask(.due)
            // Within the lock, so that the thread, which ends the reservation, sees it together with the request.
            if pages >= bounds.walPagesMax, isRunning { gate.reserve() }
        }
    }

    /// When nothing is to be written at the moment.
    func quiet() {
        let pages = counters.walPages.load(ordering: .relaxed)
        if pages - counters.copiedPages.load(ordering: .relaxed) < bounds.quietPages, !isShrinkable { return }
        monitor.withLock { ask(.quiet) }
    }

    private func ask(_ new: Request) {
        if isStopping || request == .due { return }
        request = new
        if isRunning {
            monitor.signal()
        } else {
            isRunning = startThread()
        }
    }

    /// Whether something is asked for or under way.
    var isBusy: Bool { monitor.withLock { isWorking || request != nil } }

    /// Waits for the thread's end.
    func stop() {
        monitor.withLock {
            isStopping = true
            monitor.signal()
            while isRunning { monitor.wait() }
        }
        connection?.close()
        connection = nil
    }

    // MARK: The thread

    private func startThread() -> Bool {
        var thread = pthread_t()
        let box = Unmanaged.passRetained(self)
        let result = pthread_create(&thread, nil, checkpointerMain, box.toOpaque())
        if result != 0 {
            // Tried again at the next request.
            box.release()
            return false
        }
        pthread_detach(thread)
        return true
    }

    fileprivate func run() {
        while true {
            let next = monitor.withLock { () -> Request? in
                isWorking = false
                while request == nil, !isStopping { monitor.wait() }
                isWorking = true
                defer { request = nil }
                return isStopping ? nil : request
            }
            guard let next else { break }
            checkpoint(next)
        }
        monitor.withLock {
            gate.endReservation()
            isRunning = false
            monitor.signal()
        }
    }

    private func checkpoint(_ request: Request) {
        let pages = counters.walPages.load(ordering: .relaxed)
        largestWALPages.max(pages, ordering: .relaxed)
        var isReset = false
        do throws(Status) {
            let connection = try open()
            let isNearlyCopied = try copyBesideWriter(connection)
            // A snapshot that holds up the copying isn't waited for at once: it may be a long one.
            let isPressing = pages >= min(bounds.walPages * 4, bounds.walPagesMax)
            if isNearlyCopied || isPressing, request == .due || isShrinkable { isReset = try finish(connection, pages) }
        } catch {
            // Disk full or an I/O error. The WAL keeps what isn't copied, commits meet the same trouble and report it,
            // and the next commits ask again.
            connection?.close()
            connection = nil
        }
        gate.endReservation()
        let now = counters.walPages.load(ordering: .relaxed)
        // The waits for a long snapshot lengthen with the WAL, so they come less often.
        let next = isReset ? bounds.walPages : now + max(bounds.walPages / 4, now >= bounds.walPages * 4 ? now / 2 : 0)
        monitor.withLock { duePages = max(bounds.walPages, min(next, bounds.walPagesMax)) }
    }

    private func open() throws(Status) -> Connection {
        if let connection { return connection }
        let opened = try Connection(path: path, configuration: [])
        connection = opened
        return opened
    }

    /// Whether at most `lockedPages` are left.
    private func copyBesideWriter(_ connection: Connection) throws(Status) -> Bool {
        defer {
            pool.releaseIdle()
            counters.isWriterTooFast.store(false, ordering: .relaxed)
        }
        for _ in 0..<bounds.passesMax {
            pool.releaseIdle()
            let progress = try connection.checkpoint(SQLITE_CHECKPOINT_PASSIVE)
            counters.copiedPages.store(progress.copiedPages, ordering: .relaxed)
            let pages = counters.walPages.load(ordering: .relaxed)
            if pages - progress.copiedPages <= bounds.lockedPages { return true }
            if !progress.isComplete { return false }
            // The writer outruns the disk. Slowed down it's overtaken by and by, where a lock would stop it for seconds.
            counters.isWriterTooFast.store(pages > bounds.walPages * 2, ordering: .relaxed)
        }
        return false
    }

    /// Whether the WAL's file is larger than it need be, after a long snapshot.
    private var isShrinkable: Bool { largestWALPages.load(ordering: .relaxed) > bounds.walPages * 2 }

    /// True when the next commit will begin at the start of the WAL.
    private func finish(_ connection: Connection, _ pages: Int) throws(Status) -> Bool {
        // The file is kept where it can be: commits that overwrite are cheaper than commits that lengthen it, because the
        // file system has no size to log.
        let mode = isShrinkable ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_RESTART
        let patience = bounds.patienceMilliseconds(walPages: pages)
        gate.lockFirst()
        defer { gate.unlock() }
        // The snapshots of the first round may keep pages from being copied, those that began meanwhile read from the WAL
        // behind them; all later ones read from the database.
        let rounds = pages >= bounds.walPagesMax ? 2 : 0
        for round in 0...rounds {
            let reads = counters.reads.load(ordering: .relaxed)
            if try waitForReset(connection, mode, milliseconds: patience) { return true }
            if round < rounds { pool.revoke(begunUpTo: reads) }
        }
        return false
    }

    private func waitForReset(_ connection: Connection, _ mode: Int32, milliseconds: Int) throws(Status) -> Bool {
        let deadline = MonotonicTime.now.advanced(milliseconds: milliseconds)
        while true {
            let returns = pool.returnCount
            pool.releaseIdle()
            let progress = try connection.checkpoint(mode)
            counters.copiedPages.store(progress.copiedPages, ordering: .relaxed)
            if progress.isReset {
                if mode == SQLITE_CHECKPOINT_TRUNCATE { largestWALPages.store(0, ordering: .relaxed) }
                counters.walPages.store(0, ordering: .relaxed)
                counters.copiedPages.store(0, ordering: .relaxed)
                return true
            }
            if !pool.waitForReturn(after: returns, until: deadline) { return false }
        }
    }
}

private func checkpointerMain(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let argument { Unmanaged<Checkpointer>.fromOpaque(argument).takeRetainedValue().run() }
    return nil
}

/// When checkpoints are due, in pages.
public struct WALBounds: Sendable {
    /// A checkpoint is due. Documents with five random index entries each, 500,000 of them: a checkpoint at 50,000 pages
    /// allows 2.5 times the commits of one at 1,000. But a log that is written again from its start takes commits in less
    /// than half the time that one takes which still grows, so it had better not grow for long.
    public var walPages = 20_000
    /// The writer waits, and snapshots that hold up the checkpoint are taken away: 4 GiB.
    public var walPagesMax = 1_000_000
    /// In quiet moments it pays from here on: readers search a shorter WAL, and a start after a crash is quick.
    public var quietPages = 1_000
    /// What may be copied while the writer waits.
    public var lockedPages = 2_000
    /// Passes beside the writer at a time.
    public var passesMax = 8
    /// How long the writer waits for snapshots that read from the WAL, when the WAL has `walPages`.
    public var patienceMillisecondsMin = 5
    /// The same for a long WAL.
    public var patienceMillisecondsMax = 500

    public init() {}

    /// Grows with the square of the WAL's length: 5 ms, at twice the length 20 ms, at four times 80 ms.
    func patienceMilliseconds(walPages pages: Int) -> Int {
        let ratio = Double(pages) / Double(max(1, walPages))
        let patience = Double(patienceMillisecondsMin) * max(1, ratio * ratio)
        return Int(min(Double(patienceMillisecondsMax), patience))
    }
}

extension Connection {
    struct CheckpointProgress {
        /// Pages of the WAL that are in the database.
        var copiedPages: Int
        /// No snapshot kept it from copying all that there was.
        var isComplete: Bool
        /// The WAL can be used from its start; RESTART and TRUNCATE only.
        var isReset: Bool
    }

    func checkpoint(_ mode: Int32) throws(Status) -> CheckpointProgress {
        var pages: Int32 = 0
        var copied: Int32 = 0
        let result = sqlite3_wal_checkpoint_v2(handle, nil, mode, &pages, &copied)
        if result != SQLITE_OK, result & 0xFF != SQLITE_BUSY {
            throw EngineError.status(handle, result, "cannot checkpoint")
        }
        return CheckpointProgress(
            copiedPages: Int(copied), isComplete: copied == pages, isReset: result == SQLITE_OK)
    }
}
