import CSQLite
import HearthConcurrency
import HearthModel
import HearthStorage
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A store in one SQLite file.
///
/// One connection writes, under a lock; a pool of others reads; one more copies the WAL into the database beside them.
/// What holds at all times:
///
/// - `write` is one SQLite transaction with `synchronous = FULL`: one fdatasync of the WAL makes it durable.
/// - A snapshot is a read transaction of a pooled connection. While nothing is committed, an idle reader keeps its
///   transaction, so that the next snapshot finds it open. `counters.commits` tells the two cases apart.
/// - After any failure of the engine in a transaction nothing more is run in it, and it's rolled back.
///
/// See `FileFormat` for the file and `Checkpointer` for what bounds the WAL.
public final class SQLiteStore: Store, @unchecked Sendable {
    // Guards the fields below it.
    private let gate = WriterGate()
    private var writer: Connection?
    /// Whether the end of the WAL may hold a commit that failed; see `clearTail`.
    private var isTailDoubtful = false

    private let path: String
    private let folder: DataFolder?
    private let options: SQLiteStoreOptions
    private let closed = Atomic(false)
    let counters = StoreCounters()
    private let pool: ReaderPool
    private let checkpointer: Checkpointer

    /// Opens the store in the file at `path`, which is made when it doesn't exist.
    /// - Throws: FAILED_PRECONDITION when the file isn't ours, is of a newer format, or another process uses it.
    public convenience init(path: String, options: SQLiteStoreOptions = SQLiteStoreOptions()) throws(Status) {
        try self.init(path: path, options: options, folder: nil)
    }

    /// - Parameter folder: kept locked while the store lives.
    init(path: String, options: SQLiteStoreOptions, folder: DataFolder?) throws(Status) {
        self.folder = folder
        self.path = path
        self.options = options
        pool = ReaderPool(path: path, options: options, counters: counters)
        checkpointer = Checkpointer(path: path, bounds: options.bounds, gate: gate, pool: pool, counters: counters)
        if options.isReadOnly {
            try FileFormat.check(try Connection(path: path, configuration: [], isReadOnly: true), path: path)
        } else {
            _ = try openWriter()
        }
    }

    deinit { close() }

    /// Known without waiting for a commit that runs.
    var isOpen: Bool { !closed.load(ordering: .acquiring) }

    var isCheckpointing: Bool { checkpointer.isBusy }

    // MARK: Store

    public func snapshot() throws(Status) -> any Snapshot { try pool.snapshot(.short) }

    public func snapshot(_ use: SnapshotUse) throws(Status) -> any Snapshot { try pool.snapshot(use) }

    public func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        let start = MonotonicTime.now
        let result = try commit(body)
        if counters.isWriterTooFast.load(ordering: .relaxed) {
            // Half the pace.
            let spent = MonotonicTime.now.nanoseconds - start.nanoseconds
            usleep(UInt32(min(spent / 1000, Self.pauseMicrosecondsMax)))
        }
        return result
    }

    private static let pauseMicrosecondsMax: Int64 = 50_000

    private func commit<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        gate.lock()
        defer { gate.unlock() }
        if !isOpen { throw .unavailable("The database is closed.") }
        let connection = try openWriter()
        let result: Result
        do throws(Status) {
            try connection.control(.begin)
            let transaction = SQLiteTransaction(connection, lease: try connection.beginLease())
            defer { transaction.close() }
            result = try body(transaction)
            // The body may have caught it, but what SQLite did up to there is gone.
            if let failure = connection.leaseFailure { throw failure }
        } catch {
            rollBack(connection)
            throw error
        }
        let appendings = counters.appendings.load(ordering: .relaxed)
        do throws(Status) {
            try connection.control(.commit)
        } catch {
            isTailDoubtful = true
            rollBack(connection)
            clearTail()
            throw error
        }
        // A transaction that changed nothing leaves the log and the readers' states as they are.
        if counters.appendings.load(ordering: .relaxed) != appendings {
            isTailDoubtful = false
            counters.commits.add(1, ordering: .releasing)
            checkpointer.committed()
        }
        return result
    }

    public func maintain() {
        gate.withLock { if isTailDoubtful, isOpen { clearTail() } }
        if options.isReadOnly { return }
        checkpointer.quiet()
    }

    public func close() {
        // Under the lock, so that no commit is under way afterwards.
        let wasClosed = gate.withLock { closed.exchange(true, ordering: .acquiringAndReleasing) }
        if wasClosed { return }
        checkpointer.stop()
        pool.close()
        gate.withLock {
            guard let connection = writer else { return }
            do throws(Status) {
                _ = try connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
            } catch {
                // There is nobody to tell. What wasn't copied stays in the WAL until the next start.
            }
            connection.close()
            writer = nil
        }
    }

    public func damage(max: Int) throws(Status) -> [String] {
        let connection = try Connection(path: path, configuration: options.readerConfiguration, isReadOnly: true)
        defer { connection.close() }
        do throws(Status) {
            let found = try connection.texts("PRAGMA integrity_check(\(max))", "cannot check \(path)")
            return found == ["ok"] ? [] : found
        } catch {
            // Damaged so badly that not even the check gets through.
            if error.code == .dataLoss { return [error.message] }
            throw error
        }
    }

    /// The bytes of the file and of the log beside it.
    public var sizeBytes: Int? {
        var sum = 0
        for file in [path, path + "-wal"] {
            var information = stat()
            if stat(file, &information) == 0 { sum += Int(information.st_size) }
        }
        return sum
    }

    // MARK: The writer

    /// The writer's connection; opens it first when there is none.
    private func openWriter() throws(Status) -> Connection {
        if let writer { return writer }
        if options.isReadOnly { throw .failedPrecondition("\(path) was opened for reading only.") }
        let connection = try Connection(path: path, configuration: [])
        try FileFormat.prepare(connection, path: path)
        for text in options.writerConfiguration { try connection.execute(text, "cannot open \(path)") }
        let counters = Unmanaged.passUnretained(counters).toOpaque()
        sqlite3_wal_hook(connection.handle, walWasWritten, counters)
        writer = connection
        return connection
    }

    private func rollBack(_ connection: Connection) {
        // SQLite rolls back on its own after some failures.
        guard connection.isInTransaction else { return }
        do throws(Status) {
            try connection.control(.rollBack)
        } catch {
            // Closing rolls back as well; the next commit opens another connection.
            connection.close()
            writer = nil
        }
    }

    /// Makes sure that a commit that failed stays so after a crash.
    ///
    /// When the failure came late, its pages stand in the WAL behind the last good commit, complete and unseen. This
    /// process overwrites them by the next commit; a process that starts after a crash would take them for a commit. A
    /// commit of nothing but the version overwrites the first of them and thereby breaks the chain of checksums. While
    /// the disk refuses even that, each commit and each `maintain` tries again.
    private func clearTail() {
        do throws(Status) {
            let connection = try openWriter()
            try connection.execute("PRAGMA user_version = \(FileFormat.version)", "cannot write")
            isTailDoubtful = false
        } catch {
            if let writer { rollBack(writer) }
        }
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
        if pages < before { counters.copiedPages.store(0, ordering: .relaxed) }
    }
    return SQLITE_OK
}

/// What a store may use.
public struct SQLiteStoreOptions: Sendable {
    /// Short reads at a time; more are refused with RESOURCE_EXHAUSTED. They run on a thread each, and end there.
    public var readersMax = 64
    /// Long reads at a time. `LongReads` lets as many begin in the whole process, so none is refused for it.
    public var longReadersMax = Limits.longReadsMax
    /// Bytes of pages that the writer keeps in memory.
    public var writerCacheBytes = 32 << 20
    /// What bounds the pages that readers keep in memory.
    var readerMemory = ReaderMemory.process
    /// Bytes of the file that are seen as memory. Halves the time of reads while nothing is written; but a mapped page is
    /// looked for in the WAL at each use, and the mapping is made anew after each commit: a reader's first read after a
    /// commit takes twice as long.
    public var mappedBytes = 0

    /// Leaves the files as they are: nothing is made or brought to this version, `write` is refused, and the log isn't
    /// copied. For looking at a folder, also at a damaged one.
    public var isReadOnly = false

    /// When the WAL is copied into the database, and what happens when it can't be.
    public var bounds = WALBounds()
    /// Pages of the database at most: a small disk for tests.
    var pagesMax: Int?

    public init() {}

    var writerConfiguration: [String] {
        var texts = [
            "PRAGMA wal_autocheckpoint = 0",
            // Overwriting what is deleted costs writes of pages that are otherwise only unlinked.
            "PRAGMA secure_delete = OFF",
            "PRAGMA cache_size = \(-writerCacheBytes / 1024)",
            "PRAGMA mmap_size = \(mappedBytes)",
            "PRAGMA temp_store = MEMORY",
        ]
        if let pagesMax { texts.append("PRAGMA max_page_count = \(pagesMax)") }
        return texts
    }

    var readerConfiguration: [String] {
        [
            "PRAGMA query_only = ON",
            "PRAGMA mmap_size = \(mappedBytes)",
            "PRAGMA temp_store = MEMORY",
        ]
    }
}
