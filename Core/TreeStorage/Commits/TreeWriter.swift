import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTree
import Synchronization

/// The one way by which a tree changes: a queue, and a thread that takes groups of writes from it, round-robin
/// between the clients.
///
/// Each write is worked out on the state that the ones before it leave: deferred values, condition, guard. Then its records
/// are put into the group's transaction, which is synced once. What is refused was refused before anything of it was put.
/// Then, in this order: the observer is notified that the group is durable, and the writes are answered.
///
/// Nothing that grows with the tree is done in one piece on this thread. The hash that a condition asks for is worked out on
/// a snapshot beside it, and the thread only checks whether the location has changed since (`RecentTreeChanges`). A write
/// with very many nodes, or that replaces very many, is made in slices (`TreeReplacement`, `WideUpdate`).
final class TreeWriter: Sendable {
    struct Shared {
        var indexes: TreeIndexes
        var observer: (any TreeObserver)?
        var recorder: (any TreeRecorder)?
        var queue = TreeWriteQueue()
        /// Whether the thread will look into the queue.
        var isAwake = false
        var isClosing = false
        var isStopped = false
        var admission = TreeAdmission()
        var statistics = TreeStatistics()
        /// Of the last commit that is durable.
        var version: Int64
        /// Of the last commit that was begun; only the writer's thread changes it.
        var lastVersion: Int64
        var isBuilding = false
        var undecided: UndecidedTreeWrites
        /// Only the writer's thread changes them.
        var changes: RecentTreeChanges
        var hashes = KeptTreeHashes()
    }

    let store: TreeStore
    let options: TreeWriterOptions
    let clock: any Clock
    let shared: Mutex<Shared>
    private let builder: TreeIndexBuilder
    private let worker: Mutex<(any WorkerDriver)?>
    let background: TreeBackground

    init(
        store: any Store, clock: any Clock, options: TreeWriterOptions, background: TreeBackground,
        drivers: WorkerDrivers = ThreadDriver.make
    ) throws(Status) {
        self.store = try TreeStore(store)
        self.clock = clock
        self.options = options
        self.background = background
        let snapshot = try self.store.snapshot()
        defer { snapshot.close() }
        let version = try TreeMeta.version(in: snapshot)
        let indexes = try TreeIndexes.load(snapshot)
        let isUnsettled = try self.store.hasStaged() || self.store.hasGraft
        shared = Mutex(
            Shared(
                indexes: indexes, version: version, lastVersion: version,
                undecided: UndecidedTreeWrites(isSettling: isUnsettled),
                changes: RecentTreeChanges(after: version)))
        builder = TreeIndexBuilder(store: self.store)
        worker = Mutex(nil)
        // The thread must not keep alive what stops it: `stop` comes before the end of this object.
        let idle: @Sendable () -> Void = { [weak self] in
            store.maintain()
            self?.continueWhatFailed()
        }
        let driver = drivers("hearth-tree-wr", idle) { [weak self] in self?.process() }
        worker.withLock { $0 = driver }
        if isUnsettled { enqueue(.settle, for: .background, cost: 1) }
        continueBuilding()
    }

    var indexes: TreeIndexes { shared.withLock { $0.indexes } }

    /// Whether nothing is left to be done for a large write.
    var isSettled: Bool { shared.withLock { !$0.undecided.isReplacing } }

    var isMakingWideUpdate: Bool { shared.withLock { $0.undecided.wide != nil } }

    var statistics: TreeStatistics {
        shared.withLock { shared in
            var statistics = shared.statistics
            (statistics.queuedWrites, statistics.queuedBytes) = shared.admission.queued
            return statistics
        }
    }

    func setObserver(_ observer: (any TreeObserver)?) { shared.withLock { $0.observer = observer } }

    func setRecorder(_ recorder: (any TreeRecorder)?) { shared.withLock { $0.recorder = recorder } }

    // MARK: Views

    func view(_ use: SnapshotUse = .short) throws(Status) -> TreeView {
        while true {
            let indexes = indexes
            let snapshot = try store.snapshot(use)
            // The indexes that the view relies on were complete before the snapshot and not deleted before it.
            if self.indexes !== indexes {
                snapshot.close()
                continue
            }
            do throws(Status) {
                let version = try TreeMeta.version(in: snapshot)
                return TreeView(snapshot, version: version, indexes: indexes, isOwner: true)
            } catch {
                snapshot.close()
                throw error
            }
        }
    }

    // MARK: Queueing

    func submit(
        _ write: TreeWrite, for requester: Requester, _ completion: @escaping @Sendable (TreeOutcome) -> Void
    ) {
        let size: TreeWrite.Size
        do throws(Status) { size = try write.checkedSize() } catch { return completion(.failed(error)) }
        let isLarge = size.nodes >= options.replacementNodesMin || size.bytes >= options.replacementBytesMin
        let refusal: Status? = shared.withLock { shared in
            if shared.isStopped { return Self.closed }
            if let refusal = shared.admission.enter(requester, bytes: size.bytes) { return refusal }
            let cost = 1 + (isLarge ? 0 : size.nodes + size.bytes / 256) + (write.condition == nil ? 0 : 100)
            let request = TreeRequest(
                ticket: shared.undecided.nextTicket(), write: write, sizeBytes: size.bytes, cost: cost,
                isLarge: isLarge, requester: requester, completion: completion)
            shared.queue.append(.write(request), for: requester, cost: cost)
            return nil
        }
        if let refusal { completion(.failed(refusal)) } else { wake() }
    }

    @discardableResult
    func perform(for requester: Requester, _ job: @escaping @Sendable (TreeView) -> Void) -> Bool {
        enqueue(.perform(job), for: requester, cost: 1)
    }

    func setIndexes(
        _ definitions: [TreeIndexDefinition], _ completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        if !enqueue(.setIndexes(definitions, completion), for: .server, cost: 1) { completion(.failure(Self.closed)) }
    }

    @discardableResult
    func enqueue(_ job: TreeJob, for requester: Requester, cost: Int) -> Bool {
        let isQueued = shared.withLock { shared in
            // What is left to be done in the background is done after the next start.
            if shared.isStopped || shared.isClosing && requester == .background { return false }
            shared.queue.append(job, for: requester, cost: cost)
            return true
        }
        if isQueued { wake() }
        return isQueued
    }

    /// Has the thread look into the queue.
    func wake() {
        let isDue = shared.withLock { shared in
            if shared.isAwake || shared.isStopped { return false }
            shared.isAwake = true
            return true
        }
        if isDue, worker.withLock({ $0 })?.wake() != true { end() }
    }

    func answer(_ request: TreeRequest, _ outcome: TreeOutcome) {
        shared.withLock { $0.admission.leave(request.requester, bytes: request.sizeBytes) }
        request.completion(outcome)
    }

    static let closed = Status.unavailable("The database is closed.")

    /// Ends the thread; what was queued is worked off before, but for what is undecided.
    func stop() {
        shared.withLock { $0.isClosing = true }
        let driver = worker.withLock { worker in
            defer { worker = nil }
            return worker
        }
        driver?.stop()
        end()
    }

    /// Answers whatever is left when there is no thread any more.
    private func end() {
        let (jobs, undecided) = shared.withLock { shared in
            shared.isStopped = true
            return (shared.queue.removeAll(), shared.undecided.removeAll())
        }
        var tickets: Set<UInt64> = []
        for request in undecided {
            tickets.insert(request.ticket)
            answer(request, .failed(Self.closed))
        }
        for job in jobs {
            switch job {
            case .write(let request): if !tickets.contains(request.ticket) { answer(request, .failed(Self.closed)) }
            case .setIndexes(_, let completion): completion(.failure(Self.closed))
            // Whoever waits for a job is answered.
            case .perform(let job): job(failedView(Self.closed))
            case .build, .stage, .settle: break
            }
        }
    }

    private func failedView(_ error: Status) -> TreeView {
        TreeView(FailedSnapshot(error), version: shared.withLock { $0.version }, indexes: indexes, isOwner: false)
    }

    // MARK: The writer's thread

    typealias Entry = TreeWriteQueue.Entry

    private func process() {
        while true {
            let (group, other) = takeGroup()
            if group.isEmpty, other == nil { return }
            if !group.isEmpty { work(group) }
            switch other {
            case .setIndexes(let definitions, let completion): completion(change(definitions))
            case .build: build()
            case .stage(let ticket): stage(ticket)
            case .settle: settle()
            case .write, .perform, nil: break
            }
        }
    }

    /// The next writes and what is performed between them, and the job of another kind after them.
    private func takeGroup() -> (group: [Entry], other: TreeJob?) {
        shared.withLock { shared in
            var group: [Entry] = []
            var cost = 0
            while group.count < Limits.groupCommitRequestsMax, cost < options.groupCostMax,
                let entry = shared.queue.popFirst()
            {
                switch entry.job {
                case .write, .perform: group.append(entry)
                case .setIndexes, .build, .stage, .settle: return (group, entry.job)
                }
                cost += entry.cost
            }
            if group.isEmpty { shared.isAwake = false }
            return (group, nil)
        }
    }

    private func work(_ group: [Entry]) {
        let jobs = commit(group)
        if jobs.isEmpty { return }
        let view: TreeView
        do throws(Status) {
            view = try self.view()
        } catch {
            view = failedView(error)
        }
        for job in jobs { job(view) }
        view.close()
    }

    // MARK: Indexes

    private func change(_ definitions: [TreeIndexDefinition]) -> Result<Void, Status> {
        do throws(Status) {
            let changed = try builder.change(indexes, to: definitions)
            // Before anything of an index is deleted: see `view`.
            shared.withLock { $0.indexes = changed }
            continueBuilding()
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    func continueBuilding() {
        let isDue = shared.withLock { shared in
            // A shadow doesn't see what is done to them.
            if shared.isBuilding || shared.undecided.wide != nil
                || shared.indexes.all.allSatisfy({ $0.state == .ready })
            {
                return false
            }
            shared.isBuilding = true
            return true
        }
        // Not queued when the database is being closed: the next start goes on.
        if isDue, !enqueue(.build, for: .background, cost: Limits.treeIndexSliceMax) {
            shared.withLock { $0.isBuilding = false }
        }
    }

    /// What the store has refused in the background is tried again when the thread has nothing to do: nobody may come whose
    /// write would go on with it, and large writes wait for it.
    private func continueWhatFailed() {
        continueBuilding()
        continueSettling()
    }

    private func build() {
        let isHeldUp = shared.withLock { shared in
            shared.isBuilding = false
            return shared.undecided.wide != nil
        }
        if isHeldUp { return }
        do throws(Status) {
            let changed = try builder.slice(of: indexes)
            shared.withLock { $0.indexes = changed }
            continueBuilding()
        } catch {
            // The store is in trouble: the next group that it takes goes on, or an idle moment.
        }
    }
}

extension Requester {
    /// Work that no client waits for.
    static let background = Requester(account: .max, connection: .max, isAdministrator: true)
}
