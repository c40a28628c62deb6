import HearthModel
import HearthWire
import Synchronization

/// One database: documents, indexes, transactions and history, over a store.
///
/// All changes go through its commit pipeline, all reads through a `ReadView`. Safe to use from any thread.
public final class Database: Sendable {
    public let name: DatabaseName
    public let store: any Store
    private let clock: any Clock
    private let commitClock: CommitClock
    private let locks: LockTable
    private let transactions: TransactionTable
    private let recent: RecentChanges
    let pipeline: CommitPipeline
    let currentCatalog: CurrentCatalog
    /// Reads before this version are refused: the feed does not go back farther.
    private let earliestState: Mutex<Int64>
    private let observers = ChangeObservers()

    static let versionKey = Array("version".utf8)
    static let earliestKey = Array("earliest".utf8)

    /// - Throws: UNAVAILABLE when the store can't be read.
    public init(name: DatabaseName, store: any Store, clock: any Clock = SystemClock()) throws(Status) {
        self.name = name
        self.store = store
        self.clock = clock
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let version = try snapshot.get(.meta, Self.versionKey).map(Self.decode) ?? 0
        let earliest = try snapshot.get(.meta, Self.earliestKey).map(Self.decode) ?? 0
        earliestState = Mutex(earliest)
        currentCatalog = CurrentCatalog(try CatalogStore.load(from: snapshot))
        commitClock = CommitClock(clock: clock, lastVersion: version)
        locks = LockTable(clock: clock)
        transactions = TransactionTable(clock: clock, database: name)
        recent = RecentChanges(since: version)
        pipeline = CommitPipeline(
            store: store, clock: clock, commitClock: commitClock, locks: locks, recent: recent, catalog: currentCatalog,
            observers: observers)
    }

    deinit { pipeline.stop() }

    static func encode(_ version: Int64) -> [UInt8] {
        var bytes: [UInt8] = []
        IndexValue.appendBigEndian(UInt64(bitPattern: version), to: &bytes)
        return bytes
    }

    static func decode(_ bytes: [UInt8]) -> Int64 { Int64(bitPattern: IndexValue.readBigEndian(bytes[...])) }

    public var catalog: IndexCatalog { currentCatalog.value }
    public var openTransactions: Int { transactions.openCount }
    public var statistics: DatabaseStatistics {
        var statistics = pipeline.statistics
        statistics.openTransactions = transactions.openCount
        statistics.sizeBytes = store.sizeBytes
        return statistics
    }

    /// Has `observer` told of every later commit, in order, from the writer's thread.
    public func observe(_ observer: @escaping @Sendable (ChangeSet) -> Void) {
        observers.add(observer)
    }

    /// Ends the writer; what was queued is committed before.
    public func close() {
        pipeline.stop()
        store.close()
    }

    /// Turns and transactions that have run out of time. To be called some times a second.
    public func tick() {
        locks.tick()
        pipeline.tick()
        for owner in transactions.expire() { locks.remove(owner) }
    }

    // MARK: Views

    /// The present state.
    public func view() throws(Status) -> ReadView {
        let promise = commitClock.promise()
        let (snapshot, catalog) = try currentCatalog.snapshot(of: store)
        if let promise, commitClock.holds(promise) {
            return ReadView(
                snapshot: snapshot, version: promise.committed, snapshotVersion: promise.committed,
                readTime: Timestamp(microseconds: promise.time), catalog: catalog)
        }
        let version = try Self.version(of: snapshot)
        return ReadView(
            snapshot: snapshot, version: version, snapshotVersion: version,
            readTime: Timestamp(microseconds: max(version, 1)), catalog: catalog)
    }

    private static func version(of snapshot: any Snapshot) throws(Status) -> Int64 {
        try snapshot.get(.meta, versionKey).map(decode) ?? 0
    }

    /// The state at a version within the retention.
    private func view(at version: Int64, readTime: Timestamp) throws(Status) -> ReadView {
        let (snapshot, catalog) = try currentCatalog.snapshot(of: store)
        let present = try Self.version(of: snapshot)
        return ReadView(
            snapshot: snapshot, version: min(version, present), snapshotVersion: present, readTime: readTime,
            catalog: catalog)
    }

    /// The state at a read time that this database has given out itself, for a read that goes on.
    /// - Throws: FAILED_PRECONDITION when it is too old by now.
    public func pastView(at readTime: Timestamp) throws(Status) -> ReadView {
        try check(readTime: readTime)
        return try view(at: readTime.microseconds, readTime: readTime)
    }

    /// - Throws: INVALID_ARGUMENT for a time in the future, FAILED_PRECONDITION for one that is too old.
    private func check(readTime: Timestamp) throws(Status) {
        if readTime.microseconds > commitClock.latest {
            throw .invalidArgument("The requested 'read_time' cannot be in the future.")
        }
        let oldest = clock.now().microseconds - Int64(Limits.retentionSeconds) * 1_000_000
        if readTime.microseconds < oldest || readTime.microseconds < earliestState.withLock({ $0 }) {
            throw .failedPrecondition("The requested 'read_time' is too old.")
        }
    }

    // MARK: Reading

    /// Which state a read shows. Source: `consistency_selector` of the read requests.
    public enum Consistency: Sendable {
        case strong
        case readTime(Timestamp)
        case transaction([UInt8])
        case newTransaction(TransactionMode)
    }

    /// What a read in a transaction will rely on.
    public enum ReadTarget: Sendable {
        case document(ResourcePath)
        case query(NormalizedQuery)
    }

    /// A view for a request, and the id of the transaction that it began.
    public struct ViewGrant {
        public var view: ReadView
        public var newTransaction: [UInt8]?
    }

    /// Gives a view to `body`: at once and on this thread, unless the read has to wait for its turn behind other
    /// transactions; then later, from another thread.
    public func read(
        _ consistency: Consistency, _ targets: [ReadTarget],
        _ body: @escaping @Sendable (Result<ViewGrant, Status>) -> Void
    ) {
        do throws(Status) {
            switch consistency {
            case .strong: body(.success(ViewGrant(view: try view())))
            case .readTime(let time): try read(at: time, newTransaction: nil, body)
            case .transaction(let id): try read(in: id, isNew: false, targets, body)
            case .newTransaction(let mode): try read(in: try begin(mode), isNew: true, targets, body)
            }
        } catch {
            body(.failure(error))
        }
    }

    private func read(
        at time: Timestamp, newTransaction: [UInt8]?, _ body: @escaping @Sendable (Result<ViewGrant, Status>) -> Void
    ) throws(Status) {
        try check(readTime: time)
        commitClock.raise(to: time.microseconds)
        commitClock.whenSettled { [self] in
            do throws(Status) {
                let view = try view(at: time.microseconds, readTime: time)
                body(.success(ViewGrant(view: view, newTransaction: newTransaction)))
            } catch {
                body(.failure(error))
            }
        }
    }

    private func read(
        in id: [UInt8], isNew: Bool, _ targets: [ReadTarget],
        _ body: @escaping @Sendable (Result<ViewGrant, Status>) -> Void
    ) throws(Status) {
        let transaction = try transactions.use(id)
        if transaction.isReadOnly, let time = transaction.readTime {
            return try read(at: time, newTransaction: isNew ? id : nil, body)
        }
        let resources = targets.map { target -> LockTable.Resource in
            switch target {
            case .document(let path): .document(DocumentKey.encode(path))
            case .query(let query): .query(QueryMatcher(query))
            }
        }
        TurnTaker(resources, for: transaction.owner, in: locks).take { [self] accepted in
            do throws(Status) {
                if !accepted { throw .resourceExhausted("Too many transactions wait for what this one reads.") }
                let view = try extend(id, reading: targets)
                body(.success(ViewGrant(view: view, newTransaction: isNew ? id : nil)))
            } catch {
                body(.failure(error))
            }
        }
    }

    /// A view for a read-write transaction, with the read noted. What it has read before is looked at again: where that
    /// is unchanged, the transaction moves to the present; else it stays in its past, and its commit will fail.
    private func extend(_ id: [UInt8], reading targets: [ReadTarget]) throws(Status) -> ReadView {
        let transaction = try transactions.use(id)
        if transaction.readSet.count + targets.count > Limits.transactionReadSetMax {
            throw .resourceExhausted(
                "A transaction may not read more than \(Limits.transactionReadSetMax) documents and queries.")
        }
        var present: ReadView? = try view()
        var version = present!.version
        if let earlier = transaction.version, earlier < version,
            try pipeline.isTouched(transaction.readSet, since: earlier, in: present!.snapshot)
        {
            version = earlier
            present = nil
        }
        transactions.update(id) { transaction in
            transaction.version = version
            for target in targets {
                switch target {
                case .document(let path): transaction.readSet.insert(document: DocumentKey.encode(path))
                case .query(let query): transaction.readSet.insert(query)
                }
            }
        }
        if let present { return present }
        return try view(at: version, readTime: Timestamp(microseconds: version))
    }

    // MARK: Transactions

    /// Begins a transaction and returns its id.
    public func begin(_ mode: TransactionMode) throws(Status) -> [UInt8] {
        switch mode {
        case .readWrite(let retry):
            let (id, transaction) = try transactions.begin(isReadOnly: false, retry: retry)
            locks.add(transaction.owner, age: transaction.age)
            return id
        case .readOnly(let readTime):
            let time: Timestamp
            if let readTime {
                try check(readTime: readTime)
                time = readTime
            } else {
                time = try view().readTime
            }
            let (id, _) = try transactions.begin(isReadOnly: true, retry: nil)
            transactions.update(id) { $0.readTime = time }
            return id
        }
    }

    /// Ends a transaction without changes. Nothing happens when it is over already.
    /// - Throws: INVALID_ARGUMENT for an id that was never given out.
    public func rollback(_ id: [UInt8]) throws(Status) {
        guard let transaction = try openTransaction(id) else { return }
        transactions.finish(id)
        locks.remove(transaction.owner)
    }

    private func openTransaction(_ id: [UInt8]) throws(Status) -> Transaction? {
        do throws(Status) {
            return try transactions.use(id)
        } catch {
            if error == TransactionTable.expired { return nil }
            throw error
        }
    }

    // MARK: Writing

    /// Applies writes as one: all or nothing, durable when `completion` is called (from the writer's thread).
    /// - Parameters:
    ///   - transaction: ended by the commit, whether it succeeds or fails.
    ///   - sizeBytes: about what the request holds in memory.
    public func commit(
        _ writes: [Write], transaction id: [UInt8]? = nil, sizeBytes: Int = 0,
        completion: @escaping @Sendable (Result<CommitOutcome, Status>) -> Void
    ) {
        let now = clock.now()
        let waitUntil = clock.monotonicNanoseconds() + UInt64(Limits.lockWaitSeconds * 1e9)
        guard let id, !id.isEmpty else {
            pipeline.submit(
                CommitPipeline.Request(
                    writes: writes, transaction: nil, owner: transactions.nextOwner(), requestTime: now,
                    sizeBytes: sizeBytes, waitUntil: waitUntil, completion: completion))
            return
        }
        do throws(Status) {
            let transaction = try transactions.use(id)
            transactions.finish(id)
            if transaction.isReadOnly, !writes.isEmpty {
                throw .invalidArgument("Cannot modify entities in a read-only transaction.")
            }
            pipeline.submit(
                CommitPipeline.Request(
                    writes: writes, transaction: (id, transaction.version, transaction.readSet),
                    owner: transaction.owner,
                    requestTime: now, sizeBytes: sizeBytes, waitUntil: waitUntil, completion: completion))
        } catch {
            completion(.failure(error))
        }
    }

    // MARK: Maintenance

    /// Deletes every document and the history; index definitions stay. Open transactions fail at their commit.
    public func clear(completion: @escaping @Sendable (Result<Void, Status>) -> Void) {
        let version = commitClock.nextVersion(notBefore: 0)
        pipeline.perform(
            { [self] transaction throws(Status) in
                let everything = KeyRange(lower: [], upper: nil)
                for keyspace in [Keyspace.documents, .entries, .feed] {
                    try transaction.delete(keyspace, everything, limit: .max)
                }
                try transaction.delete(.meta, KeyRange(prefix: Feed.tombstoneKey([])), limit: .max)
                try transaction.put(.meta, Self.versionKey, Self.encode(version))
                try transaction.put(.meta, Self.earliestKey, Self.encode(version))
                recent.reset(to: version)
                earliestState.withLock { $0 = version }
            }, completion: completion)
    }

    /// Forgets states older than the retention, a bounded number at a time.
    /// - Parameter completion: told whether there is more to forget.
    public func collectGarbage(
        recordsMax: Int = 2000, completion: @escaping @Sendable (Result<Bool, Status>) -> Void
    ) {
        // A minute of grace for reads that were let in just before.
        let horizon = clock.now().microseconds - Int64(Limits.retentionSeconds + 60) * 1_000_000
        let more = Mutex(false)
        let box = SharedBox(more)
        pipeline.perform(
            { [self] transaction throws(Status) in
                let range = Feed.range(before: horizon)
                let cursor = try transaction.scan(.feed, range, reverse: false, values: false)
                var last: [UInt8]?
                var count = 0
                while count < recordsMax, try cursor.next() {
                    let key = cursor.key
                    let documentKey = Array(key.dropFirst(8))
                    let version = Self.decode(Array(key.prefix(8)))
                    if try Feed.tombstone(documentKey, in: transaction) == version {
                        try transaction.delete(.meta, Feed.tombstoneKey(documentKey))
                    }
                    last = key
                    count += 1
                }
                cursor.close()
                guard let last else { return }
                let bound = KeyRange(lower: [], upper: last + [0])
                try transaction.delete(.feed, bound, limit: recordsMax)
                // Everything at or before the last forgotten change can't be told any more.
                let earliest = Self.decode(Array(last.prefix(8)))
                try transaction.put(.meta, Self.earliestKey, Self.encode(earliest))
                earliestState.withLock { $0 = earliest }
                box.value.withLock { $0 = count == recordsMax }
            }, completion: { result in completion(result.map { box.value.withLock { $0 } }) })
    }

    // MARK: Indexes

    /// Replaces the index catalog, and builds what is new. Definitions that stay keep their ids and entries.
    public func setCatalog(
        definitions: [IndexDefinition], overrides: [FieldOverride],
        completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        IndexBuilder(database: self, pipeline: pipeline).install(
            resuming: true, { _ in (definitions, overrides) }, installed: { _ in }, completion: completion)
    }

    /// Changes the index catalog in one step that no other change can come between, and builds what is new.
    /// - Parameters:
    ///   - resuming: also builds what an earlier run of the process left unfinished.
    ///   - change: what is wanted in place of the present catalog; ids and states are filled in. May be refused.
    ///   - installed: told which definitions are new, when writers maintain them and before they are built. Not called
    ///     when the change fails.
    ///   - completion: told when the new definitions are ready, or why not.
    public func changeCatalog(
        resuming: Bool = false,
        _ change:
            @escaping @Sendable (IndexCatalog) throws(Status) -> (
                definitions: [IndexDefinition], overrides: [FieldOverride]
            ),
        installed: @escaping @Sendable ([IndexDefinition]) -> Void = { _ in },
        completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        IndexBuilder(database: self, pipeline: pipeline).install(
            resuming: resuming, change, installed: installed, completion: completion)
    }
}

/// Lets several closures share a value that can't be copied.
final class SharedBox<Value: ~Copyable & Sendable>: Sendable {
    let value: Value

    init(_ value: consuming Value) {
        self.value = value
    }
}
