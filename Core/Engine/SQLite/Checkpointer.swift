import CSQLite
import HearthConcurrency
import HearthModel
import HearthEngine
import Synchronization

/// Copies pages from the WAL to the database, beside the writer.
///
/// A commit appends to the WAL. A *checkpoint* copies the newest form of each page from there to the database file;
/// when all is copied and no snapshot reads from the WAL any more, the next commit begins again at its start. A large
/// WAL is cheap to write: pages that changed many times are copied once.
///
/// 1. When the WAL is longer than `walPages`, the bulk is copied while commits continue (PASSIVE), which never keeps up
///    fully with a busy writer. Never when all is copied already: see `LogIndex` for the defect of SQLite that this
///    avoids.
/// 2. The rest is copied under the writer's lock, which takes milliseconds. Then the checkpointer waits for snapshots
///    that still read from the WAL (RESTART); the longer the WAL, the longer it waits. Snapshots that begin meanwhile
///    read from the database and do not block it. If the others don't end, it tries again when the WAL has grown some
///    more.
/// 3. From `walPagesMax` on the writer waits for the checkpoint, and snapshots that outlast it are taken from their
///    holders. So the WAL has at most this many pages plus those of one commit.
///
/// While commits or checkpoints fail, its thread tries again a few times a minute, also without writes.
final class Checkpointer: @unchecked Sendable {
    // Guards the fields below it.
    private let monitor = Monitor()
    private var request: Request?
    private var retry: MonotonicTime?
    private var isRunning = false
    private var isWorking = false
    private var isStopping = false
    /// The WAL's length at which the next checkpoint is due.
    private var duePages: Int

    // Used by the checkpointer's thread only, and by `stop` when that has ended.
    private var connection: Connection?
    private var probe: DiskProbe

    /// The greatest length of the WAL since its file was truncated.
    private let largestWALPages = Atomic<Int>(0)
    /// Whether the WAL's file is to be emptied.
    private let mustBeEmpty = Atomic(false)

    private let writer: WriterConnection
    private let options: SQLiteStoreOptions
    private let bounds: WALBounds
    private let pool: ReaderPool
    private let counters: StoreCounters
    private let health: StoreHealth
    private var gate: WriterGate { writer.gate }

    private enum Request {
        case quiet
        case due
        /// Commits or checkpoints have failed.
        case retry
    }

    init(
        writer: WriterConnection, options: SQLiteStoreOptions, pool: ReaderPool, counters: StoreCounters,
        health: StoreHealth
    ) {
        self.writer = writer
        self.options = options
        bounds = options.bounds
        self.pool = pool
        self.counters = counters
        self.health = health
        probe = DiskProbe(path: writer.path)
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

    /// Called when there is nothing to write at the moment.
    func quiet() {
        let pages = counters.walPages.load(ordering: .relaxed)
        if pages - counters.copiedPages.load(ordering: .relaxed) < bounds.quietPages, !isShrinkable { return }
        monitor.withLock { ask(.quiet) }
    }

    /// Requests a full checkpoint, however short the log is.
    func force() { monitor.withLock { ask(.due) } }

    /// After a failed commit: makes the thread find out when commits are possible again.
    func commitFailed() {
        monitor.withLock {
            retry = retry ?? MonotonicTime.now.advanced(milliseconds: options.retryMilliseconds)
            wake()
        }
    }

    /// Requests a checkpoint that empties the WAL's file.
    func empty() {
        mustBeEmpty.store(true, ordering: .relaxed)
        force()
    }

    private func ask(_ new: Request) {
        if isStopping || request == .due { return }
        request = new
        wake()
    }

    private func wake() {
        if isStopping { return }
        if isRunning { return monitor.signal() }
        // When no thread can be started, the next request tries again.
        guard let thread = NamedThread.start("hearth-checkpt", { [self] in run() }) else { return }
        thread.detach()
        isRunning = true
    }

    /// Whether a checkpoint is requested or under way.
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

    private func run() {
        while let next = next() {
            switch next {
            case .quiet, .due: checkpoint(next)
            case .retry: tryAgain()
            }
        }
        monitor.withLock {
            gate.endReservation()
            isRunning = false
            monitor.signal()
        }
    }

    /// Waits for the next work; nil when the thread must end.
    private func next() -> Request? {
        monitor.withLock { () -> Request? in
            isWorking = false
            while !isStopping {
                if let found = request {
                    request = nil
                    isWorking = true
                    return found
                }
                if let time = retry {
                    if MonotonicTime.now >= time {
                        retry = nil
                        isWorking = true
                        return .retry
                    }
                    monitor.wait(until: time)
                } else {
                    monitor.wait()
                }
            }
            return nil
        }
    }

    /// Checks whether the disk works again.
    private func tryAgain() {
        if health.isFailing, writer.settleTail(), probe.succeeds(walPages: counters.walPages.load(ordering: .relaxed)) {
            health.commitsRecovered()
        }
        if health.areCheckpointsFailing { checkpoint(.due) }
        if health.isFailing { monitor.withLock { scheduleRetry() } }
    }

    private func scheduleRetry() {
        retry = MonotonicTime.now.advanced(milliseconds: options.retryMilliseconds)
    }

    private func checkpoint(_ request: Request) {
        let pages = counters.walPages.load(ordering: .relaxed)
        largestWALPages.max(pages, ordering: .relaxed)
        health.log(isLong: pages >= bounds.walPagesMax / 4, bytes: pages * FileFormat.logPageSizeBytes)
        var isReset = false
        do throws(Status) {
            let connection = try open()
            let isNearlyCopied = try copyBesideWriter(connection)
            // A snapshot that blocks the copying isn't waited for at once: it may be a long one.
            let isPressing = pages >= min(bounds.walPages * 4, bounds.walPagesMax)
            if isNearlyCopied || isPressing, request == .due || isShrinkable { isReset = try finish(connection, pages) }
            health.checkpointSucceeded()
        } catch {
            // Disk full or an I/O error. The WAL keeps the pages that are not copied, and all is tried again later.
            connection?.close()
            connection = nil
            counters.failedCheckpoints.add(1, ordering: .relaxed)
            health.checkpointFailed(error)
            monitor.withLock { scheduleRetry() }
        }
        gate.endReservation()
        if isReset { return }
        let now = counters.walPages.load(ordering: .relaxed)
        // The waits for a long snapshot lengthen with the WAL, so they are rarer.
        let next = now + max(bounds.walPages / 4, now >= bounds.walPages * 4 ? now / 2 : 0)
        monitor.withLock { duePages = max(bounds.walPages, min(next, bounds.walPagesMax)) }
    }

    private func open() throws(Status) -> Connection {
        if let connection { return connection }
        let opened = try Connection(path: writer.path, configuration: ["PRAGMA wal_autocheckpoint = 0"])
        // Like readers: after a failure it is closed while others are opened.
        _ = hearth_sqlite3_keep_log_on_close(opened.handle)
        // The log's index exists after the first read.
        _ = try opened.number("SELECT count(*) FROM sqlite_schema", "cannot checkpoint")
        options.checkpointConnectionOpened?(opened)
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
            // Only this thread copies. So a log that isn't fully copied now stays so until the checkpoint has begun,
            // and no commit restarts the log under it.
            guard let index = connection.logIndex, !index.isFullyCopied else { return true }
            if connection.logIndex?.isFullyCopied != false { counters.unsafeCheckpoints.add(1, ordering: .relaxed) }
            let progress = try connection.checkpoint(SQLITE_CHECKPOINT_PASSIVE)
            counters.noteCheckpoint(copied: progress.copiedPages)
            let pages = counters.walPages.load(ordering: .relaxed)
            if pages - progress.copiedPages <= bounds.lockedPages { return true }
            if !progress.isComplete { return false }
            // The writer is faster than the disk. When slowed down, the checkpointer catches up over time; a lock would
            // stop the writer for seconds.
            counters.isWriterTooFast.store(pages > bounds.walPages * 2, ordering: .relaxed)
        }
        return false
    }

    /// Whether the WAL's file is larger than necessary, after a long snapshot.
    private var isShrinkable: Bool {
        largestWALPages.load(ordering: .relaxed) > bounds.walPages * 2 || mustBeEmpty.load(ordering: .relaxed)
    }

    /// True when the next commit will begin at the start of the WAL.
    private func finish(_ connection: Connection, _ pages: Int) throws(Status) -> Bool {
        // The file is kept if possible: commits that overwrite are cheaper than commits that lengthen it, because the
        // file system has no size to log.
        let mode = isShrinkable ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_RESTART
        let patience = bounds.patienceMilliseconds(walPages: pages)
        gate.lockFirst()
        defer { gate.unlock() }
        // The snapshots of the first round may keep pages from being copied, and those that began meanwhile read from
        // the WAL after them; all later ones read from the database.
        let rounds = pages >= bounds.walPagesMax ? 2 : 0
        for round in 0...rounds {
            let reads = counters.reads.load(ordering: .relaxed)
            if try waitForReset(connection, mode, milliseconds: patience) { return true }
            if round < rounds {
                let revoked = pool.revoke(begunUpTo: reads)
                if revoked > 0 { health.revoked(revoked) }
            }
        }
        return false
    }

    private func waitForReset(_ connection: Connection, _ mode: Int32, milliseconds: Int) throws(Status) -> Bool {
        let deadline = MonotonicTime.now.advanced(milliseconds: milliseconds)
        while true {
            let returns = pool.returnCount
            pool.releaseIdle()
            let progress = try connection.checkpoint(mode)
            counters.noteCheckpoint(copied: progress.copiedPages)
            if progress.isReset {
                if mode == SQLITE_CHECKPOINT_TRUNCATE {
                    largestWALPages.store(0, ordering: .relaxed)
                    mustBeEmpty.store(false, ordering: .relaxed)
                }
                counters.walPages.store(0, ordering: .relaxed)
                counters.copiedPages.store(0, ordering: .relaxed)
                // Requests that arrived meanwhile concerned the old log. Under the writer's lock, so that no later
                // commit's request is lost.
                monitor.withLock {
                    if request == .due { request = nil }
                    duePages = bounds.walPages
                }
                return true
            }
            if !pool.waitForReturn(after: returns, until: deadline) { return false }
        }
    }
}

extension Connection {
    struct CheckpointProgress {
        /// Pages of the WAL that are in the database.
        var copiedPages: Int
        /// No snapshot prevented it from copying everything.
        var isComplete: Bool
        /// The WAL can be used from its start; RESTART and TRUNCATE only.
        var isReset: Bool
    }

    var logIndex: LogIndex? { LogIndex(handle) }

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
