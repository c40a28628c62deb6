import HearthConcurrency
import HearthModel
import Synchronization

/// First-come queues with leases on the data that read-write transactions have read.
///
/// Correctness does not depend on these locks: every commit validates what its transaction read. They are for fairness:
/// clients that retry a failed commit only a few times, without a pause, must all succeed. So a read in a read-write
/// transaction waits for its lock on the document or the query behind the transactions that read the same before it. A
/// commit waits for the locks of others on the documents that it changes, before the reads that wait behind the same
/// transaction. No lock outlasts its lease while another owner waits. A lease counts from the time of the grant,
/// however often its owner reads the same again. An overtaken owner takes no more locks: it continues without, and its
/// commit fails if the data that it read has changed. Of a cycle of transactions that wait for each other the youngest
/// is doomed: it loses its locks, and its commit fails.
///
/// Callbacks are called without any lock held, on the thread that made them possible. A call's cost depends on the
/// owners that wait for the same resource, not on how many transactions are open.
final class LockTable: Sendable {
    /// A transaction, or a commit outside of transactions.
    typealias Owner = UInt64
    typealias Callback = @Sendable () -> Void

    /// What a lock is taken on.
    enum Resource: Sendable {
        case document([UInt8])
        case query(QueryMatcher)
    }

    private struct Request {
        var owner: Owner
        /// The callbacks for when the lock is granted; empty for the first of a queue, which has it.
        var grants: [Callback]
        /// It waits to write, not to read.
        var isCommit: Bool
        /// The end of the lease of the first in a queue.
        var leaseUntil: UInt64
    }

    private struct OwnerState {
        /// Transactions that began earlier have priority; a retry keeps the age of its first attempt.
        var age: UInt64
        /// Documents on which it has the lock or waits for it.
        var documents: Set<[UInt8]> = []
        var awaitedDocuments: Set<[UInt8]> = []
        var queries: [QueryLocks.LockID] = []
        var isDoomed = false
        /// Its locks were taken away because its lease was over.
        var isOvertaken = false
        /// When it was last granted the lock of a query because another owner was overtaken.
        var tookOverAt: UInt64?
        /// The callbacks for when the owner has released its locks.
        var onRelease: [(owner: Owner, call: Callback)] = []
        var awaitedRelease: Owner?

        var holdsNothing: Bool { documents.isEmpty && queries.isEmpty }
    }

    private struct State {
        /// Queues by document; the first has the lock.
        var documents: [[UInt8]: [Request]] = [:]
        var queries = QueryLocks()
        var owners: [Owner: OwnerState] = [:]
        /// Owners that wait for a lock or a release; some of them may no longer wait.
        var waiting: Set<Owner> = []
    }

    private let state = Mutex(State())
    private let clock: any Clock
    private let leaseNanoseconds: UInt64

    init(clock: any Clock, leaseSeconds: Double = Limits.leaseSeconds) {
        self.clock = clock
        leaseNanoseconds = UInt64(leaseSeconds * 1e9)
    }

    /// Registers an owner. Has no effect when it is registered already.
    func add(_ owner: Owner, age: UInt64) {
        state.withLock { state in
            if state.owners[owner] == nil { state.owners[owner] = OwnerState(age: age) }
        }
    }

    private func lease() -> UInt64 { clock.monotonicNanoseconds() + leaseNanoseconds }

    /// Whether no owner is registered, and no state of any is left.
    var isIdle: Bool {
        state.withLock { $0.owners.isEmpty && $0.documents.isEmpty && $0.queries.isEmpty && $0.waiting.isEmpty }
    }

    /// Whether no owner but `owner` can hold anything.
    func isIdle(except owner: Owner) -> Bool {
        state.withLock { $0.owners.isEmpty || ($0.owners.count == 1 && $0.owners[owner] != nil) }
    }

    func isDoomed(_ owner: Owner) -> Bool {
        state.withLock { $0.owners[owner]?.isDoomed ?? false }
    }

    /// The owners, other than `owner`, of the lock on a changed document, or on a query whose results a change touches.
    func holder(of change: Change, otherThan owner: Owner) throws(Status) -> (owner: Owner, isDocument: Bool)? {
        let (documentHolder, queries) = try state.withLock {
            state throws(Status) -> (Owner?, [(Owner, QueryMatcher)]) in
            let documentHolder = state.documents[change.key]?.first?.owner
            // The document itself decides, whatever queries are held.
            if let documentHolder, documentHolder != owner { return (documentHolder, []) }
            return (nil, try state.queries.held(near: change, otherThan: owner))
        }
        if let documentHolder { return (documentHolder, true) }
        if queries.isEmpty { return nil }
        let (before, after) = (change.before.map { FieldTable($0) }, change.after.map { FieldTable($0) })
        for (holder, matcher) in queries where matcher.isInScope(change.key) {
            if let before, try matcher.matches(key: change.key, before) { return (holder, false) }
            if let after, try matcher.matches(key: change.key, after) { return (holder, false) }
        }
        return nil
    }

    // MARK: Taking locks

    /// The result of a request for a lock.
    enum Acquisition {
        /// Too many wait already; `granted` is not called.
        case refused
        /// The owner had it, or can't take any more; `granted` is called.
        case unchanged
        /// The owner has it, or waits for it; `granted` is called once: now, or when it has it.
        case taken(Taken)
    }

    /// A lock that was taken, to release it alone.
    enum Taken: Sendable {
        case document([UInt8])
        case query(QueryLocks.LockID)
    }

    /// Takes a lock, or queues for it.
    /// - Parameter isCommit: for writing.
    func acquire(
        _ resource: Resource, for owner: Owner, isCommit: Bool = false, granted: @escaping Callback
    ) -> Acquisition {
        var calls: [Callback] = []
        let result = state.withLock { state -> Acquisition in
            // The owner's record is not held meanwhile, or each new document would copy the set of all.
            guard state.owners[owner]?.isDoomed == false, isCommit || state.owners[owner]?.isOvertaken == false else {
                calls.append(granted)
                return .unchanged
            }
            let (isGranted, taken): (Bool?, Taken?) =
                switch resource {
                case .document(let key): enqueue(owner, key, isCommit, granted, &state)
                case .query(let matcher): enqueue(owner, matcher, granted, &state)
                }
            guard let isGranted else { return .refused }
            if isGranted {
                calls.append(granted)
            } else {
                state.waiting.insert(owner)
                overtakeExpired(before: owner, &state, &calls)
                breakCycles(from: owner, &state, &calls)
            }
            return taken.map { .taken($0) } ?? .unchanged
        }
        for call in calls { call() }
        return result
    }

    /// Whether the lock is granted, nil when the queue is full; and the owner's new entries.
    private func enqueue(
        _ owner: Owner, _ key: [UInt8], _ isCommit: Bool, _ granted: @escaping Callback, _ state: inout State
    ) -> (isGranted: Bool?, taken: Taken?) {
        if state.owners[owner]!.documents.contains(key) {
            // One queue entry is enough for an owner: all its calls there wait for the same lock.
            guard let position = state.documents[key]?.firstIndex(where: { $0.owner == owner }), position > 0 else {
                return (true, nil)
            }
            state.documents[key]![position].grants.append(granted)
            return (false, nil)
        }
        let length = state.documents[key]?.count ?? 0
        if length >= Limits.lockQueueLengthMax { return (nil, nil) }
        var queue = state.documents.removeValue(forKey: key) ?? []
        // A reading transaction may take its time. A commit that waits to write behind it comes before further readers,
        // or these could keep it out by alternating; when a writer has the lock, everyone is queued in order.
        var position = queue.count
        if isCommit, let first = queue.first, !first.isCommit {
            position = queue.dropFirst().firstIndex { !$0.isCommit } ?? position
        }
        queue.insert(
            Request(owner: owner, grants: length == 0 ? [] : [granted], isCommit: isCommit, leaseUntil: lease()),
            at: position)
        state.documents[key] = queue
        state.owners[owner]!.documents.insert(key)
        if length > 0 { state.owners[owner]!.awaitedDocuments.insert(key) }
        return (length == 0, .document(key))
    }

    private func enqueue(
        _ owner: Owner, _ matcher: QueryMatcher, _ granted: @escaping Callback, _ state: inout State
    ) -> (isGranted: Bool?, taken: Taken?) {
        if state.queries.count >= Limits.lockQueueLengthMax { return (nil, nil) }
        let (id, isGranted) = state.queries.append(owner, QueryFootprint(matcher), leaseUntil: lease(), granted)
        if let id { state.owners[owner]!.queries.append(id) }
        return (isGranted, id.map { .query($0) })
    }

    /// Calls `released` when `holder` has released its locks: now when it has none.
    /// - Parameter since: when `owner` began to wait. A holder that has got its lock since then, because another owner
    ///   was overtaken, is overtaken as well. Otherwise several readers that alternate could keep a writer out.
    func whenReleased(
        _ holder: Owner, waiting owner: Owner, since: UInt64 = .max, _ released: @escaping Callback
    ) {
        var calls: [Callback] = []
        state.withLock { state in
            if let tookOverAt = state.owners[holder]?.tookOverAt, tookOverAt > since {
                overtake(holder, &state, &calls)
            }
            guard state.owners[holder]?.holdsNothing == false else {
                calls.append(released)
                return
            }
            state.owners[holder]!.onRelease.append((owner, released))
            if state.owners[owner] != nil {
                state.owners[owner]!.awaitedRelease = holder
                state.waiting.insert(owner)
            }
            overtakeExpired(before: owner, &state, &calls)
            breakCycles(from: owner, &state, &calls)
        }
        for call in calls { call() }
    }

    /// Releases all locks of an owner and forgets it.
    func remove(_ owner: Owner) {
        var calls: [Callback] = []
        state.withLock { state in
            release(owner, &state, &calls)
            state.owners[owner] = nil
            state.waiting.remove(owner)
        }
        for call in calls { call() }
    }

    /// Releases everything, and resumes all that wait: the database is closed.
    func removeAll() {
        var calls: [Callback] = []
        state.withLock { state in
            for requests in state.documents.values { calls += requests.flatMap(\.grants) }
            calls += state.queries.removeAll()
            for ownerState in state.owners.values {
                calls += ownerState.onRelease.map(\.call)
            }
            state = State()
        }
        for call in calls { call() }
    }

    /// Releases some locks of an owner that keeps the others.
    func release(_ taken: [Taken], of owner: Owner) {
        var calls: [Callback] = []
        state.withLock { state in
            for lock in taken {
                switch lock {
                case .document(let key):
                    guard state.owners[owner]?.documents.remove(key) != nil else { continue }
                    state.owners[owner]!.awaitedDocuments.remove(key)
                    removeFromQueue(owner, key, &state, &calls)
                case .query(let id):
                    let index = state.owners[owner]?.queries.firstIndex { $0.number == id.number }
                    guard let index else { continue }
                    state.owners[owner]!.queries.remove(at: index)
                    removeQueries([id], &state, &calls)
                }
            }
            if let ownerState = state.owners[owner], ownerState.holdsNothing {
                state.owners[owner]!.onRelease = []
                notifyOfRelease(ownerState, owner, &state, &calls)
            }
        }
        for call in calls { call() }
    }

    private func removeQueries(
        _ ids: [QueryLocks.LockID], isOvertaken: Bool = false, _ state: inout State, _ calls: inout [Callback]
    ) {
        let (waiting, granted) = state.queries.remove(ids, leaseUntil: lease())
        calls += waiting
        for (owner, grants) in granted {
            if isOvertaken { state.owners[owner]?.tookOverAt = clock.monotonicNanoseconds() }
            calls += grants
        }
    }

    private func notifyOfRelease(
        _ ownerState: OwnerState, _ owner: Owner, _ state: inout State, _ calls: inout [Callback]
    ) {
        for (waiting, call) in ownerState.onRelease {
            if state.owners[waiting]?.awaitedRelease == owner { state.owners[waiting]!.awaitedRelease = nil }
            calls.append(call)
        }
    }

    /// Lets owners overtake their predecessors whose leases are over. Must be called a few times a second.
    func tick() {
        var calls: [Callback] = []
        state.withLock { state in
            for owner in state.waiting { overtakeExpired(before: owner, &state, &calls) }
        }
        for call in calls { call() }
    }

    // MARK: Releasing locks

    /// Takes the locks and the queue entries from an owner; its own waits are granted, so that it can continue.
    private func release(_ owner: Owner, _ state: inout State, _ calls: inout [Callback]) {
        guard let ownerState = state.owners[owner] else { return }
        state.owners[owner]!.documents = []
        state.owners[owner]!.awaitedDocuments = []
        state.owners[owner]!.queries = []
        state.owners[owner]!.onRelease = []
        state.owners[owner]!.awaitedRelease = nil
        for key in ownerState.documents { removeFromQueue(owner, key, &state, &calls) }
        removeQueries(ownerState.queries, isOvertaken: ownerState.isOvertaken, &state, &calls)
        notifyOfRelease(ownerState, owner, &state, &calls)
    }

    private func overtake(_ owner: Owner, _ state: inout State, _ calls: inout [Callback]) {
        state.owners[owner]?.isOvertaken = true
        release(owner, &state, &calls)
    }

    private func removeFromQueue(_ owner: Owner, _ key: [UInt8], _ state: inout State, _ calls: inout [Callback]) {
        guard var queue = state.documents.removeValue(forKey: key) else { return }
        if let position = queue.firstIndex(where: { $0.owner == owner }) {
            calls += queue[position].grants
            queue.remove(at: position)
        }
        guard !queue.isEmpty else { return }
        if !queue[0].grants.isEmpty {
            calls += queue[0].grants
            queue[0].grants = []
            queue[0].leaseUntil = lease()
            state.owners[queue[0].owner]?.awaitedDocuments.remove(key)
        }
        state.documents[key] = queue
    }

    /// Releases the owners for which an owner waits and whose lease is over.
    private func overtakeExpired(before owner: Owner, _ state: inout State, _ calls: inout [Callback]) {
        guard let ownerState = state.owners[owner] else {
            state.waiting.remove(owner)
            return
        }
        var holders = ownerState.awaitedDocuments.compactMap { key in
            state.documents[key]?.first.map { (owner: $0.owner, leaseUntil: $0.leaseUntil) }
        }
        holders += state.queries.holders(before: ownerState.queries)
        if let holder = ownerState.awaitedRelease {
            // Another owner waits for one of its queries; it is not known for which.
            let queries = state.owners[holder]?.queries ?? []
            holders.append((holder, state.queries.earliestLease(of: queries) ?? .max))
        }
        if holders.isEmpty { state.waiting.remove(owner) }
        let now = clock.monotonicNanoseconds()
        for holder in holders where holder.leaseUntil <= now { overtake(holder.owner, &state, &calls) }
    }

    // MARK: Deadlocks

    /// Dooms the youngest of each cycle of waiting owners that `start` has closed.
    private func breakCycles(from start: Owner, _ state: inout State, _ calls: inout [Callback]) {
        while isAwaited(start, state), let cycle = cycle(through: start, in: state) {
            let victim = cycle.max { (state.owners[$0]?.age ?? 0, $0) < (state.owners[$1]?.age ?? 0, $1) }!
            state.owners[victim]!.isDoomed = true
            release(victim, &state, &calls)
        }
    }

    /// Whether any owner may wait for an owner. Usually none does, and no search for a cycle is needed.
    private func isAwaited(_ owner: Owner, _ state: State) -> Bool {
        guard let ownerState = state.owners[owner] else { return false }
        return !ownerState.onRelease.isEmpty || state.queries.areAwaited(ownerState.queries)
            || ownerState.documents.contains { key in state.documents[key]?.last?.owner != owner }
    }

    /// The owners for which an owner waits directly. In a document's queue that is the one just before; those farther
    /// ahead are found through it.
    private func awaited(by owner: Owner, in state: State) -> [Owner] {
        guard let ownerState = state.owners[owner] else { return [] }
        var others = state.queries.owners(before: ownerState.queries)
        for key in ownerState.awaitedDocuments {
            guard let queue = state.documents[key], let position = queue.firstIndex(where: { $0.owner == owner }),
                position > 0
            else { continue }
            others.append(queue[position - 1].owner)
        }
        if let holder = ownerState.awaitedRelease { others.append(holder) }
        return others
    }

    private func cycle(through start: Owner, in state: State) -> [Owner]? {
        var cameFrom: [Owner: Owner] = [:]
        var open = [start]
        while let owner = open.popLast() {
            for other in awaited(by: owner, in: state) {
                if other == start {
                    var cycle = [owner]
                    while cycle[cycle.count - 1] != start { cycle.append(cameFrom[cycle[cycle.count - 1]]!) }
                    return cycle
                }
                if cameFrom[other] == nil {
                    cameFrom[other] = owner
                    open.append(other)
                }
            }
        }
        return nil
    }
}
