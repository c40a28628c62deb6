import HearthModel
import Synchronization

/// First-come queues with leases on what read-write transactions have read.
///
/// Correctness doesn't rest on these turns: every commit validates what its transaction read. They are for fairness:
/// clients that retry a failed commit only a few times, without a pause, must all get through. So a read in a read-write
/// transaction waits for its turn on the document or the query behind the transactions that read the same before it, and
/// a commit waits for the turns of others on what it changes. No turn outlasts its lease while somebody waits. Of a ring
/// of transactions that wait for each other the youngest is doomed: it loses its turns, and its commit fails.
///
/// Callbacks are called without any lock held, on the thread that made them possible.
final class LockTable: Sendable {
    /// A transaction, or a commit outside of transactions.
    typealias Owner = UInt64

    /// What a turn is taken on.
    enum Resource: Sendable {
        case document([UInt8])
        case query(QueryMatcher)
    }

    private struct Request {
        var owner: Owner
        var grant: (@Sendable () -> Void)?
    }

    private struct QueryLock {
        var owner: Owner
        var matcher: QueryMatcher
        var grant: (@Sendable () -> Void)?
    }

    private struct OwnerState {
        /// Transactions that began earlier have the right of way; a retry keeps the age of its first attempt.
        var age: UInt64
        var leaseUntil: UInt64
        var documents: Set<[UInt8]> = []
        var isDoomed = false
        /// Called when the owner has given up its turns.
        var onRelease: [@Sendable () -> Void] = []
        var waitsForRelease: Owner?
    }

    private struct State {
        /// Queues by document; the first has the turn.
        var documents: [[UInt8]: [Request]] = [:]
        /// In the order of arrival; one without `grant` has its turn.
        var queries: [QueryLock] = []
        var owners: [Owner: OwnerState] = [:]
    }

    private let state = Mutex(State())
    private let clock: any Clock
    private let leaseNanoseconds: UInt64

    init(clock: any Clock, leaseSeconds: Double = Limits.leaseSeconds) {
        self.clock = clock
        leaseNanoseconds = UInt64(leaseSeconds * 1e9)
    }

    func add(_ owner: Owner, age: UInt64) {
        state.withLock { $0.owners[owner] = OwnerState(age: age, leaseUntil: lease()) }
    }

    private func lease() -> UInt64 { clock.monotonicNanoseconds() + leaseNanoseconds }

    var isIdle: Bool { state.withLock { $0.owners.isEmpty } }

    func isDoomed(_ owner: Owner) -> Bool {
        state.withLock { $0.owners[owner]?.isDoomed ?? false }
    }

    /// Who has the turn on a changed document, or on a query whose results a change touches, other than `owner`.
    func holder(of change: Change, otherThan owner: Owner?) throws(Status) -> (owner: Owner, isDocument: Bool)? {
        let (documentHolder, queries) = state.withLock { state in
            (
                state.documents[change.key]?.first?.owner,
                state.queries.filter { $0.grant == nil && $0.owner != owner }.map { ($0.owner, $0.matcher) }
            )
        }
        if let documentHolder, documentHolder != owner { return (documentHolder, true) }
        for (holder, matcher) in queries where matcher.isInScope(change.key) {
            if let before = change.before, try matcher.matches(key: change.key, fields: before.fields) {
                return (holder, false)
            }
            if let after = change.after, try matcher.matches(key: change.key, fields: after.fields) {
                return (holder, false)
            }
        }
        return nil
    }

    // MARK: Taking turns

    /// Takes a turn, or queues for it. `granted` is called once: now, or when the turn comes.
    /// - Returns: false when too many wait already; `granted` is not called then.
    func acquire(_ resource: Resource, for owner: Owner, granted: @escaping @Sendable () -> Void) -> Bool {
        var calls: [@Sendable () -> Void] = []
        let accepted = state.withLock { state -> Bool in
            guard state.owners[owner] != nil, !state.owners[owner]!.isDoomed else {
                calls.append(granted)
                return true
            }
            let hasTurn =
                switch resource {
                case .document(let key): enqueue(owner, key, granted, &state)
                case .query(let matcher): enqueue(owner, matcher, granted, &state)
                }
            guard let hasTurn else { return false }
            if hasTurn {
                state.owners[owner]!.leaseUntil = lease()
                calls.append(granted)
            } else {
                overtakeExpired(&state, &calls)
                breakCycle(from: owner, &state, &calls)
            }
            return true
        }
        for call in calls { call() }
        return accepted
    }

    /// Nil when the queue is full.
    private func enqueue(
        _ owner: Owner, _ key: [UInt8], _ granted: @escaping @Sendable () -> Void, _ state: inout State
    ) -> Bool? {
        var queue = state.documents[key] ?? []
        if queue.contains(where: { $0.owner == owner }) { return true }
        if queue.count >= Limits.lockQueueLengthMax { return nil }
        let hasTurn = queue.isEmpty
        queue.append(Request(owner: owner, grant: hasTurn ? nil : granted))
        state.documents[key] = queue
        state.owners[owner]!.documents.insert(key)
        return hasTurn
    }

    private func enqueue(
        _ owner: Owner, _ matcher: QueryMatcher, _ granted: @escaping @Sendable () -> Void, _ state: inout State
    ) -> Bool? {
        if state.queries.count >= Limits.lockQueueLengthMax { return nil }
        let mustWait = state.queries.contains { $0.owner != owner && QueryOverlap.mayOverlap($0.matcher, matcher) }
        state.queries.append(QueryLock(owner: owner, matcher: matcher, grant: mustWait ? granted : nil))
        return !mustWait
    }

    /// Calls `released` when `holder` has given up its turns: now when it has none.
    func whenReleased(_ holder: Owner, waiting owner: Owner, _ released: @escaping @Sendable () -> Void) {
        var calls: [@Sendable () -> Void] = []
        state.withLock { state in
            overtakeExpired(&state, &calls)
            guard state.owners[holder] != nil else {
                calls.append(released)
                return
            }
            state.owners[holder]!.onRelease.append(released)
            state.owners[owner]?.waitsForRelease = holder
            breakCycle(from: owner, &state, &calls)
        }
        for call in calls { call() }
    }

    /// Gives up all turns of an owner and forgets it.
    func remove(_ owner: Owner) {
        var calls: [@Sendable () -> Void] = []
        state.withLock { state in
            release(owner, &state, &calls)
            state.owners[owner] = nil
        }
        for call in calls { call() }
    }

    /// Lets those overtake whose predecessors' leases are over. To be called some times a second.
    func tick() {
        var calls: [@Sendable () -> Void] = []
        state.withLock { overtakeExpired(&$0, &calls) }
        for call in calls { call() }
    }

    // MARK: Giving up turns

    /// Takes the turns and the places in queues from an owner; its own waits are granted, so that it can go on.
    private func release(_ owner: Owner, _ state: inout State, _ calls: inout [@Sendable () -> Void]) {
        guard let ownerState = state.owners[owner] else { return }
        for key in ownerState.documents {
            guard var queue = state.documents[key], let place = queue.firstIndex(where: { $0.owner == owner }) else {
                continue
            }
            if let grant = queue[place].grant { calls.append(grant) }
            queue.remove(at: place)
            if place == 0, !queue.isEmpty { grantFirst(&queue, &state, &calls) }
            state.documents[key] = queue.isEmpty ? nil : queue
        }
        for lock in state.queries where lock.owner == owner {
            if let grant = lock.grant { calls.append(grant) }
        }
        state.queries.removeAll { $0.owner == owner }
        grantQueries(&state, &calls)
        calls += ownerState.onRelease
        state.owners[owner]!.documents = []
        state.owners[owner]!.onRelease = []
        state.owners[owner]!.waitsForRelease = nil
        for other in state.owners.keys where state.owners[other]!.waitsForRelease == owner {
            state.owners[other]!.waitsForRelease = nil
        }
    }

    private func grantFirst(_ queue: inout [Request], _ state: inout State, _ calls: inout [@Sendable () -> Void]) {
        if let grant = queue[0].grant { calls.append(grant) }
        queue[0].grant = nil
        state.owners[queue[0].owner]?.leaseUntil = lease()
    }

    private func grantQueries(_ state: inout State, _ calls: inout [@Sendable () -> Void]) {
        for index in state.queries.indices {
            guard let grant = state.queries[index].grant else { continue }
            let lock = state.queries[index]
            let mustWait = state.queries[..<index].contains {
                $0.owner != lock.owner && QueryOverlap.mayOverlap($0.matcher, lock.matcher)
            }
            if mustWait { continue }
            state.queries[index].grant = nil
            state.owners[lock.owner]?.leaseUntil = lease()
            calls.append(grant)
        }
    }

    /// Releases owners whose lease is over and for whom somebody waits.
    private func overtakeExpired(_ state: inout State, _ calls: inout [@Sendable () -> Void]) {
        let now = clock.monotonicNanoseconds()
        for (owner, ownerState) in state.owners where ownerState.leaseUntil <= now {
            let isWaitedFor =
                !ownerState.onRelease.isEmpty
                || ownerState.documents.contains { key in
                    let queue = state.documents[key] ?? []
                    return queue.count > 1 && queue[0].owner == owner
                }
                || (state.queries.contains { $0.owner == owner && $0.grant == nil }
                    && state.queries.contains { $0.owner != owner && $0.grant != nil })
            if isWaitedFor { release(owner, &state, &calls) }
        }
    }

    // MARK: Deadlocks

    private func waits(of owner: Owner, in state: State) -> Set<Owner> {
        var others: Set<Owner> = []
        guard let ownerState = state.owners[owner] else { return [] }
        for key in ownerState.documents {
            guard let queue = state.documents[key], let place = queue.firstIndex(where: { $0.owner == owner }) else {
                continue
            }
            for request in queue[..<place] { others.insert(request.owner) }
        }
        for (index, lock) in state.queries.enumerated() where lock.owner == owner && lock.grant != nil {
            for other in state.queries[..<index] where QueryOverlap.mayOverlap(other.matcher, lock.matcher) {
                others.insert(other.owner)
            }
        }
        if let holder = ownerState.waitsForRelease { others.insert(holder) }
        others.remove(owner)
        return others
    }

    /// Dooms the youngest of a ring of waiting owners that `start` has closed.
    private func breakCycle(from start: Owner, _ state: inout State, _ calls: inout [@Sendable () -> Void]) {
        while let cycle = cycle(through: start, in: state) {
            let victim = cycle.max { (state.owners[$0]?.age ?? 0, $0) < (state.owners[$1]?.age ?? 0, $1) }!
            state.owners[victim]!.isDoomed = true
            release(victim, &state, &calls)
        }
    }

    private func cycle(through start: Owner, in state: State) -> [Owner]? {
        var path: [Owner] = []
        var visited: Set<Owner> = []
        func search(_ owner: Owner) -> Bool {
            path.append(owner)
            for other in waits(of: owner, in: state) {
                if other == start { return true }
                if visited.insert(other).inserted, search(other) { return true }
            }
            path.removeLast()
            return false
        }
        return search(start) ? path : nil
    }
}

/// Whether two queries can have a document in common.
enum QueryOverlap {
    /// False only when it is certain: other collections, or filters on one field that exclude each other.
    static func mayOverlap(_ lhs: QueryMatcher, _ rhs: QueryMatcher) -> Bool {
        let left = lhs.query
        let right = rhs.query
        if case .collection = left.query.scope, case .collection = right.query.scope,
            left.namePrefix != right.namePrefix
        {
            return false
        }
        for conjunction in left.disjunction {
            for other in right.disjunction where !exclude(conjunction, other, left, right) { return true }
        }
        return false
    }

    private static func exclude(
        _ lhs: NormalizedQuery.Conjunction, _ rhs: NormalizedQuery.Conjunction, _ left: NormalizedQuery,
        _ right: NormalizedQuery
    ) -> Bool {
        // A conjunction that contradicts itself has no results to share.
        guard let leftConstraints = Constraints(lhs, query: left), let rightConstraints = Constraints(rhs, query: right)
        else { return true }
        return leftConstraints.fields.contains { path, ranges in
            ranges.intersection(rightConstraints.ranges(path)).isEmpty
        }
    }
}
