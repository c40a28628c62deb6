import HearthConcurrency
import HearthModel
import HearthWire
import Synchronization

/// The one way by which a database changes.
///
/// Commits queue for the writer's thread. It takes all that has gathered, works out each on the state left by the ones
/// before it, and makes them durable together: one sync for the group, each commit within it all or nothing. Answers
/// leave after the sync. A commit that must wait for a transaction's turn leaves the queue and comes back.
final class CommitPipeline: Sendable {
    struct Request: Sendable {
        var writes: [Write]
        /// The transaction's id and the state on which its reads rest.
        var transaction: (id: [UInt8], version: Int64?, readSet: ReadSet)?
        /// Who takes the turns that the commit has to wait for.
        var owner: LockTable.Owner
        var requestTime: Timestamp
        /// Asked before the commit is made; nil for those who may do everything.
        var `guard`: (any CommitGuard)?
        var sizeBytes: Int
        /// When waiting for turns ends, in monotonic nanoseconds.
        var waitUntil: UInt64
        var completion: @Sendable (Result<CommitOutcome, Status>) -> Void
    }

    enum Job: Sendable {
        case commit(Request)
        /// Anything else that writes: index builds, collection of old versions, clearing. Runs in a group of its own.
        case maintenance(
            @Sendable (any StoreTransaction) throws(Status) -> Void, @Sendable (Result<Void, Status>) -> Void)
        /// Deletes everything.
        case clear(@Sendable (Result<Void, Status>) -> Void)
    }

    private struct Parked {
        var requests: [UInt64: Request] = [:]
        var next: UInt64 = 0
    }

    private let store: any Store
    private let clock: any Clock
    private let commitClock: CommitClock
    private let locks: LockTable
    private let recent: RecentChanges
    private let catalog: CurrentCatalog
    private let observers: ChangeObservers
    private let hub: ChangeHub
    private let incarnation: Incarnation
    private let parked = Mutex(Parked())
    private let queuedBytes = Atomic<Int>(0)
    private let queuedCount = Atomic<Int>(0)
    private let counters = CommitCounters()
    private let worker: Mutex<WorkerThread<Job>?>
    /// What is answered to whoever comes after the end.
    private let ended = Mutex(Status.unavailable("The server is shutting down."))

    /// - Parameter observers: told of every commit, in order, after it is durable and visible.
    init(
        store: any Store, clock: any Clock, commitClock: CommitClock, locks: LockTable, recent: RecentChanges,
        catalog: CurrentCatalog, observers: ChangeObservers, hub: ChangeHub, incarnation: Incarnation
    ) {
        self.store = store
        self.clock = clock
        self.commitClock = commitClock
        self.locks = locks
        self.recent = recent
        self.catalog = catalog
        self.observers = observers
        self.hub = hub
        self.incarnation = incarnation
        worker = Mutex(nil)
        // The thread must not keep alive what stops it: `stop` comes before the end of this object, and works everything
        // off.
        let thread = WorkerThread<Job>(name: "hearth-writer", idle: { store.maintain() }) { [weak self] jobs in
            self?.process(jobs)
        }
        worker.withLock { $0 = thread }
    }

    /// Ends the writer's thread; what was queued is committed before.
    func stop(because reason: Status? = nil) {
        if let reason { ended.withLock { $0 = reason } }
        for job in worker.withLock({ $0 })?.stop() ?? [] {
            switch job {
            case .commit(let request): answer(request, .failure(shutdown))
            case .maintenance(_, let completion), .clear(let completion): completion(.failure(shutdown))
            }
        }
        let waiting = parked.withLock { parked in
            defer { parked.requests = [:] }
            return Array(parked.requests.values)
        }
        for request in waiting { request.completion(.failure(shutdown)) }
    }

    /// Whether commits wait, for the writer or for locks.
    var hasQueuedCommits: Bool { queuedCount.load(ordering: .relaxed) > 0 }

    var statistics: DatabaseStatistics {
        var statistics = DatabaseStatistics()
        statistics.commits = counters.commits.load(ordering: .relaxed)
        statistics.failures = counters.failures.load(ordering: .relaxed)
        statistics.groups = counters.groups.load(ordering: .relaxed)
        statistics.groupSizes = counters.groupSizes
        statistics.queuedCommits = queuedCount.load(ordering: .relaxed)
        statistics.queuedBytes = queuedBytes.load(ordering: .relaxed)
        return statistics
    }

    // MARK: Queueing

    func submit(_ request: Request) {
        let isFull =
            queuedCount.load(ordering: .relaxed) >= Limits.commitQueueMax
            || queuedBytes.load(ordering: .relaxed) + request.sizeBytes > Limits.commitQueueBytesMax
        queuedCount.add(1, ordering: .relaxed)
        queuedBytes.add(request.sizeBytes, ordering: .relaxed)
        if isFull {
            answer(request, .failure(.resourceExhausted("Too many commits are waiting for the disk.")))
        } else {
            enqueue(request)
        }
    }

    private func enqueue(_ request: Request) {
        if !push(.commit(request)) { answer(request, .failure(shutdown)) }
    }

    /// Ends a request, whatever became of it: gives up its turns, then tells its sender.
    private func answer(_ request: Request, _ result: Result<CommitOutcome, Status>) {
        queuedCount.subtract(1, ordering: .relaxed)
        queuedBytes.subtract(request.sizeBytes, ordering: .relaxed)
        locks.remove(request.owner)
        request.completion(result)
    }

    private var shutdown: Status { ended.withLock { $0 } }

    @discardableResult
    private func push(_ job: Job) -> Bool {
        worker.withLock { $0 }?.push(job) ?? false
    }

    func perform(
        _ body: @escaping @Sendable (any StoreTransaction) throws(Status) -> Void,
        completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        if !push(.maintenance(body, completion)) {
            completion(.failure(shutdown))
        }
    }

    // MARK: The writer's thread

    private func process(_ jobs: [Job]) {
        var group: [Request] = []
        var groupBytes = 0
        func flush() {
            if !group.isEmpty { commit(group) }
            group = []
            groupBytes = 0
        }
        for job in jobs {
            switch job {
            case .commit(let request):
                group.append(request)
                groupBytes += request.sizeBytes
                if group.count >= Limits.groupCommitRequestsMax || groupBytes >= Limits.groupCommitBytesMax { flush() }
            case .maintenance(let body, let completion):
                flush()
                completion(maintain(body))
            case .clear(let completion):
                flush()
                completion(clear())
            }
        }
        flush()
    }

    private func maintain(_ body: (any StoreTransaction) throws(Status) -> Void) -> Result<Void, Status> {
        do {
            try store.write { transaction throws(Status) in try body(transaction) }
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    /// A commit of its own, which leaves no history behind.
    private func clear() -> Result<Void, Status> {
        commitClock.beginGroup()
        let version = commitClock.nextVersion(notBefore: 0)
        let result = maintain { transaction throws(Status) in
            let everything = KeyRange(lower: [], upper: nil)
            for keyspace in [Keyspace.documents, .entries, .feed] {
                try transaction.delete(keyspace, everything, limit: .max)
            }
            try transaction.delete(.meta, KeyRange(prefix: Feed.tombstoneKey([])), limit: .max)
            try transaction.put(.meta, Database.versionKey, Database.encode(version))
            try transaction.put(.meta, Database.earliestKey, Database.encode(version))
        }
        if case .success = result {
            recent.reset(to: version)
            commitClock.endGroup(committed: version)
            hub.cleared(version: version)
        } else {
            commitClock.endGroup(committed: nil)
        }
        return result
    }

    func clear(_ completion: @escaping @Sendable (Result<Void, Status>) -> Void) {
        if !push(.clear(completion)) { completion(.failure(shutdown)) }
    }

    /// What became of a request of a group, told when the group is durable.
    private enum Verdict {
        case committed(CommitOutcome)
        case failed(Status)
        case parked(holder: LockTable.Owner, key: [UInt8]?)
    }

    private func commit(_ group: [Request]) {
        commitClock.beginGroup()
        var verdicts: [Verdict] = []
        var sets: [ChangeSet] = []
        var failure: Status?
        var newIncarnation: Int64?
        do {
            try store.write { transaction throws(Status) in
                for request in group {
                    verdicts.append(try self.apply(request, to: transaction, earlier: &sets))
                }
                if let last = sets.last {
                    try transaction.put(.meta, Database.versionKey, Database.encode(last.version))
                    newIncarnation = try self.incarnation.begin(in: transaction)
                }
            }
        } catch {
            failure = error
        }
        if failure == nil {
            for set in sets { recent.append(set) }
            if let newIncarnation { incarnation.set(newIncarnation) }
        }
        commitClock.endGroup(committed: failure == nil ? sets.last?.version : nil)
        if failure == nil {
            observers.tell(sets)
            for set in sets { hub.committed(set) }
        }
        for (index, request) in group.enumerated() {
            if let failure {
                answer(request, .failure(Status(.unavailable, failure.message)))
            } else {
                finish(request, verdicts[index])
            }
        }
        counters.count(group: group.count, failed: failure != nil)
    }

    private func finish(_ request: Request, _ verdict: Verdict) {
        switch verdict {
        case .committed(let outcome): answer(request, .success(outcome))
        case .failed(let status): answer(request, .failure(status))
        case .parked(let holder, let key): park(request, holder, key)
        }
    }

    /// What a commit will do, worked out before anything of it is written.
    private struct Prepared {
        var staged: StagedCommit
        var set: ChangeSet
        var differences: [IndexDifference]
    }

    private enum Preparation {
        case ready(Prepared)
        case parked(holder: LockTable.Owner, key: [UInt8]?)
    }

    /// - Throws: when the store fails, which fails the group; what is wrong with the request is its verdict.
    private func apply(
        _ request: Request, to transaction: any StoreTransaction, earlier sets: inout [ChangeSet]
    ) throws(Status) -> Verdict {
        let prepared: Prepared
        do throws(Status) {
            switch try prepare(request, on: transaction, earlier: sets) {
            case .ready(let ready): prepared = ready
            case .parked(let holder, let key): return .parked(holder: holder, key: key)
            }
        } catch {
            // A damaged document is the trouble of those who write to it, not of the group.
            if error.code == .unavailable { throw error }
            return .failed(error)
        }
        // From here on half of the commit may be written: every failure undoes the group.
        try store(prepared.set, prepared.differences, to: transaction)
        if !prepared.set.changes.isEmpty { sets.append(prepared.set) }
        let version = prepared.set.version
        return .committed(
            CommitOutcome(
                commitTime: Timestamp(microseconds: version), results: prepared.staged.results(version: version)))
    }

    private func prepare(
        _ request: Request, on transaction: any StoreTransaction, earlier sets: [ChangeSet]
    ) throws(Status) -> Preparation {
        if !request.writes.isEmpty {
            if locks.isDoomed(request.owner) { throw Self.contention }
            if let read = request.transaction {
                try validate(read.readSet, since: read.version, earlier: sets, in: transaction)
            }
        }
        let staged = try StagedCommit(
            request.writes, on: transaction, catalog: catalog.value, requestTime: request.requestTime,
            latest: commitClock.latest, defersPreconditions: request.guard != nil)
        if let commitGuard = request.guard {
            // Before the preconditions: whoever may not write learns nothing of what is stored.
            try commitGuard.check(
                GuardedCommit(request.writes, on: transaction, staged: staged, requestTime: request.requestTime))
            if let failure = staged.deferredFailure { throw failure }
        }
        // The version is given only when the commit no longer waits; until then 0 stands for it.
        // Always in the order of keys, so that no two commits wait for each other.
        let touched = staged.changes(version: 0).sorted { UTF8Order.compare($0.key, $1.key) < 0 }
        for change in touched {
            if let (holder, isDocument) = try locks.holder(of: change, otherThan: request.owner) {
                return .parked(holder: holder, key: isDocument ? change.key : nil)
            }
        }
        let version = commitClock.nextVersion(notBefore: request.requestTime.microseconds)
        let set = ChangeSet(version: version, changes: staged.changes(version: version))
        var differences: [IndexDifference] = []
        var size = 0
        for change in set.changes {
            let difference = try staged.difference(change)
            size += difference.sizeBytes + (change.before?.fields.count ?? 0) + (change.after?.fields.count ?? 0)
            // Checked as it grows, so that no commit can fill the memory before it is refused.
            if size > Limits.commitBytesMax {
                throw .invalidArgument("Transaction too big. Decrease transaction size.")
            }
            differences.append(difference)
        }
        return .ready(Prepared(staged: staged, set: set, differences: differences))
    }

    private func store(
        _ set: ChangeSet, _ differences: [IndexDifference], to transaction: any StoreTransaction
    ) throws(Status) {
        for (change, difference) in zip(set.changes, differences) {
            var previous = change.before?.updateVersion ?? 0
            if change.before == nil, let deleted = try Feed.tombstone(change.key, in: transaction) {
                previous = deleted
                try transaction.delete(.meta, Feed.tombstoneKey(change.key))
            }
            if let after = change.after {
                try transaction.put(.documents, change.key, after.stored)
            } else {
                try transaction.delete(.documents, change.key)
                try transaction.put(.meta, Feed.tombstoneKey(change.key), Database.encode(set.version))
            }
            for key in difference.deleted { try transaction.delete(.entries, key) }
            for entry in difference.inserted { try transaction.put(.entries, entry.key, entry.value) }
            let record = Feed.Record(
                version: set.version, documentKey: change.key, previousVersion: previous, before: change.before)
            try transaction.put(.feed, record.key, record.value)
        }
    }

    // MARK: Validation

    private static let contention = Status.aborted(
        "Aborted due to cross-transaction contention. This occurs when multiple transactions attempt to access the same "
            + "data, requiring Firestore to abort at least one in order to enforce serializability.")

    private func validate(
        _ readSet: ReadSet, since version: Int64?, earlier sets: [ChangeSet], in snapshot: any Snapshot
    ) throws(Status) {
        guard let version, !readSet.isEmpty else { return }
        for set in sets where set.version > version {
            if try readSet.isTouched(by: set) { throw Self.contention }
        }
        if try isTouched(readSet, since: version, through: commitClock.committed, in: snapshot) {
            throw Self.contention
        }
    }

    /// Whether commits after a version have changed what was read.
    /// - Parameters:
    ///   - last: the version of the last commit that the snapshot shows; it may not be among the recent changes yet.
    ///   - snapshot: shows the feed.
    func isTouched(
        _ readSet: ReadSet, since version: Int64, through last: Int64, in snapshot: any Snapshot
    ) throws(Status) -> Bool {
        if readSet.isEmpty { return false }
        if let sets = recent.changes(after: version, through: last) {
            for set in sets {
                if try readSet.isTouched(by: set) { return true }
            }
            return false
        }
        // What happened before can't be told any more: everything may have been deleted.
        if version < (try snapshot.get(.meta, Database.earliestKey).map(Database.decode) ?? 0) { return true }
        let cursor = try snapshot.scan(.feed, Feed.range(after: version), reverse: false, values: true)
        defer { cursor.close() }
        while try cursor.next() {
            let record = try Feed.Record(key: cursor.key, value: cursor.value)
            // The state after is that before the next change; reading the present one instead can only find too much.
            let after = try snapshot.document(record.documentKey)
            let change = Change(key: record.documentKey, before: record.before, after: after)
            if try readSet.isTouched(by: change) { return true }
        }
        return false
    }

    // MARK: Waiting for turns

    private static let timeout = Status.aborted("Transaction lock timeout.")

    private func park(_ request: Request, _ holder: LockTable.Owner, _ key: [UInt8]?) {
        if clock.monotonicNanoseconds() >= request.waitUntil { return answer(request, .failure(Self.timeout)) }
        let ticket = parked.withLock { parked in
            parked.next += 1
            parked.requests[parked.next] = request
            return parked.next
        }
        let resume: @Sendable () -> Void = { [weak self] in
            guard let self, let request = self.unpark(ticket) else { return }
            self.enqueue(request)
        }
        // A commit outside of transactions becomes known when it first has to wait.
        if request.transaction == nil { locks.add(request.owner, age: request.owner) }
        if let key {
            if !locks.acquire(.document(key), for: request.owner, granted: resume), let request = unpark(ticket) {
                answer(request, .failure(.aborted("Too much contention on these documents. Please try again.")))
            }
        } else {
            locks.whenReleased(holder, waiting: request.owner, resume)
        }
    }

    private func unpark(_ ticket: UInt64) -> Request? {
        parked.withLock { $0.requests.removeValue(forKey: ticket) }
    }

    /// Fails the commits that have waited too long. To be called some times a second.
    func tick() {
        let now = clock.monotonicNanoseconds()
        let late = parked.withLock { parked in
            let tickets = parked.requests.filter { $0.value.waitUntil <= now }.map(\.key)
            return tickets.compactMap { parked.requests.removeValue(forKey: $0) }
        }
        for request in late { answer(request, .failure(Self.timeout)) }
    }
}

/// The answer to a commit.
public struct CommitOutcome: Sendable {
    public var commitTime: Timestamp
    /// One for each write, in order.
    public var results: [WriteResult]
}
