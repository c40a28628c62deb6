import CSQLite
import HearthModel

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
/// copied and no snapshot reads from the WAL any more, the next commit begins again at its start. A large WAL is cheap:
/// pages that changed many times are copied once.
///
/// 1. When the WAL is past its bound, the bulk is copied while commits go on (PASSIVE), which never keeps up fully with a
///    busy writer.
/// 2. The rest is copied under the writer's lock, which takes milliseconds, and snapshots that still read from the WAL
///    are waited for, some milliseconds as well (RESTART). Where they don't end, all is tried again later.
/// 3. A snapshot that lives so long that the WAL reaches `walPagesMax` is taken away from its holder.
final class Checkpointer: @unchecked Sendable {
    // Guards the fields below it.
    private let monitor = Monitor()
    private var request: Request?
    private var isRunning = false
    private var isStopping = false
    /// The WAL's length at which the next checkpoint is due.
    private var duePages: Int

    // Used by the checkpointer's thread only, and by `close` when that has ended.
    private var connection: Connection?
    private var largestWALPages = 0

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

    /// After a commit.
    func committed() {
        let pages = counters.walPages.load(ordering: .relaxed)
        // Without the lock: a stale `duePages` costs a needless or a later checkpoint.
        if pages < bounds.walPages { return }
        monitor.withLock {
            if pages >= duePages { ask(.due) }
        }
    }

    /// When nothing is to be written at the moment.
    func quiet() {
        if counters.walPages.load(ordering: .relaxed) < bounds.quietPages { return }
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
                while request == nil, !isStopping { monitor.wait() }
                defer { request = nil }
                return isStopping ? nil : request
            }
            guard let next else { break }
            checkpoint(next)
        }
        monitor.withLock {
            isRunning = false
            monitor.signal()
        }
    }

    private func checkpoint(_ request: Request) {
        let pages = counters.walPages.load(ordering: .relaxed)
        largestWALPages = max(largestWALPages, pages)
        var isReset = false
        do throws(Status) {
            let connection = try open()
            let isCopied = try copyBesideWriter(connection)
            if isCopied, request == .due || isOversized { isReset = try finish(connection) }
        } catch {
            // Disk full or an I/O error. The WAL keeps what isn't copied, commits meet the same trouble and report it,
            // and the next commits ask again.
            connection?.close()
            connection = nil
        }
        let now = counters.walPages.load(ordering: .relaxed)
        if !isReset, now > bounds.walPagesMax { pool.revoke(begunUpTo: now - bounds.walPagesMax / 2) }
        monitor.withLock { duePages = isReset ? bounds.walPages : max(bounds.walPages, now + bounds.walPages / 4) }
    }

    private func open() throws(Status) -> Connection {
        if let connection { return connection }
        let opened = try Connection(path: path, configuration: ["PRAGMA synchronous = FULL"])
        connection = opened
        return opened
    }

    /// False when a snapshot keeps the checkpoint from going on.
    private func copyBesideWriter(_ connection: Connection) throws(Status) -> Bool {
        defer { pool.releaseIdle() }
        for _ in 0..<bounds.passesMax {
            pool.releaseIdle()
            let progress = try connection.checkpoint(SQLITE_CHECKPOINT_PASSIVE)
            if !progress.isComplete { return false }
            let rest = counters.walPages.load(ordering: .relaxed) - progress.walPages
            if rest <= bounds.lockedPages { return true }
        }
        // The disk doesn't keep up with the writer, who has to wait now.
        return true
    }

    /// Whether the WAL's file is larger than it need be, after a long snapshot.
    private var isOversized: Bool { largestWALPages > bounds.walPages * 2 }

    /// True when the next commit will begin at the start of the WAL.
    private func finish(_ connection: Connection) throws(Status) -> Bool {
        // The file is kept where it can be: commits that overwrite are cheaper than commits that lengthen it, because the
        // file system has no size to log.
        let mode = isOversized ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_RESTART
        gate.lockFirst()
        defer { gate.unlock() }
        let deadline = MonotonicTime.now.advanced(milliseconds: bounds.patienceMilliseconds)
        while true {
            let returns = pool.returnCount
            pool.releaseIdle()
            if try connection.checkpoint(mode).isReset {
                largestWALPages = 0
                counters.walPages.store(0, ordering: .relaxed)
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
struct WALBounds: Sendable {
    /// A checkpoint is due. Documents with five random index entries each, 500,000 of them: a checkpoint at 50,000 pages
    /// allows 2.5 times the commits of one at 1,000.
    var walPages = 50_000
    /// Beyond this, snapshots that hold up the checkpoint are taken away.
    var walPagesMax = 400_000
    /// In quiet moments it pays from here on: readers search a shorter WAL, and a start after a crash is quick.
    var quietPages = 1_000
    /// What may be copied while the writer waits.
    var lockedPages = 2_000
    /// Passes beside the writer before it has to wait.
    var passesMax = 8
    /// How long the writer waits for snapshots that read from the WAL.
    var patienceMilliseconds = 5
}

extension Connection {
    struct CheckpointProgress {
        /// The WAL's length at the time of the checkpoint.
        var walPages: Int
        /// All of it is copied.
        var isComplete: Bool
        /// The WAL can be used from its start; RESTART and TRUNCATE only.
        var isReset: Bool
    }

    func checkpoint(_ mode: Int32) throws(Status) -> CheckpointProgress {
        var walPages: Int32 = 0
        var copied: Int32 = 0
        let result = sqlite3_wal_checkpoint_v2(handle, nil, mode, &walPages, &copied)
        if result != SQLITE_OK, result & 0xFF != SQLITE_BUSY {
            throw EngineError.status(handle, result, "cannot checkpoint")
        }
        return CheckpointProgress(
            walPages: Int(walPages), isComplete: copied >= walPages, isReset: result == SQLITE_OK)
    }
}
