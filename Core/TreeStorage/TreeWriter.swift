import HearthConcurrency
import HearthModel
import HearthStorage
import HearthTree
import Synchronization

/// The one way by which a tree changes: a queue, and a thread that takes all that has gathered.
///
/// Each write is worked out on the state that the ones before it leave: deferred values, condition, guard. Then its records
/// are put into the group's transaction, which is synced once. What is refused was refused before anything of it was put.
/// Then, in this order: the observer is told that the group is durable, and the writes are answered.
final class TreeWriter: Sendable {
    private struct Request: Sendable {
        var write: TreeWrite
        var sizeBytes: Int
        var completion: @Sendable (TreeOutcome) -> Void
    }

    private enum Job: Sendable {
        case write(Request)
        case perform(@Sendable (TreeView) -> Void)
        case setIndexes([TreeIndexDefinition], @Sendable (Result<Void, Status>) -> Void)
        /// A slice of the work on indexes.
        case build
    }

    private struct Shared {
        var indexes: TreeIndexes
        var observer: (any TreeObserver)?
        var queuedWrites = 0
        var queuedBytes = 0
        var statistics = TreeStatistics()
        /// Of the last commit that is durable.
        var version: Int64
        /// Of the last commit that was begun; only the writer's thread changes it.
        var lastVersion: Int64
        var isBuilding = false
    }

    private let store: any Store
    private let clock: any Clock
    private let shared: Mutex<Shared>
    private let builder: TreeIndexBuilder
    private let worker: Mutex<WorkerThread<Job>?>

    init(store: any Store, clock: any Clock) throws(Status) {
        self.store = store
        self.clock = clock
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let version = try TreeMeta.version(in: snapshot)
        let indexes = try TreeIndexes.load(snapshot)
        shared = Mutex(Shared(indexes: indexes, version: version, lastVersion: version))
        builder = TreeIndexBuilder(store: store)
        worker = Mutex(nil)
        // The thread must not keep alive what stops it: `stop` comes before the end of this object.
        let thread = WorkerThread<Job>(name: "hearth-tree-wr", idle: { store.maintain() }) { [weak self] jobs in
            self?.process(jobs)
        }
        worker.withLock { $0 = thread }
        continueBuilding()
    }

    var indexes: TreeIndexes { shared.withLock { $0.indexes } }

    var statistics: TreeStatistics {
        shared.withLock { shared in
            var statistics = shared.statistics
            statistics.queuedWrites = shared.queuedWrites
            statistics.queuedBytes = shared.queuedBytes
            return statistics
        }
    }

    func setObserver(_ observer: (any TreeObserver)?) { shared.withLock { $0.observer = observer } }

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

    func submit(_ write: TreeWrite, _ completion: @escaping @Sendable (TreeOutcome) -> Void) {
        let size: Int
        do throws(Status) { size = try write.checkedSizeBytes() } catch { return completion(.failed(error)) }
        let hasRoom = shared.withLock { shared in
            if shared.queuedWrites >= Limits.treeWriteQueueMax
                || shared.queuedBytes + size > Limits.treeWriteQueueBytesMax
            {
                return false
            }
            shared.queuedWrites += 1
            shared.queuedBytes += size
            return true
        }
        if !hasRoom {
            return completion(.failed(.resourceExhausted("Too many writes are waiting for the disk.")))
        }
        let request = Request(write: write, sizeBytes: size, completion: completion)
        if !push(.write(request)) { answer(request, .failed(Self.closed)) }
    }

    @discardableResult
    func perform(_ job: @escaping @Sendable (TreeView) -> Void) -> Bool { push(.perform(job)) }

    func setIndexes(
        _ definitions: [TreeIndexDefinition], _ completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        if !push(.setIndexes(definitions, completion)) { completion(.failure(Self.closed)) }
    }

    private func push(_ job: Job) -> Bool { worker.withLock { $0 }?.push(job) ?? false }

    private func answer(_ request: Request, _ outcome: TreeOutcome) {
        shared.withLock { shared in
            shared.queuedWrites -= 1
            shared.queuedBytes -= request.sizeBytes
        }
        request.completion(outcome)
    }

    private static let closed = Status.unavailable("The database is closed.")

    /// Ends the thread; what was queued is worked off before.
    func stop() {
        let thread = worker.withLock { worker in
            defer { worker = nil }
            return worker
        }
        for job in thread?.stop() ?? [] {
            switch job {
            case .write(let request): answer(request, .failed(Self.closed))
            case .setIndexes(_, let completion): completion(.failure(Self.closed))
            case .perform, .build: break
            }
        }
    }

    // MARK: The writer's thread

    private func process(_ jobs: [Job]) {
        var group: [Request] = []
        var groupBytes = 0
        var waiting: [@Sendable (TreeView) -> Void] = []
        func flush() {
            if !group.isEmpty { commit(group) }
            group = []
            groupBytes = 0
        }
        func settle() {
            flush()
            if !waiting.isEmpty { run(waiting) }
            waiting = []
        }
        for job in jobs {
            switch job {
            case .write(let request):
                group.append(request)
                groupBytes += request.sizeBytes
                if group.count >= Limits.groupCommitRequestsMax || groupBytes >= Limits.groupCommitBytesMax { flush() }
            case .perform(let job): waiting.append(job)
            case .setIndexes(let definitions, let completion):
                settle()
                completion(change(definitions))
            case .build:
                settle()
                build()
            }
        }
        settle()
    }

    private func run(_ jobs: [@Sendable (TreeView) -> Void]) {
        let view: TreeView
        do throws(Status) {
            view = try self.view()
        } catch {
            view = TreeView(
                FailedSnapshot(error), version: shared.withLock { $0.version }, indexes: indexes, isOwner: false)
        }
        for job in jobs { job(view) }
        view.close()
    }

    private func commit(_ group: [Request]) {
        let (observer, indexes) = shared.withLock { ($0.observer, $0.indexes) }
        var outcomes: [TreeOutcome] = []
        var failure: Status?
        do throws(Status) {
            try store.write { transaction throws(Status) in
                for request in group {
                    outcomes.append(try self.apply(request.write, to: transaction, indexes, observer))
                }
                // When all were refused there is nothing to sync.
                if let last = outcomes.lazy.compactMap(\.commit).last?.version {
                    try transaction.put(.meta, TreeMeta.version, TreeMeta.encode(last))
                }
            }
        } catch {
            failure = error
        }
        let commits = failure == nil ? outcomes.count { $0.commit != nil } : 0
        shared.withLock { shared in
            shared.statistics.groups += 1
            shared.statistics.commits += commits
            if failure == nil { shared.version = shared.lastVersion } else { shared.statistics.failedGroups += 1 }
        }
        if failure == nil {
            observer?.publish()
            continueBuilding()
        } else {
            observer?.discard()
        }
        for (index, request) in group.enumerated() {
            answer(request, failure.map { .failed(Status(.unavailable, $0.message)) } ?? outcomes[index])
        }
    }

    /// - Throws: when the store fails, which fails the group; what is wrong with the write is its outcome.
    private func apply(
        _ write: TreeWrite, to transaction: any StoreTransaction, _ indexes: TreeIndexes,
        _ observer: (any TreeObserver)?
    ) throws(Status) -> TreeOutcome {
        let version = nextVersion()
        let view = TreeView(transaction, version: version, indexes: indexes, isOwner: false)
        let changes: [TreeChange]
        do throws(Status) {
            switch try judge(write, view) {
            case .ready(let resolved): changes = resolved
            case .refused(let outcome): return outcome
            }
        } catch {
            // A damaged record is the trouble of those who write there, not of the group.
            if error.code == .unavailable { throw error }
            return .failed(error)
        }
        // From here on half of the write may be put: every failure undoes the group.
        let isChanged = try TreeMutation(transaction, view).apply(changes)
        for change in write.journal { try change.apply(to: transaction) }
        let commit = TreeCommit(
            version: version, changes: changes, isNoChange: !isChanged, base: write.base)
        if !changes.isEmpty { observer?.prepare(commit, after: view) }
        return .committed(commit)
    }

    private func nextVersion() -> Int64 {
        let now = clock.now().microseconds
        return shared.withLock { shared in
            shared.lastVersion = max(now, shared.lastVersion + 1)
            return shared.lastVersion
        }
    }

    // MARK: Judgement

    private enum Judgement {
        case ready([TreeChange])
        case refused(TreeOutcome)
    }

    private func judge(_ write: TreeWrite, _ view: TreeView) throws(Status) -> Judgement {
        if let condition = write.condition, condition.reveals || write.guard == nil {
            if let current = try mismatch(condition, view) { return .refused(.stale(current: current)) }
        }
        let changes = try write.resolvedChanges(on: view)
        if let treeGuard = write.guard {
            let after = TreeOverlay(base: view, changes: changes)
            try treeGuard.judge(changes, before: view, after: after, now: write.nowMilliseconds)
            if let condition = write.condition, !condition.reveals, let current = try mismatch(condition, view) {
                return .refused(.stale(current: current))
            }
        }
        return .ready(changes)
    }

    /// What is there instead of what a condition asks for; nil when it holds.
    private func mismatch(_ condition: TreeWrite.Condition, _ view: TreeView) throws(Status) -> Node? {
        let current = try view.node(at: condition.path)
        return UTF8Order.equal(current.hash, condition.hash) ? nil : current
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

    private func continueBuilding() {
        let isDue = shared.withLock { shared in
            if shared.isBuilding || shared.indexes.all.allSatisfy({ $0.state == .ready }) { return false }
            shared.isBuilding = true
            return true
        }
        // Not pushed when the database is being closed: the next start goes on.
        if isDue, !push(.build) { shared.withLock { $0.isBuilding = false } }
    }

    private func build() {
        shared.withLock { $0.isBuilding = false }
        do throws(Status) {
            let changed = try builder.slice(of: indexes)
            shared.withLock { $0.indexes = changed }
            continueBuilding()
        } catch {
            // The store is in trouble: the next group that it takes goes on.
        }
    }
}
