import HearthConcurrency
import HearthModel
import HearthEngine
import Synchronization

import Glibc

/// A store in one SQLite file.
///
/// One connection writes, under a lock; a pool of others reads; one more copies the WAL into the database beside them.
/// Invariants:
///
/// - `write` is one SQLite transaction with `synchronous = FULL`: one fdatasync of the WAL makes it durable.
/// - A snapshot is a read transaction of a pooled connection. Without new commits, an idle reader keeps its
///   transaction, so that the next snapshot reuses it. `counters.commits` distinguishes the two cases.
/// - After any failure of the engine in a transaction no further statement runs in it, and it is rolled back.
///
/// See `FileFormat` for the file and `Checkpointer` for the bounds of the WAL.
package final class SQLiteStore: Store, Sendable {
    private let path: String
    private let folder: DataFolder?
    private let options: SQLiteStoreOptions
    private let closed = Atomic(false)
    let counters = StoreCounters()
    private let writer: WriterConnection
    private let pool: ReaderPool
    private let checkpointer: Checkpointer
    private let health: StoreHealth

    /// Opens the store in the file at `path`, which is made when it doesn't exist.
    /// - Throws: FAILED_PRECONDITION when the file is of a newer format, or another process uses it; DATA_LOSS when it
    ///   isn't a Hearth database, or is damaged.
    package convenience init(path: String, options: SQLiteStoreOptions = SQLiteStoreOptions()) throws(Status) {
        try self.init(path: path, name: path, options: options, folder: nil)
    }

    /// - Parameters:
    ///   - name: the store's name for the observer.
    ///   - folder: kept locked while the store lives.
    init(path: String, name: String, options: SQLiteStoreOptions, folder: DataFolder?) throws(Status) {
        self.folder = folder
        self.path = path
        self.options = options
        health = StoreHealth(name: name, observer: options.observer)
        pool = ReaderPool(path: path, options: options, counters: counters)
        writer = WriterConnection(path: path, options: options, counters: counters)
        checkpointer = Checkpointer(
            writer: writer, options: options, pool: pool, counters: counters, health: health)
        try Self.checkContents(path, name, options)
        if options.isReadOnly {
            let connection = try Connection(path: path, configuration: [], isReadOnly: true)
            try FileFormat.check(connection, path: path, hasLog: options.hasLog)
        } else {
            let writer = writer
            _ = try writer.gate.withLock { () throws(Status) in try writer.open() }
        }
    }

    /// A file without contents is that of a new database after a crash, or was truncated; it opens as an empty database.
    /// With a log it was truncated, because the log is begun after the file's first page is durable. SQLite would take it
    /// for a new one, and discard the log.
    private static func checkContents(_ path: String, _ name: String, _ options: SQLiteStoreOptions) throws(Status) {
        var information = stat()
        guard stat(path, &information) == 0, information.st_size == 0 else { return }
        if stat(path + "-wal", &information) == 0, information.st_size > 0 {
            throw Status(.dataLoss, "\(EngineError.fileName(path)) is empty, but its log is not: it was truncated.")
        }
        options.observer?.store(name, reports: .foundEmpty(file: path))
    }

    deinit { close() }

    /// Known without waiting for a running commit.
    var isOpen: Bool { !closed.load(ordering: .acquiring) }

    var isCheckpointing: Bool { checkpointer.isBusy }

    /// Requests a checkpoint that is not due, for tests.
    func forceCheckpoint() { checkpointer.force() }

    // MARK: Store

    package func snapshot() throws(Status) -> any Snapshot { try pool.snapshot(.short) }

    package func snapshot(_ use: SnapshotUse) throws(Status) -> any Snapshot { try pool.snapshot(use) }

    package func image() throws(Status) -> any StoreImage {
        writer.gate.lock()
        defer { writer.unlock() }
        if !isOpen { throw writer.closedStatus }
        return try SQLiteImage(path: path, counters: counters, images: options.images)
    }

    package func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        let start = MonotonicTime.now
        var failure: Status?
        defer { if let failure { report(failure) } }
        let result = try commit(body, &failure)
        if counters.isWriterTooFast.load(ordering: .relaxed) {
            // Half the speed.
            let spent = MonotonicTime.now.nanoseconds - start.nanoseconds
            usleep(UInt32(min(spent / 1000, Self.pauseMicrosecondsMax)))
        }
        return result
    }

    private static let pauseMicrosecondsMax: Int64 = 50_000

    /// - Parameter failure: set to the engine's message when the engine, and not the body, failed.
    private func commit<Result>(
        _ body: (any StoreTransaction) throws(Status) -> Result, _ failure: inout Status?
    ) throws(Status) -> Result {
        writer.gate.lock()
        defer { writer.unlock() }
        if !isOpen { throw writer.closedStatus }
        let connection: Connection
        do throws(Status) {
            connection = try writer.open()
            writer.fitCache()
            try connection.control(.begin)
        } catch {
            failure = error
            writer.rollBack()
            throw error
        }
        let result: Result
        do throws(Status) {
            let transaction = SQLiteTransaction(connection, lease: try connection.beginLease())
            defer { transaction.close() }
            result = try body(transaction)
            // The body may have caught it, but the changes up to there are lost.
            if let failure = connection.leaseFailure { throw failure }
        } catch {
            failure = connection.leaseFailure
            writer.rollBack()
            throw error
        }
        let appendings = counters.appendings.load(ordering: .relaxed)
        do throws(Status) {
            try connection.control(.commit)
        } catch {
            failure = error
            writer.commitFailed()
            throw error
        }
        // A transaction that changed nothing leaves the log and the readers' states unchanged.
        if counters.appendings.load(ordering: .relaxed) != appendings {
            writer.commitAppended()
            counters.commits.add(1, ordering: .releasing)
            checkpointer.committed()
        }
        return result
    }

    /// Reports a failure of the engine to the observer; the checkpointer finds out when it is over.
    private func report(_ failure: Status) {
        // An error such as a value that is too large for the engine does not concern the disk.
        guard [.unavailable, .dataLoss, .internal, .failedPrecondition].contains(failure.code), isOpen,
            !options.isReadOnly
        else { return }
        counters.failedCommits.add(1, ordering: .relaxed)
        health.commitFailed(failure)
        checkpointer.commitFailed()
    }

    package func maintain() {
        if options.isReadOnly || !isOpen { return }
        _ = writer.settleTail()
        checkpointer.quiet()
    }

    package func settle() -> Bool {
        if options.isReadOnly || !isOpen { return true }
        var information = stat()
        if stat(path + DatabaseFileName.walSuffix, &information) != 0 || information.st_size == 0 { return true }
        checkpointer.empty()
        return false
    }

    package func close() { close(because: .unavailable("The database is closed.")) }

    package func close(because reason: Status) {
        // Under the lock, so that no commit is under way afterwards.
        let wasClosed = writer.gate.withLock {
            if isOpen { writer.closedStatus = reason }
            return closed.exchange(true, ordering: .acquiringAndReleasing)
        }
        if wasClosed { return }
        checkpointer.stop()
        pool.close(because: reason)
        do throws(Status) {
            try writer.close()
        } catch {
            // Pages that were not copied stay in the WAL until the next start.
            health.checkpointFailed(error)
        }
        health.closed()
    }

    package var statistics: StoreStatistics {
        var statistics = StoreStatistics()
        (statistics.shortSnapshots, statistics.longSnapshots) = pool.openCounts
        statistics.revokedSnapshots = counters.revokedSnapshots.load(ordering: .relaxed)
        statistics.logBytes = counters.walPages.load(ordering: .relaxed) * FileFormat.logPageSizeBytes
        statistics.checkpoints = counters.checkpoints.load(ordering: .relaxed)
        statistics.failedCheckpoints = counters.failedCheckpoints.load(ordering: .relaxed)
        statistics.unsafeCheckpoints = counters.unsafeCheckpoints.load(ordering: .relaxed)
        statistics.failedCommits = counters.failedCommits.load(ordering: .relaxed)
        return statistics
    }

    package func damage(max: Int) throws(Status) -> [String] {
        let connection = try Connection(path: path, configuration: options.readerConfiguration, isReadOnly: true)
        defer { connection.close() }
        do throws(Status) {
            let found = try connection.strings(
                "PRAGMA integrity_check(\(max))", "cannot check \(EngineError.fileName(path))")
            return found == ["ok"] ? [] : found
        } catch {
            // So much damage that even the check fails.
            if error.code == .dataLoss { return [error.message] }
            throw error
        }
    }

    /// The bytes of the file and of its log.
    package var sizeBytes: Int? {
        var sum = 0
        for file in [path, path + "-wal"] {
            var information = stat()
            if stat(file, &information) == 0 { sum += Int(information.st_size) }
        }
        return sum
    }
}
