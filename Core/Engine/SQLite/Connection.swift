import CSQLite
import HearthConcurrency
import HearthModel
import HearthEngine
import Synchronization

/// One SQLite handle with its prepared statements, leased for one read or write transaction at a time.
///
/// A *lease* is the right to use the connection for one transaction; only the snapshot and its cursors know its number.
/// Each call enters with the number and fails when the lease has ended: because the snapshot was closed, the store was
/// closed, or the connection was taken from a snapshot that kept too many old pages alive.
///
/// A failure of the engine ends the use of a lease: SQLite may have rolled the transaction back on its own, and later
/// statements would run in a transaction of their own.
final class Connection: CacheHolder, @unchecked Sendable {
    // Guards everything below.
    private let monitor = Monitor()
    private(set) var handle: OpaquePointer?
    private var lease = 0
    private var isLeased = false
    private var failure: Status?
    /// The reason why the database was closed.
    private var ended: Status?
    /// Whether `pin` is positioned on a row, which keeps a read transaction open.
    private var isPinned = false
    /// The commits of the store that the read transaction shows at least.
    private var commitsSeen: UInt64 = 0
    /// The read transaction's number.
    private var read: UInt64 = 0
    /// The budget of its cache, and the limit that is in force.
    private let cache: CacheBudget?
    private var cachePages = 0
    /// Set when the limit became smaller during a call; the end of a call checks it.
    private let isCacheTooLarge = Atomic(false)

    private var statements: [OpaquePointer?]
    private var controls: [OpaquePointer?]
    private var pin: OpaquePointer?
    private var idleScans: [[ScanStatement]]
    private var busyScans: [ScanStatement] = []

    /// Scan statements of one shape that are cached for the next walk; a merge join has up to 30 open.
    private static let idleScansMax = 32

    /// - Parameters:
    ///   - isReadOnly: leaves the files unchanged: the log isn't copied at the end.
    ///   - cache: for readers, the shared budget of their caches.
    init(
        path: String, configuration: [String], isReadOnly: Bool = false, cache: CacheBudget? = nil
    ) throws(Status) {
        self.cache = cache
        statements = Array(repeating: nil, count: StatementKind.indexCount)
        controls = Array(repeating: nil, count: TransactionControl.allCases.count)
        idleScans = Array(repeating: [], count: StatementShape.indexCount)
        _ = Self.configureProcess
        // "unix-excl", below the layer: the file is locked against other processes, and the WAL's index lives in this
        // one's heap, so that beginning and ending a transaction makes no system call. Reading a log needs the right to
        // write it, so even a reader that changes nothing opens for writing.
        // None makes the file: beside one that another program has moved, SQLite would take the new one for the database, and remove
        // the moved one's log.
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE
        let action = "cannot open \(EngineError.fileName(path))"
        let result = sqlite3_open_v2(path, &handle, flags, LogBuffer.name ?? "unix-excl")
        if result != SQLITE_OK {
            let status = EngineError.status(handle, result, action)
            closeHandle()
            throw status
        }
        sqlite3_extended_result_codes(handle, 1)
        // A closed reader leaves the log to the writer. Otherwise it would lock the file exclusively, and for a moment
        // no other connection could be opened.
        if isReadOnly || cache != nil { _ = hearth_sqlite3_keep_log_on_close(handle) }
        do throws(Status) {
            // Before anything is written; see `LogBuffer`.
            try execute("PRAGMA synchronous = FULL", action)
            for string in configuration { try execute(string, action) }
            fitCache()
        } catch {
            closeHandle()
            throw error
        }
    }

    deinit { closeHandle() }

    // MARK: The cache

    /// Keeps as many pages as it may at present; the excess is freed now.
    private func fitCache() {
        guard let cache, handle != nil else { return }
        isCacheTooLarge.store(false, ordering: .relaxed)
        fitCache(to: cache)
    }

    /// For the writer, which calls it between transactions, under its own lock.
    func fitCache(to cache: CacheBudget) {
        let pages = cache.pagesEach
        if pages == cachePages { return }
        // It fails only without memory, and is tried again at the next renewal.
        if sqlite3_exec(handle, "PRAGMA cache_size = \(pages)", nil, nil, nil) == SQLITE_OK { cachePages = pages }
    }

    /// For other threads than the one that reads. Does not wait for a running call.
    func shrinkCacheUnlessBusy() {
        guard monitor.tryLock() else { return isCacheTooLarge.store(true, ordering: .relaxed) }
        defer { monitor.unlock() }
        fitCache()
    }

    /// The limit in force; for tests.
    var cachePagesNow: Int { monitor.withLock { cachePages } }

    /// Fails when other code used SQLite before in this process: then its statistics cost a lock and commits walk over
    /// the cache, with no other effect.
    private static let configureProcess: Bool =
        hearth_sqlite3_disable_memory_statistics() == SQLITE_OK && PageCache.install()

    // MARK: Leases

    /// Leases the writer's connection; the number is passed to each call.
    func beginLease() throws(Status) -> Int {
        monitor.lock()
        defer { monitor.unlock() }
        return try startLease()
    }

    /// Leases a reader's connection with a read transaction on the present state.
    func beginReading(_ counters: StoreCounters) throws(Status) -> Int {
        monitor.lock()
        defer { monitor.unlock() }
        let number = try startLease()
        // Read before the transaction begins: it shows these commits, perhaps more.
        let commits = counters.commits.load(ordering: .acquiring)
        if isPinned, commitsSeen == commits { return number }
        commitsSeen = commits
        fitCache()
        read = counters.reads.add(1, ordering: .relaxed).newValue
        try renewPin()
        return number
    }

    private func startLease() throws(Status) -> Int {
        guard handle != nil else { throw ended ?? .unavailable("The database is closed.") }
        failure = nil
        isLeased = true
        return lease
    }

    enum LeaseEnd {
        /// The lease had ended before.
        case before
        case reusable
        /// The engine failed in it; better open another connection.
        case broken
    }

    /// Ends a lease: its cursors are reset, later calls with it fail.
    /// - Parameter counters: for a reader; its read transaction ends as well when it is no longer the present state,
    ///   because it is of no more use and blocks the checkpoint.
    func endLease(_ number: Int, _ counters: StoreCounters? = nil) -> LeaseEnd {
        monitor.withLock {
            guard lease == number else { return .before }
            finishLease()
            if let counters, counters.commits.load(ordering: .relaxed) != commitsSeen { unpin() }
            return failure == nil ? .reusable : .broken
        }
    }

    /// Ends the read transaction of a reader that is not leased.
    func releasePin() {
        monitor.withLock {
            if !isLeased { unpin() }
        }
    }

    /// Closes the handle under a snapshot whose read transaction's number is at most `last`.
    func revoke(begunUpTo last: UInt64) -> Bool {
        monitor.withLock {
            guard isLeased, isPinned, read <= last else { return false }
            finishLease()
            closeHandle()
            return true
        }
    }

    /// Closes the handle under a snapshot with this lease.
    /// - Returns: whether it had it still; nil when a call is running.
    func revokeUnlessBusy(lease: Int) -> Bool? {
        guard monitor.tryLock() else { return nil }
        defer { monitor.unlock() }
        guard isLeased, self.lease == lease else { return false }
        finishLease()
        closeHandle()
        return true
    }

    /// The failure of the present lease.
    var leaseFailure: Status? { monitor.withLock { failure } }

    private func finishLease() {
        lease += 1
        isLeased = false
        for scan in busyScans {
            sqlite3_reset(scan.handle)
            scan.use += 1
            retire(scan)
        }
        busyScans.removeAll(keepingCapacity: true)
    }

    /// Waits for a running call and closes the handle, whatever lease is active.
    /// - Parameter reason: the error of later calls of that lease.
    func close(because reason: Status? = nil) {
        monitor.withLock {
            ended = reason
            finishLease()
            closeHandle()
        }
    }

    private func closeHandle() {
        for statement in statements + controls { sqlite3_finalize(statement) }
        for scan in idleScans.joined() { sqlite3_finalize(scan.handle) }
        for scan in busyScans { sqlite3_finalize(scan.handle) }
        sqlite3_finalize(pin)
        statements = []
        controls = []
        idleScans = []
        busyScans = []
        pin = nil
        isPinned = false
        // Rolls back an open transaction.
        let result = sqlite3_close(handle)
        assert(result == SQLITE_OK, "a statement wasn't finalised")
        handle = nil
    }

    /// For calls that need no lease: the end of a cursor.
    func withLock(_ body: () -> Void) { monitor.withLock(body) }

    /// Begins a call; `leave` ends it when this didn't throw.
    @inline(__always)
    func enter(_ number: Int) throws(Status) {
        monitor.lock()
        if lease == number, failure == nil, handle != nil { return }
        let status =
            failure ?? ended
            ?? .unavailable("The snapshot is closed, or was taken away because it kept too much old data alive.")
        monitor.unlock()
        throw status
    }

    @inline(__always)
    func leave() {
        if isCacheTooLarge.load(ordering: .relaxed) { fitCache() }
        monitor.unlock()
    }

    // MARK: Transactions

    /// Opens a read transaction on the present state, after ending the open one.
    ///
    /// Not by BEGIN: a statement that is positioned on a row keeps the state as well, and costs one call instead of
    /// three.
    private func renewPin() throws(Status) {
        unpin()
        if pin == nil { pin = try prepare("SELECT 1 FROM sqlite_schema") }
        let result = sqlite3_step(pin)
        guard result == SQLITE_ROW else {
            sqlite3_reset(pin)
            throw fail(result, "cannot read")
        }
        isPinned = true
    }

    private func unpin() {
        guard isPinned else { return }
        sqlite3_reset(pin)
        isPinned = false
    }

    /// Begins or ends a transaction.
    func control(_ control: TransactionControl) throws(Status) {
        var statement = controls[control.rawValue]
        if statement == nil {
            statement = try prepare(control.string)
            controls[control.rawValue] = statement
        }
        let result = sqlite3_step(statement)
        // The handle's message belongs to the step.
        let status = result == SQLITE_DONE ? nil : EngineError.status(handle, result, control.action)
        sqlite3_reset(statement)
        if let status { throw status }
    }

    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    /// Runs an SQL string once. For rare statements.
    func execute(_ string: String, _ action: String) throws(Status) {
        let result = sqlite3_exec(handle, string, nil, nil, nil)
        if result != SQLITE_OK { throw EngineError.status(handle, result, action) }
    }

    /// The number in the first column of the first row of a query's result.
    func number(_ string: String, _ action: String) throws(Status) -> Int {
        let statement = try prepare(string)
        defer { sqlite3_finalize(statement) }
        let result = sqlite3_step(statement)
        guard result == SQLITE_ROW else { throw EngineError.status(handle, result, action) }
        return Int(sqlite3_column_int64(statement, 0))
    }

    /// The strings in the first column of a query's result. For rare statements.
    func strings(_ string: String, _ action: String) throws(Status) -> [String] {
        let statement = try prepare(string)
        defer { sqlite3_finalize(statement) }
        var strings: [String] = []
        while true {
            let result = sqlite3_step(statement)
            if result == SQLITE_DONE { return strings }
            guard result == SQLITE_ROW else { throw EngineError.status(handle, result, action) }
            strings.append(sqlite3_column_text(statement, 0).map { String(cString: $0) } ?? "")
        }
    }

    // MARK: Statements

    @inline(__always)
    func statement(
        _ kind: StatementKind, _ keyspace: Keyspace, bounded: Bool = false
    ) throws(Status) -> OpaquePointer {
        if let statement = statements[kind.index(keyspace, bounded: bounded)] { return statement }
        return try prepareStatement(kind, keyspace, bounded: bounded)
    }

    private func prepareStatement(
        _ kind: StatementKind, _ keyspace: Keyspace, bounded: Bool
    ) throws(Status) -> OpaquePointer {
        let statement = try prepare(kind.string(keyspace, bounded: bounded))
        statements[kind.index(keyspace, bounded: bounded)] = statement
        return statement
    }

    func prepare(_ string: String) throws(Status) -> OpaquePointer {
        var statement: OpaquePointer?
        let result = sqlite3_prepare_v3(handle, string, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        guard result == SQLITE_OK, let statement else { throw fail(result, "cannot prepare a statement") }
        return statement
    }

    func takeScan(_ shape: StatementShape) throws(Status) -> ScanStatement {
        let scan: ScanStatement
        if let idle = idleScans[shape.index].popLast() {
            scan = idle
        } else {
            scan = ScanStatement(try prepare(shape.string), shape)
        }
        scan.position = busyScans.count
        busyScans.append(scan)
        return scan
    }

    /// Ends one use of a statement, unless it has ended.
    func returnScan(_ scan: ScanStatement, use: Int) {
        guard scan.use == use else { return }
        sqlite3_reset(scan.handle)
        scan.use += 1
        let last = busyScans.removeLast()
        if last !== scan {
            busyScans[scan.position] = last
            last.position = scan.position
        }
        retire(scan)
    }

    private func retire(_ scan: ScanStatement) {
        if idleScans[scan.shape.index].count < Self.idleScansMax {
            idleScans[scan.shape.index].append(scan)
        } else {
            sqlite3_finalize(scan.handle)
        }
    }

    /// Notes a failure of the engine, which ends the use of this lease.
    func fail(_ result: Int32, _ action: String) -> Status {
        let status = EngineError.status(handle, result, action)
        failure = status
        return status
    }

    // MARK: Rows

    /// Binds bytes without copying them: they must not move until the statement is reset.
    @inline(__always)
    func bind(_ statement: OpaquePointer, _ index: Int32, _ bytes: UnsafeRawBufferPointer) -> Int32 {
        // SQLite takes a null pointer for NULL, not for an empty value.
        sqlite3_bind_blob64(statement, index, bytes.baseAddress ?? Self.somewhere, UInt64(bytes.count), nil)
    }

    /// Binds a copy, for statements that continue after the call.
    func bindCopy(_ statement: OpaquePointer, _ index: Int32, _ bytes: [UInt8]) -> Int32 {
        bytes.withUnsafeBytes { bytes in
            sqlite3_bind_blob64(
                statement, index, bytes.baseAddress ?? Self.somewhere, UInt64(bytes.count), Self.transient)
        }
    }

    private static var somewhere: UnsafeRawPointer { UnsafeRawPointer(bitPattern: 1)! }
    /// SQLITE_TRANSIENT, a macro with a cast that isn't imported.
    private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    @inline(__always)
    func column(_ statement: OpaquePointer, _ index: Int32) -> [UInt8] { [UInt8](columnBytes(statement, index)) }

    /// A column in SQLite's memory: valid until the statement's next step.
    @inline(__always)
    func columnBytes(_ statement: OpaquePointer, _ index: Int32) -> UnsafeRawBufferPointer {
        guard let base = sqlite3_column_blob(statement, index) else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return UnsafeRawBufferPointer(start: base, count: Int(sqlite3_column_bytes(statement, index)))
    }
}

/// A prepared walk. Between `takeScan` and `returnScan` it belongs to one cursor, which knows the number of its use.
final class ScanStatement {
    let handle: OpaquePointer
    let shape: StatementShape
    var use = 0
    /// Its index among the connection's busy statements.
    var position = 0

    init(_ handle: OpaquePointer, _ shape: StatementShape) {
        self.handle = handle
        self.shape = shape
    }
}
