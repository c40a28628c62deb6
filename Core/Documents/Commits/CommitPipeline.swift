import HearthEngine
import HearthConcurrency
import HearthModel
import HearthWire
import Synchronization

/// The one way by which a database changes.
///
/// Commits queue for the writer's thread, round-robin between clients. The writer takes the queued commits, works out each on the
/// state that those before it leave, and makes them durable together: one sync for the group, each commit within it all or
/// nothing. Answers are sent after the sync. A commit that must wait for a transaction's lock is parked and queued again.
///
/// A large commit is worked out beside the writer, on a snapshot, by the preparer's thread. The writer then checks whether
/// anything that this rests on was changed since; if so, it is worked out again. So the writer's time for one commit is
/// that of storing it, which `Limits.commitRecordsMax` bounds.
final class CommitPipeline: Sendable {
    package typealias Request = QueuedCommit

    @usableFromInline enum Job: Sendable {
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

    let store: any Store
    let clock: any Clock
    let commitClock: CommitClock
    let locks: LockTable
    let recent: RecentChanges
    let catalog: CurrentCatalog
    let hub: ChangeHub
    let incarnation: Incarnation
    private let parked = Mutex(Parked())
    let admission = CommitAdmission()
    /// What commits of all databases of the process may hold while they wait.
    private let memory: MemoryBudget
    let counters = CommitCounters()
    /// Commits that were prepared and that the writer hasn't begun with.
    let preparedWaiting = Atomic<Int>(0)
    /// In monotonic nanoseconds; see `delayLarge`.
    let largeNotBefore = Atomic<UInt64>(0)
    let writer: Mutex<FairWorker<Job>?>
    let preparer: Mutex<FairWorker<Request>?>
    let recorder = Mutex<(any EventRecorder)?>(nil)
    /// The prefix of the documents of the ledger of which records are kept (`OnceLedger`); nil for none. Changed on the
    /// writer's thread.
    let ledger: Mutex<[UInt8]?>
    /// The error of requests that come after the end.
    private let ended = Mutex(Status.unavailable("The server is shutting down."))

    /// - Parameter drivers: make what runs the writer and the preparer.
    init(
        store: any Store, clock: any Clock, commitClock: CommitClock, locks: LockTable, recent: RecentChanges,
        catalog: CurrentCatalog, hub: ChangeHub, incarnation: Incarnation, ledger: [UInt8]?,
        memory: MemoryBudget, drivers: WorkerDrivers = ThreadDriver.make
    ) {
        self.store = store
        self.clock = clock
        self.commitClock = commitClock
        self.locks = locks
        self.recent = recent
        self.catalog = catalog
        self.hub = hub
        self.incarnation = incarnation
        self.memory = memory
        self.ledger = Mutex(ledger)
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
        let measure = CommitCost.measure(request.writes)
        request.cost = measure.units
        request.decodedBytes = measure.bytes
        request.arrayOperations = measure.arrayOperations
        request.restsOnOldReads = restsOnOldReads(request)
        do throws(Status) {
            try hold(request)
            // What is held back is queued by `releaseHeld`.
            if try !admission.enter(request) { return }
        } catch {
            locks.remove(request.owner)
            return request.completion(.failure(error))
        }
        enqueue(request)
    }

    /// - Throws: RESOURCE_EXHAUSTED.
    private func hold(_ request: Request) throws(Status) {
        let held = memory.reservation(for: request.requester)
        let bytes = min(Limits.commitWaitingBytes + request.heldBytes, Limits.commitWaitingBytesMax)
        guard held.resize(to: bytes) else { throw CommitAdmission.isFull }
        request.held = held
    }

    func enqueue(_ request: Request) {
        if request.isSlow { pushToPreparer(request) } else { pushToWriter(request) }
    }

    func pushToPreparer(_ request: Request) {
        let rest = preparer.withLock { $0 }?.push(request, for: request.requester, cost: request.cost) ?? [request]
        // The preparer ends before the writer does.
        for request in rest { pushToWriter(request) }
    }

    func pushToWriter(_ request: Request) {
        push(.commit(request), for: request.requester, cost: request.cost, request.isSlow ? .large : .quick)
    }

    func push(_ job: Job, for requester: Requester, cost: Int, _ lane: FairWorker<Job>.Lane = .quick) {
        fail(writer.withLock { $0 }?.push(job, for: requester, cost: cost, lane) ?? [job])
    }

    /// Answers what can't be done any more.
    func fail(_ jobs: [Job]) {
        for job in jobs {
            switch job {
            case .commit(let request): answer(request, .failure(shutdown))
            case .maintenance(_, let completion), .clear(let completion): completion(.failure(shutdown))
            }
        }
    }

    /// Ends a request, whatever became of it: gives up its locks, then notifies its sender.
    func answer(_ request: Request, _ result: Result<CommitOutcome, Status>) {
        begun(request)
        admission.leave(request)
        request.held?.resize(to: 0)
        locks.remove(request.owner)
        releaseHeld(behind: request)
        request.completion(result)
    }

    /// Queues what has waited for a commit that went back to the preparer.
    private func releaseHeld(behind request: Request) {
        guard request.isReturning else { return }
        while case let held = admission.nextHeld(behind: request), !held.isEmpty {
            for request in held { enqueue(request) }
        }
    }

    /// Ends a request somewhere else than at the writer. Behind one that has gone back others wait, some of them in the writer's
    /// queue: it ends there, so that they stay in their order.
    func refuse(_ request: Request, _ status: Status) {
        guard request.isReturning else { return answer(request, .failure(status)) }
        begun(request)
        request.failure = status
        pushToWriter(request)
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
    static let maintenanceCost = 4000

    // MARK: Validation

    static let tooMuchContention = Status.aborted("Too much contention on these documents. Please try again.")

    static let contention = Status.aborted(
        "Aborted due to cross-transaction contention. This occurs when multiple transactions attempt to access the same "
            + "data, requiring Firestore to abort at least one in order to enforce serializability.")

    // MARK: Waiting for locks

    static let timeout = Status.aborted("Transaction lock timeout.")

    func park(_ request: Request, _ holder: LockTable.Owner, _ key: [UInt8]?) {
        if clock.monotonicNanoseconds() >= request.waitUntil { return refuse(request, Self.timeout) }
        let ticket = parked.withLock { parked in
            parked.next += 1
            parked.requests[parked.next] = request
            return parked.next
        }
        let resume: @Sendable () -> Void = { [weak self] in
            guard let self, let request = self.unpark(ticket) else { return }
            self.enqueue(request)
        }
        // Only transactions that lock are known before they have to wait.
        locks.add(request.owner, age: request.owner)
        if let key {
            let acquisition = locks.acquire(.document(key), for: request.owner, isCommit: true, granted: resume)
            if case .refused = acquisition, let request = unpark(ticket) {
                refuse(request, Self.tooMuchContention)
            }
        } else {
            locks.whenReleased(holder, waiting: request.owner, since: request.submittedAt, resume)
        }
    }

    func unpark(_ ticket: UInt64) -> Request? {
        parked.withLock { $0.requests.removeValue(forKey: ticket) }
    }

    /// Fails the commits that have waited too long. Must be called some times a second.
    func tick() {
        let now = clock.monotonicNanoseconds()
        let late = parked.withLock { parked in
            let tickets = parked.requests.filter { $0.value.waitUntil <= now }.map(\.key)
            return tickets.compactMap { parked.requests.removeValue(forKey: $0) }
        }
        for request in late { refuse(request, Self.timeout) }
    }
}
