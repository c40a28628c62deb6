import HearthConcurrency
import HearthModel
import HearthWire
import Synchronization

/// The one way by which a database changes.
///
/// Commits queue for the writer's thread, in turn between clients. It takes what has gathered, works out each on the state left
/// by the ones before it, and makes them durable together: one sync for the group, each commit within it all or nothing.
/// Answers leave after the sync. A commit that must wait for a transaction's lock leaves the queue and comes back.
///
/// A large commit is worked out beside the writer, on a snapshot, by the preparer's thread. The writer then looks whether
/// anything that this rests on was changed since; if so, it is worked out again. So the writer's time for one commit is
/// that of storing it, which `Limits.commitRecordsMax` bounds.
final class CommitPipeline: Sendable {
    typealias Request = CommitRequest

    enum Job: Sendable {
        case commit(Request)
        /// Anything else that writes: index builds, collection of old versions. Runs in a group of its own.
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
    let commitClock: CommitClock
    private let locks: LockTable
    let recent: RecentChanges
    private let catalog: CurrentCatalog
    private let observers: ChangeObservers
    let hub: ChangeHub
    private let incarnation: Incarnation
    private let parked = Mutex(Parked())
    private let admission = CommitAdmission()
    private let counters = CommitCounters()
    /// Commits that were prepared and that the writer hasn't begun with.
    private let preparedWaiting = Atomic<Int>(0)
    private let writer: Mutex<FairWorker<Job>?>
    private let preparer: Mutex<FairWorker<Request>?>
    /// What is answered to whoever comes after the end.
    private let ended = Mutex(Status.unavailable("The server is shutting down."))

    /// - Parameters:
    ///   - observers: notified of every commit, in order, after it is durable and visible.
    ///   - drivers: make what runs the writer and the preparer.
    init(
        store: any Store, clock: any Clock, commitClock: CommitClock, locks: LockTable, recent: RecentChanges,
        catalog: CurrentCatalog, observers: ChangeObservers, hub: ChangeHub, incarnation: Incarnation,
        drivers: WorkerDrivers = ThreadDriver.make
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
        writer = Mutex(nil)
        preparer = Mutex(nil)
        // The threads must not keep alive what stops them: `stop` comes before the end of this object, and works everything
        // off.
        let writing = FairWorker<Job>("hearth-writer", drivers: drivers, idle: { store.maintain() }) { [weak self] in
            self?.write()
        }
        let preparing = FairWorker<Request>("hearth-prepare", drivers: drivers) { [weak self] in self?.prepare() }
        writer.withLock { $0 = writing }
        preparer.withLock { $0 = preparing }
    }

    /// Ends the threads; what was queued is committed before.
    func stop(because reason: Status? = nil) {
        if let reason { ended.withLock { $0 = reason } }
        let (preparing, writing) = (preparer.withLock { $0 }, writer.withLock { $0 })
        // What the preparer leaves, the writer works out itself.
        for request in preparing?.stop() ?? [] { pushToWriter(request) }
        fail(writing?.stop() ?? [])
        let waiting = parked.withLock { parked in
            defer { parked.requests = [:] }
            return Array(parked.requests.values)
        }
        for request in waiting { answer(request, .failure(shutdown)) }
    }

    /// Whether commits wait, for the writer or for locks.
    var hasQueuedCommits: Bool { admission.queued.count > 0 }

    var statistics: DatabaseStatistics {
        var statistics = DatabaseStatistics()
        statistics.commits = counters.commits.load(ordering: .relaxed)
        statistics.failures = counters.failures.load(ordering: .relaxed)
        statistics.groups = counters.groups.load(ordering: .relaxed)
        statistics.groupSizes = counters.groupSizes
        (statistics.queuedCommits, statistics.queuedBytes) = admission.queued
        return statistics
    }

    // MARK: Queueing

    func submit(_ request: Request) {
        var request = request
        request.cost = CommitCost.units(of: request.writes)
        request.restsOnOldReads = restsOnOldReads(request)
        do throws(Status) {
            // What is held back is queued by `prepareAgain`.
            if try !admission.enter(&request) { return }
        } catch {
            locks.remove(request.owner)
            return request.completion(.failure(error))
        }
        enqueue(request)
    }

    private func enqueue(_ request: Request) {
        if request.isSlow { pushToPreparer(request) } else { pushToWriter(request) }
    }

    private func pushToPreparer(_ request: Request) {
        let rest = preparer.withLock { $0 }?.push(request, for: request.requester, cost: request.cost) ?? [request]
        // The preparer ends before the writer does.
        for request in rest { pushToWriter(request) }
    }

    private func pushToWriter(_ request: Request) {
        push(.commit(request), for: request.requester, cost: request.cost, request.isSlow ? .large : .quick)
    }

    private func push(_ job: Job, for requester: Requester, cost: Int, _ lane: FairWorker<Job>.Lane = .quick) {
        fail(writer.withLock { $0 }?.push(job, for: requester, cost: cost, lane) ?? [job])
    }

    /// Answers what can't be done any more.
    private func fail(_ jobs: [Job]) {
        for job in jobs {
            switch job {
            case .commit(let request): answer(request, .failure(shutdown))
            case .maintenance(_, let completion), .clear(let completion): completion(.failure(shutdown))
            }
        }
    }

    /// Ends a request, whatever became of it: gives up its locks, then notifies its sender.
    private func answer(_ request: Request, _ result: Result<CommitOutcome, Status>) {
        begun(request)
        admission.leave(request)
        locks.remove(request.owner)
        request.completion(result)
    }

    private var shutdown: Status { ended.withLock { $0 } }
    static let unwanted = Status(.cancelled, "The client has cancelled the call.")

    func perform(
        _ body: @escaping @Sendable (any StoreTransaction) throws(Status) -> Void,
        completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        push(.maintenance(body, completion), for: .server, cost: Self.maintenanceCost)
    }

    /// In units of `CommitCost`; steps of maintenance are made as long as this.
    private static let maintenanceCost = 4000

    // MARK: The preparer's thread

    private func prepare() {
        guard let preparer = preparer.withLock({ $0 }) else { return }
        while preparedWaiting.load(ordering: .acquiring) < Limits.commitsPreparedMax {
            guard let (request, _) = preparer.next() else { return }
            prepare(request)
        }
        preparer.pause()
        // The writer may have begun with one just before.
        if preparedWaiting.load(ordering: .acquiring) < Limits.commitsPreparedMax { wakePreparer() }
    }

    private func wakePreparer() {
        for request in preparer.withLock({ $0 })?.wake() ?? [] { pushToWriter(request) }
    }

    private func prepare(_ request: Request) {
        if request.isAbandoned { return answer(request, .failure(Self.unwanted)) }
        if !request.isLarge { return pushToWriter(request) }
        var request = request
        do throws(Status) {
            let (catalog, epoch) = catalog.valueAndEpoch
            let snapshot: any Snapshot
            do throws(Status) {
                snapshot = try store.snapshot()
            } catch {
                // Readers have taken all snapshots. The writer needs none.
                if error.code == .resourceExhausted { return pushToWriter(request) }
                throw error
            }
            defer { snapshot.close() }
            let prepared = try prepare(request, on: snapshot, catalog, epoch)
            request.prepared = prepared
            // What was read is as it was up to here.
            if request.transaction?.version != nil { request.transaction?.version = prepared.version }
        } catch {
            return answer(request, .failure(error))
        }
        preparedWaiting.add(1, ordering: .acquiringAndReleasing)
        request.preparations += 1
        pushToWriter(request)
    }

    private func prepare(
        _ request: Request, on snapshot: any Snapshot, _ catalog: IndexCatalog, _ epoch: UInt64
    ) throws(Status) -> PreparedCommit {
        let version = try Database.version(of: snapshot)
        if locks.isDoomed(request.owner) { throw Self.contention }
        // First, so that a client tries again whose transaction finds something that it hasn't read.
        if let read = request.transaction, let since = read.version,
            try isTouched(read.readSet, since: since, through: version, in: snapshot, .long)
        {
            throw Self.contention
        }
        let latest = commitClock.latest
        try PreparedCommit.judgeFirstWrite(of: request, on: snapshot, catalog: catalog, latest: latest)
        return try PreparedCommit(
            request, on: snapshot, version: version, catalog: catalog, catalogEpoch: epoch, latest: latest,
            isWanted: { !request.isAbandoned })
    }

    /// Whether nothing has changed that a preparation rests on. For the writer.
    private func isFresh(_ prepared: PreparedCommit, earlier sets: [ChangeSet]) -> Bool {
        guard prepared.catalogEpoch == catalog.epoch,
            let since = recent.changes(after: prepared.version, through: commitClock.committed)
        else { return false }
        func rests(on set: ChangeSet) -> Bool { set.changes.contains { prepared.rests(on: $0.key) } }
        return !since.contains(where: rests) && !sets.contains(where: rests)
    }

    // MARK: The writer's thread

    private func write() {
        guard let writer = writer.withLock({ $0 }) else { return }
        while let (job, lane) = writer.next() {
            var next: Job? = job
            while let job = next {
                next = nil
                switch job {
                case .commit(let request): next = commit(from: request, writer, lane)
                case .maintenance(let body, let completion): completion(maintain(body))
                case .clear(let completion): completion(clear())
                }
            }
        }
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
        push(.clear(completion), for: .server, cost: Self.maintenanceCost)
    }

    /// What became of a request of a group, answered when the group is durable.
    enum Verdict {
        case committed(CommitOutcome)
        case failed(Status)
        case parked(holder: LockTable.Owner, key: [UInt8]?)
        /// What it was prepared on has changed.
        case outdated
    }

    /// Commits that become durable together.
    struct Group {
        var requests: [Request] = []
        var verdicts: [Verdict] = []
        var sets: [ChangeSet] = []
        /// The documents that `sets` change.
        var keys: Set<[UInt8]> = []
        var bytes = 0
        var cost = 0

        /// Whether one more is taken in, so that it doesn't wait for a sync of its own.
        func hasRoom(for request: Request) -> Bool {
            bytes + request.sizeBytes <= Limits.groupCommitBytesMax
                && cost + request.cost <= CommitCost.groupUnitsMax
        }
    }

    /// Commits a group.
    /// - Parameter first: the commit whose turn it is; those behind it in the lane come along.
    /// - Returns: the next job of the lane when that has no place in the group.
    private func commit(from first: Request, _ writer: FairWorker<Job>, _ lane: FairWorker<Job>.Lane) -> Job? {
        if isDropped(first) { return nil }
        // What comes from now on goes into another group, or the first would wait for as long as others come.
        let countMax = min(Limits.groupCommitRequestsMax, writer.count(lane) + 1)
        let end = clock.monotonicNanoseconds() + UInt64(Limits.groupCommitMillisecondsMax) * 1_000_000
        var group = Group()
        var leftOver: Job?
        var failure: Status?
        var newIncarnation: Int64?
        commitClock.beginGroup()
        do {
            try store.write { transaction throws(Status) in
                try self.apply(first, to: transaction, &group)
                while group.requests.count < countMax, self.clock.monotonicNanoseconds() < end,
                    let job = writer.next(in: lane)
                {
                    guard case .commit(let request) = job, group.hasRoom(for: request) else {
                        leftOver = job
                        break
                    }
                    if !self.isDropped(request) { try self.apply(request, to: transaction, &group) }
                }
                if let last = group.sets.last {
                    try transaction.put(.meta, Database.versionKey, Database.encode(last.version))
                    newIncarnation = try self.incarnation.begin(in: transaction)
                }
            }
        } catch {
            failure = error
            // It may have failed before it began with the first.
            if group.requests.isEmpty { group.requests = [first] }
        }
        if failure == nil {
            for set in group.sets { recent.append(set) }
            if let newIncarnation { incarnation.set(newIncarnation) }
        }
        commitClock.endGroup(committed: failure == nil ? group.sets.last?.version : nil)
        finish(group, failure)
        return leftOver
    }

    private func finish(_ group: Group, _ failure: Status?) {
        if failure == nil {
            observers.tell(group.sets)
            for set in group.sets { hub.committed(set) }
        }
        for (index, request) in group.requests.enumerated() {
            // The last of a failed group may have none.
            let verdict = index < group.verdicts.count ? group.verdicts[index] : nil
            if case .outdated = verdict {
                prepareAgain(request)
                continue
            }
            if let failure {
                answer(request, .failure(Status(.unavailable, failure.message)))
                continue
            }
            switch verdict {
            case .committed(let outcome): answer(request, .success(outcome))
            case .failed(let status): answer(request, .failure(status))
            case .parked(let holder, let key): park(request, holder, key)
            case .outdated, nil: break
            }
        }
        counters.count(group: group.requests.count, failed: failure != nil)
    }

    /// Answers a commit for which nobody waits any more, without beginning with it.
    private func isDropped(_ request: Request) -> Bool {
        guard request.isAbandoned else { return false }
        answer(request, .failure(Self.unwanted))
        return true
    }

    /// Makes room for the next one to be prepared: when the writer begins with one, or it is answered without that.
    private func begun(_ request: Request) {
        guard request.prepared != nil else { return }
        preparedWaiting.subtract(1, ordering: .acquiringAndReleasing)
        wakePreparer()
    }

    private func prepareAgain(_ request: Request) {
        if request.preparations >= Limits.commitPreparationsMax {
            answer(request, .failure(Self.tooMuchContention))
        } else {
            pushToPreparer(request)
        }
        while case let held = admission.nextHeld(behind: request), !held.isEmpty {
            for request in held { enqueue(request) }
        }
    }

    /// - Throws: when the store fails, which fails the group; what is wrong with the request is its verdict.
    private func apply(
        _ request: Request, to transaction: any StoreTransaction, _ group: inout Group
    ) throws(Status) {
        let started = clock.monotonicNanoseconds()
        defer { admission.measured(request, nanoseconds: clock.monotonicNanoseconds() - started) }
        begun(request)
        var kept = request
        kept.prepared = nil
        group.requests.append(kept)
        group.bytes += request.sizeBytes
        group.cost += request.cost
        let decision: Decision
        do throws(Status) {
            decision = try decide(on: request, in: transaction, group)
        } catch {
            // A damaged document is the trouble of those who write to it, not of the group.
            if error.code == .unavailable { throw error }
            return group.verdicts.append(.failed(error))
        }
        switch decision {
        case .no(let verdict): group.verdicts.append(verdict)
        case .yes(let prepared, let set):
            // From here on half of the commit may be written: every failure undoes the group.
            try store(set, prepared.differences, to: transaction)
            if !set.changes.isEmpty {
                group.sets.append(set)
                for change in set.changes { group.keys.insert(change.key) }
            }
            group.verdicts.append(.committed(Self.outcome(of: request, prepared.staged, version: set.version)))
        }
    }

    private static func outcome(of request: Request, _ staged: StagedCommit, version: Int64) -> CommitOutcome {
        CommitOutcome(
            commitTime: Timestamp(microseconds: version), results: staged.results(version: version),
            document: request.returning.flatMap { staged.document(afterWrite: $0, version: version) })
    }

    private enum Decision {
        case yes(PreparedCommit, ChangeSet)
        case no(Verdict)
    }

    private func decide(
        on request: Request, in transaction: any StoreTransaction, _ group: borrowing Group
    ) throws(Status) -> Decision {
        if !request.writes.isEmpty {
            if locks.isDoomed(request.owner) { throw Self.contention }
            if let read = request.transaction {
                try validate(read.readSet, since: read.version, group, in: transaction)
            }
        }
        let prepared: PreparedCommit
        if let known = request.prepared, isFresh(known, earlier: group.sets) {
            prepared = known
        } else if request.prepared != nil, admission.holdOthers(behind: request) {
            return .no(.outdated)
        } else {
            // Going back it would be overtaken by those of its connection that wait behind it.
            let (catalog, epoch) = catalog.valueAndEpoch
            prepared = try PreparedCommit(
                request, on: transaction, version: 0, catalog: catalog, catalogEpoch: epoch,
                latest: commitClock.latest)
        }
        if !locks.isIdle(except: request.owner) {
            // The version is given only when the commit no longer waits; until then 0 stands for it.
            // Always in the order of keys, so that no two commits wait for each other.
            let touched = prepared.staged.changes(version: 0).sorted { UTF8Order.compare($0.key, $1.key) < 0 }
            for change in touched {
                if let (holder, isDocument) = try locks.holder(of: change, otherThan: request.owner) {
                    return .no(.parked(holder: holder, key: isDocument ? change.key : nil))
                }
            }
        }
        let version = commitClock.nextVersion(notBefore: request.requestTime.microseconds)
        return .yes(prepared, ChangeSet(version: version, changes: prepared.staged.changes(version: version)))
    }

    // MARK: Storing

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

    static let tooMuchContention = Status.aborted("Too much contention on these documents. Please try again.")

    static let contention = Status.aborted(
        "Aborted due to cross-transaction contention. This occurs when multiple transactions attempt to access the same "
            + "data, requiring Firestore to abort at least one in order to enforce serializability.")

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
            let acquisition = locks.acquire(.document(key), for: request.owner, granted: resume)
            if case .refused = acquisition, let request = unpark(ticket) {
                answer(request, .failure(Self.tooMuchContention))
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
    /// What the commit has left of the document that one write was asked to return; nil for none.
    public var document: StoredDocument?
}
