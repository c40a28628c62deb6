import HearthEngine
import HearthConcurrency
import HearthModel
import HearthWire
import Synchronization

/// One database: documents, indexes, transactions and history, over a store.
///
/// All changes go through its commit pipeline, all reads through a `ReadView`. Safe to use from any thread.
package final class Database: Sendable {
    package let name: DatabaseName
    package let store: any Store
    let clock: any Clock
    let commitClock: CommitClock
    let locks: LockTable
    let transactions: TransactionTable
    let recent: RecentChanges
    let pipeline: CommitPipeline
    let currentCatalog: CurrentCatalog
    /// Notifies listeners of commits.
    package let changes: ChangeHub
    private let incarnationNumber: Incarnation
    private let deferred: DeferredStore?
    private let ended = Mutex<Status?>(nil)
    let horizon: HistoryHorizon
    /// That of the change feed's readers.
    let changesHorizon: HistoryHorizon
    /// Seconds for which readers of the change feed may lag behind.
    let changesSeconds = Atomic(Limits.retentionSeconds)
    /// See `PointInTimeRecovery.since`.
    let recoverySince: Atomic<Int64>
    let streamSweep: StreamSweep
    package let elapsed: ElapsedTime
    /// A step of `deleteOldLedgerDocuments` is under way.
    let isLedgerInWork = Atomic(false)
    let areOnceAnswersInWork = Atomic(false)
    let expiry = ExpirySweep()
    /// So many seconds lay the newest commit ahead of the clock when the database was opened; nil when that is nothing to
    /// speak of.
    package let clockSkewSeconds: Int64?

    /// For reads that were admitted just before the history that they need was too old.
    static let graceSeconds = 60

    static let versionKey = Array("version".utf8)
    /// Reads before this version are refused: the feed does not go back farther.
    static let earliestKey = Array("earliest".utf8)

    /// - Parameter allowsClockSkew: whether a database is opened whose commits are of the future.
    /// - Throws: UNAVAILABLE when the store can't be read, FAILED_PRECONDITION when its commits are of the future.
    package convenience init(
        name: DatabaseName, store: any Store, clock: any Clock = SystemClock(), allowsClockSkew: Bool = true
    ) throws(Status) {
        try self.init(
            name: name, store: store, clock: clock, allowsClockSkew: allowsClockSkew, drivers: ThreadDriver.make)
    }

    /// - Parameter memory: that of all databases of a process.
    package convenience init(
        name: DatabaseName, store: any Store, clock: any Clock, allowsClockSkew: Bool = true, memory: DatabaseMemory
    ) throws(Status) {
        try self.init(
            name: name, store: store, clock: clock, allowsClockSkew: allowsClockSkew, memory: memory,
            drivers: ThreadDriver.make)
    }

    /// - Parameters:
    ///   - drivers: make what runs the writer and the preparer.
    init(
        name: DatabaseName, store: any Store, clock: any Clock, allowsClockSkew: Bool = true,
        memory: DatabaseMemory = DatabaseMemory(), drivers: @escaping WorkerDrivers
    ) throws(Status) {
        self.name = name
        self.store = store
        deferred = store as? DeferredStore
        self.clock = clock
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let version = try Self.version(of: snapshot)
        clockSkewSeconds = try ClockSkew.check(version: version, of: name, now: clock.now(), isAllowed: allowsClockSkew)
        recoverySince = Atomic(try PointInTimeRecovery.since(in: snapshot))
        streamSweep = StreamSweep(clock: clock)
        elapsed = ElapsedTime(clock: clock, newestVersion: version)
        horizon = HistoryHorizon(
            clock: clock, keptSeconds: Limits.retentionSeconds + Self.graceSeconds, elapsed: elapsed,
            sampleSecondsMin: 30)
        changesHorizon = HistoryHorizon(
            clock: clock, keptSeconds: Limits.retentionSeconds, elapsed: elapsed, sampleSecondsMin: 1)
        currentCatalog = CurrentCatalog(try CatalogStore.load(from: snapshot))
        commitClock = CommitClock(clock: clock, lastVersion: version)
        locks = LockTable(clock: clock)
        transactions = TransactionTable(clock: clock, database: name, readSets: memory.readSets)
        recent = RecentChanges(since: version, shared: memory.recent)
        changes = ChangeHub(version: version, feed: memory.feed)
        incarnationNumber = try Incarnation(from: snapshot)
        pipeline = CommitPipeline(
            store: store, clock: clock, commitClock: commitClock, locks: locks, recent: recent, catalog: currentCatalog,
            hub: changes, incarnation: incarnationNumber, ledger: try OnceLedger.state(in: snapshot)?.documents,
            memory: memory.commits, drivers: drivers
        )
        keepHistory()
        // What an earlier run of the process left unfinished. When it fails, the next opening goes on with it.
        if !catalog.changes.isEmpty || !catalog.removed.isEmpty {
            IndexBuilder(database: self, pipeline: pipeline).finishChanges { _ in }
        }
    }

    deinit { pipeline.stop() }

    static func encode(_ version: Int64) -> [UInt8] {
        var bytes: [UInt8] = []
        IndexValue.appendBigEndian(UInt64(bitPattern: version), to: &bytes)
        return bytes
    }

    static func decode(_ bytes: [UInt8]) -> Int64 { Int64(bitPattern: IndexValue.readBigEndian(bytes[...])) }

    /// A time that is stored under a name, in microseconds since 1970; 0 when there is none.
    /// - Throws: DATA_LOSS for what is no time of the years 1970 to 9999: sums with it could overflow.
    static func time(at key: [UInt8], in snapshot: any Snapshot) throws(Status) -> Int64 {
        guard let bytes = try snapshot.get(.meta, key) else { return 0 }
        let time = decode(bytes)
        guard bytes.count == 8, isTime(time) else {
            throw Status(.dataLoss, "The record '\(String(decoding: key, as: UTF8.self))' of the database is damaged.")
        }
        return time
    }

    static func isTime(_ microseconds: Int64) -> Bool {
        microseconds >= 0 && microseconds <= Timestamp.microsecondsRange.upperBound
    }

    package var catalog: IndexCatalog { currentCatalog.value }
    /// The newest commit, and its monotonic time.
    package var newestCommit: (version: Int64, nanoseconds: UInt64) { commitClock.lastCommit }
    /// Differs between databases, also between one and its successor of the same name; 0 before the first commit.
    package var incarnation: Int64 { incarnationNumber.value }
    package var openTransactions: Int { transactions.openCount }
    package var statistics: DatabaseStatistics {
        var statistics = pipeline.statistics
        statistics.openTransactions = transactions.openCount
        statistics.sizeBytes = store.sizeBytes
        statistics.store = store.statistics
        return statistics
    }

    /// Lets go of what is kept of the latest commits and is too much now: memory is tight, or other databases hold more.
    package func fitCaches() {
        recent.fit()
        changes.history.fit()
    }

    /// Whether there is a store: a database that nobody has written to has none.
    package var exists: Bool { deferred?.isMade ?? true }

    /// Whether something goes on for which nobody need hold the database: a transaction, a commit that waits.
    package var isBusy: Bool { transactions.openCount > 0 || pipeline.hasQueuedCommits }

    /// Ends the writer; what was queued is committed before.
    /// - Parameter reason: what everybody who still uses the database fails with, listeners too.
    package func close(because reason: Status = .unavailable("The database is closed.")) {
        ended.withLock { $0 = reason }
        changes.closed(reason)
        pipeline.stop(because: reason)
        store.close(because: reason)
        // Reads that wait for a lock fail, as those do that come now.
        locks.removeAll()
    }

    /// Why the database is closed; nil while it is open.
    package var closedStatus: Status? { ended.withLock { $0 } }

    /// Ends locks and transactions whose lease has expired. Must be called some times a second.
    package func tick() {
        locks.tick()
        pipeline.tick()
        _ = oldestChange
        for owner in transactions.expire() { locks.remove(owner) }
    }

    // MARK: Views

    /// The present state.
    package func view() throws(Status) -> ReadView { try present(.short) }

    /// The present state for a long read, which ends with the view.
    package func view(under read: LongRead) throws(Status) -> ReadView {
        let view = try present(.long)
        view.hold(read)
        return view
    }

    private func present(_ use: SnapshotUse) throws(Status) -> ReadView {
        let promise = commitClock.promise()
        let (snapshot, catalog) = try currentCatalog.snapshot(of: store, use)
        // A commit that came between was given its version after the promise: that version is of now.
        let version = commitClock.holds(promise) ? promise.committed : try Self.version(of: snapshot)
        let time = version == promise.committed ? promise.time : version
        return ReadView(
            snapshot: snapshot, version: version, snapshotVersion: version, readTime: Timestamp(microseconds: time),
            catalog: catalog, owner: self, history: changes.history)
    }

    /// The version of the last commit that a snapshot shows, in microseconds since 1970; 0 before the first.
    package static func version(of snapshot: any Snapshot) throws(Status) -> Int64 {
        try time(at: versionKey, in: snapshot)
    }

    /// The state at the version of a commit, for those who go on with what they were shown: the present with its read time, when
    /// nothing came after it.
    /// - Throws: UNAVAILABLE when the history doesn't reach back so far. They have named no time that could be too old: the database
    ///   was cleared meanwhile, and clients who connect again get what there is now.
    package func view(atVersion version: Int64) throws(Status) -> ReadView {
        try view(atVersion: version, .short)
    }

    /// The same for a long read, which ends with the view.
    /// - Parameter read: nil for a short one.
    package func view(atVersion version: Int64, under read: LongRead?) throws(Status) -> ReadView {
        guard let read else { return try view(atVersion: version) }
        let view = try view(atVersion: version, .long)
        view.hold(read)
        return view
    }

    private func view(atVersion version: Int64, _ use: SnapshotUse) throws(Status) -> ReadView {
        do {
            let present = try present(use)
            if present.version == version { return present }
            // It is closed before another one is opened: a read has one snapshot.
        }
        do throws(Status) {
            return try view(at: version, readTime: Timestamp(microseconds: max(version, 1)), use)
        } catch {
            throw error == Self.tooOld ? Self.cleared : error
        }
    }

    static let cleared = Status.unavailable("The database was cleared meanwhile.")

    /// The state at a version within the retention.
    func view(
        at version: Int64, readTime: Timestamp, _ use: SnapshotUse = .short
    ) throws(Status) -> ReadView {
        let (snapshot, catalog) = try currentCatalog.snapshot(of: store, use)
        let present = try Self.version(of: snapshot)
        let view = ReadView(
            snapshot: snapshot, version: min(version, present), snapshotVersion: present, readTime: readTime,
            catalog: catalog, owner: self, history: changes.history)
        if version < (try Feed.forgottenVersion(in: snapshot)) { throw Self.tooOld }
        return view
    }

    static let tooOld = Status.failedPrecondition("The requested 'read_time' is too old.")

    /// The state at a read time that this database has given out itself, for a read that goes on.
    /// - Throws: FAILED_PRECONDITION when it is too old by now.
    package func pastView(at readTime: Timestamp) throws(Status) -> ReadView {
        // Whether the history reaches back so far is in the store, whatever the clock says by now.
        try view(at: readTime.microseconds, readTime: readTime)
    }

    /// The same for a long read, which ends with the view.
    /// - Parameter read: nil for a short one.
    package func pastView(at readTime: Timestamp, under read: LongRead?) throws(Status) -> ReadView {
        guard let read else { return try pastView(at: readTime) }
        let view = try view(at: readTime.microseconds, readTime: readTime, .long)
        view.hold(read)
        return view
    }

    /// - Throws: INVALID_ARGUMENT for a time in the future, FAILED_PRECONDITION for one that is too old.
    package func check(readTime: Timestamp) throws(Status) {
        if readTime.microseconds > commitClock.latest {
            throw .invalidArgument("The requested 'read_time' cannot be in the future.")
        }
        let now = clock.now().microseconds
        if readTime.microseconds >= earliestOfEveryVersion(now: now) { return }
        if !isRecoverable(readTime, now: now) { throw Self.tooOld }
    }

    /// The read time itself, but when commits lie ahead of the clock: then what is now by the clock means the present, not
    /// a time before all of them.
    func presentTime(for time: Timestamp) -> Timestamp {
        let now = clock.now().microseconds
        let committed = commitClock.committed
        // Commits of one microsecond lie ahead of it, too; those are no skew.
        guard committed > now + Self.presentMicroseconds, time.microseconds <= now,
            time.microseconds > now - Self.presentMicroseconds
        else {
            return time
        }
        return Timestamp(microseconds: committed)
    }

    /// What clients round their time to.
    static let presentMicroseconds: Int64 = 1_000_000

    // MARK: Transactions

    /// Begins a transaction and returns its id.
    package func begin(_ mode: TransactionMode) throws(Status) -> [UInt8] { try begin(mode, requester: .server) }

    /// - Parameter requester: on whose account it is, when there are too many.
    package func begin(_ mode: TransactionMode, requester: Requester) throws(Status) -> [UInt8] {
        var readTime: Timestamp?
        var retry: [UInt8]?
        var concurrency = TransactionConcurrency.optimistic
        switch mode {
        case .readWrite(let earlier, let wanted):
            retry = earlier
            concurrency = wanted
        case .readOnly(let time?):
            try check(readTime: time)
            readTime = time
        case .readOnly(nil): readTime = try view().readTime
        }
        let (id, transaction, ended) = try transactions.begin(
            readTime: readTime, retry: retry, concurrency: concurrency, requester: requester)
        if let ended { locks.remove(ended) }
        if transaction.isLocking { locks.add(transaction.owner, age: transaction.age) }
        return id
    }

    /// Ends a transaction without changes. Nothing happens when it is over already.
    /// - Throws: INVALID_ARGUMENT for an id that was never given out.
    package func rollback(_ id: [UInt8]) throws(Status) {
        do throws(Status) {
            locks.remove(try transactions.finish(id).owner)
        } catch {
            if error != TransactionTable.expired { throw error }
        }
    }

    /// Ends a transaction that nobody knows of.
    func abandon(_ id: [UInt8]) {
        do throws(Status) {
            try rollback(id)
        } catch {
            // Only ids that were never given out are refused.
            assertionFailure("An id that was just given out is known.")
        }
    }

    // MARK: Writing

    /// Applies writes as one: all or nothing, durable when `completion` is called (from the writer's thread).
    /// - Parameters:
    ///   - transaction: ended by the commit, whether it succeeds or fails.
    ///   - sizeBytes: about what the request holds in memory.
    ///   - commitGuard: asked before the commit is made; nil lets every commit pass.
    ///   - requester: whose share of the queue it uses. The commits of one connection keep their order, but for those that wait for a
    ///     transaction's lock: holding back what comes behind them might hold back the end of that transaction. Whoever needs
    ///     an order waits for each answer, as Write streams do.
    ///   - returning: the write of which the outcome carries the document.
    ///   - streamPosition: the position in a Write stream that can be resumed. A commit that was made at it is answered as
    ///     then, and not made again; one that is out of order fails with ABORTED.
    ///   - once: the id of the commit, without a `streamPosition`. When a commit with this id was made, the answer is that of
    ///     then, whatever became of the transaction, and nothing is made; one of other documents fails with
    ///     FAILED_PRECONDITION.
    ///   - makesEvents: whether an `EventRecorder` gets it.
    ///   - author: who makes it, for an `EventRecorder`.
    ///   - isWanted: false when nobody waits for the answer any more; a commit that hasn't begun then fails with CANCELLED.
    package func commit(
        _ writes: [Write], transaction id: [UInt8]? = nil, sizeBytes: Int = 0,
        guard commitGuard: (any CommitGuard)? = nil, requester: Requester, returning: Int? = nil,
        streamPosition: StreamPosition? = nil, once: OnceID? = nil, makesEvents: Bool = true, author: [UInt8] = [],
        isWanted: (@Sendable () -> Bool)? = nil,
        completion: @escaping @Sendable (Result<CommitOutcome, Status>) -> Void
    ) {
        let waitUntil = clock.monotonicNanoseconds() + UInt64(Limits.lockWaitSeconds * 1e9)
        let mark =
            streamPosition.map { CommitMark.stream($0) }
            ?? once.map { .once($0, documents: OnceAnswers.fingerprint(writes)) }
        let request = QueuedCommit(
            writes: writes, owner: 0, requestTime: clock.now(), guard: commitGuard,
            sizeBytes: sizeBytes, requester: requester, author: author, isWanted: isWanted, returning: returning,
            mark: mark, makesEvents: makesEvents, waitUntil: waitUntil, completion: completion)
        guard let id, !id.isEmpty else {
            request.owner = transactions.nextOwner()
            return pipeline.submit(request)
        }
        do throws(Status) {
            // Taken at once, so that of two commits with one id only one is applied.
            let transaction = try transactions.finish(id)
            if transaction.isReadOnly, !writes.isEmpty {
                throw .invalidArgument("Cannot modify entities in a read-only transaction.")
            }
            request.owner = transaction.owner
            request.transaction = (id, transaction.version, transaction.readSet)
        } catch {
            guard once != nil else { return completion(.failure(error)) }
            // The first commit has ended the transaction, perhaps.
            request.refusal = error
            request.owner = transactions.nextOwner()
        }
        pipeline.submit(request)
    }

    /// The same as the server's own work.
    package func commit(
        _ writes: [Write], transaction id: [UInt8]? = nil, sizeBytes: Int = 0,
        guard commitGuard: (any CommitGuard)? = nil,
        completion: @escaping @Sendable (Result<CommitOutcome, Status>) -> Void
    ) {
        commit(
            writes, transaction: id, sizeBytes: sizeBytes, guard: commitGuard, requester: .server,
            completion: completion)
    }
}

/// Lets several closures share a value that can't be copied.
final class SharedBox<Value: ~Copyable & Sendable>: Sendable {
    let value: Value

    init(_ value: consuming Value) {
        self.value = value
    }
}
