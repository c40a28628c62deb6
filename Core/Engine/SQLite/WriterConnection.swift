import CSQLite
import Glibc
import HearthModel
import Synchronization

/// The connection that writes, and its lock.
final class WriterConnection: CacheHolder, @unchecked Sendable {
    // Guards the fields below it.
    let gate = WriterGate()
    private var connection: Connection?
    /// Whether the end of the WAL may hold a commit that failed; see `clearTail`.
    private var isTailDoubtful = false
    /// The error of writes after the store's end.
    var closedStatus = Status.unavailable("The database is closed.")

    /// Set when the cache must become smaller.
    private let isCacheTooLarge = Atomic(false)

    let path: String
    private let options: SQLiteStoreOptions
    /// Whether the file was made, or was there.
    private var hasFile = false
    private let counters: StoreCounters

    init(path: String, options: SQLiteStoreOptions, counters: StoreCounters) {
        self.path = path
        self.options = options
        self.counters = counters
    }

    // MARK: Under the lock

    /// The connection; opens it first when there is none.
    func open() throws(Status) -> Connection {
        if let connection { return connection }
        if options.isReadOnly {
            throw .failedPrecondition("\(EngineError.fileName(path)) was opened for reading only.")
        }
        // Later it is there, or was removed by another program.
        if !hasFile { try DataFolder.makeFile(path) }
        hasFile = true
        // Not even the making of the file may copy the log beside the checkpointer.
        let opened = try Connection(path: path, configuration: ["PRAGMA wal_autocheckpoint = 0"])
        try FileFormat.prepare(opened, path: path, hasLog: options.hasLog)
        for string in options.writerConfiguration {
            try opened.execute(string, "cannot open \(EngineError.fileName(path))")
        }
        let counters = Unmanaged.passUnretained(counters).toOpaque()
        sqlite3_wal_hook(opened.handle, walWasWritten, counters)
        sqlite3_busy_handler(opened.handle, writerMustWait, counters)
        connection = opened
        options.writerCache.add(self)
        opened.fitCache(to: options.writerCache)
        return opened
    }

    func rollBack() {
        // SQLite rolls back on its own after some failures.
        guard let connection, connection.isInTransaction else { return }
        do throws(Status) {
            try connection.control(.rollBack)
        } catch {
            // Closing rolls back as well; the next commit opens another connection.
            forget(connection)
        }
    }

    private func forget(_ connection: Connection) {
        connection.close()
        options.writerCache.remove(self)
        self.connection = nil
    }

    /// A commit has failed: its pages may be in the WAL.
    func commitFailed() {
        isTailDoubtful = true
        rollBack()
        clearTail()
    }

    /// A commit has overwritten the pages there.
    func commitAppended() { isTailDoubtful = false }

    /// Makes sure that a commit that failed stays so after a crash.
    ///
    /// When the failure came late, its pages are in the WAL after the last good commit, complete and invisible. This
    /// process overwrites them by the next commit; a process that starts after a crash would take them for a commit. A
    /// commit of only the version overwrites the first of them and thereby breaks the chain of checksums. While the
    /// disk fails even that, each commit, each `maintain` and the checkpointer's thread try again.
    private func clearTail() {
        do throws(Status) {
            let connection = try open()
            try connection.execute("PRAGMA user_version = \(FileFormat.version)", "cannot write")
            isTailDoubtful = false
        } catch {
            // The failure of the commit has been reported, and is not over before this succeeds.
            rollBack()
        }
    }

    // MARK: The cache

    /// Keeps as many pages as it may at present. Under the lock, between transactions.
    func fitCache() {
        isCacheTooLarge.store(false, ordering: .relaxed)
        connection?.fitCache(to: options.writerCache)
    }

    /// Frees its pages; it keeps fewer from its next transaction on. The file is not accessed here.
    func shrinkCacheUnlessBusy() {
        isCacheTooLarge.store(true, ordering: .sequentiallyConsistent)
        shrinkCache()
    }

    /// Without a lock. The holder of the lock checks again after unlocking.
    private func shrinkCache() {
        guard gate.tryLock() else { return }
        if isCacheTooLarge.exchange(false, ordering: .relaxed), let connection {
            sqlite3_db_release_memory(connection.handle)
        }
        gate.unlock()
    }

    /// Ends the use of the lock by a commit.
    func unlock() {
        gate.unlock()
        if isCacheTooLarge.load(ordering: .sequentiallyConsistent) { shrinkCache() }
    }

    var cachePagesNow: Int { gate.withLock { connection?.cachePagesNow ?? 0 } }

    // MARK: Locking

    /// Whether no pages of a failed commit are left in the WAL; tries to remove them.
    func settleTail() -> Bool {
        gate.withLock {
            if isTailDoubtful { clearTail() }
            return !isTailDoubtful
        }
    }

    /// Copies the WAL, and closes the connection. Must be called when no other connection has the file open.
    func close() throws(Status) {
        gate.lock()
        defer { gate.unlock() }
        guard let connection else { return }
        defer { forget(connection) }
        _ = try connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
    }
}

/// Called by SQLite after each commit, with the length of the WAL.
private func walWasWritten(
    _ counters: UnsafeMutableRawPointer?, _ handle: OpaquePointer?, _ name: UnsafePointer<CChar>?, _ pages: Int32
) -> Int32 {
    if let counters {
        let counters = Unmanaged<StoreCounters>.fromOpaque(counters).takeUnretainedValue()
        counters.appendings.add(1, ordering: .relaxed)
        let before = counters.walPages.exchange(Int(pages), ordering: .relaxed)
        if pages <= before { counters.copiedPages.store(0, ordering: .relaxed) }
    }
    return SQLITE_OK
}

/// Called by SQLite when another connection has the lock of writers, with the number of calls before for this lock.
///
/// No other process has the file open, and only this connection writes. But a reader that finds the index of the WAL half
/// written takes that lock for a moment, to read it again: `walIndexReadHdr` of SQLite's `wal.c`.
/// - Returns: 0 to give up, after about a second.
private func writerMustWait(_ counters: UnsafeMutableRawPointer?, _ calls: Int32) -> Int32 {
    if let counters {
        Unmanaged<StoreCounters>.fromOpaque(counters).takeUnretainedValue().writerWaits.add(1, ordering: .relaxed)
    }
    usleep(calls < 20 ? 50 : 1000)
    return calls < 1000 ? 1 : 0
}
