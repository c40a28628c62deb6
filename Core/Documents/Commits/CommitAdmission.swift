import HearthConcurrency
import HearthEngine
import HearthModel
import Synchronization

/// How much each client may have waiting for the writer.
///
/// The shares are those of `WriteShares`. Besides, when the commits of an account are more than a second of work while others
/// wait, those of its connections fail that hold more than their part of it.
final class CommitAdmission: Sendable {
    private struct State {
        var shares = WriteShares(
            countMax: Limits.commitQueueMax, bytesMax: Limits.commitQueueBytesMax,
            nanosecondsPerUnit: CommitCost.nanosecondsPerUnit)
        var nextSequence: UInt64 = 0
        /// Connections with a commit that returns to the preparer.
        var held: [Sender: Held] = [:]
    }

    private struct Held {
        /// The commit that returns.
        let first: UInt64
        /// The commits that wait for it.
        var requests: [QueuedCommit] = []
    }

    private struct Sender: Hashable {
        let account: UInt64
        let connection: UInt64

        init(_ requester: Requester) {
            account = requester.account
            connection = requester.connection
        }
    }

    private let state = Mutex(State())

    var queued: (count: Int, bytes: Int) { state.withLock { ($0.shares.total.count, $0.shares.total.bytes) } }

    /// For tests: whether nothing is counted.
    var isIdle: Bool {
        state.withLock { state in
            let loads = [state.shares.total, state.shares.clients]
            return state.shares.accounts.isEmpty && loads.allSatisfy { $0.count == 0 && $0.cost == 0 && $0.slow == 0 }
        }
    }

    static let isFull = Status.resourceExhausted("Too many commits are waiting for the disk.")
    static let isOverShare = Status.resourceExhausted(
        "Too many commits of this client are waiting while others wait, too.")

    /// Counts a commit until `leave`, and decides its path. After a slow commit of the same connection everything takes
    /// the slow path, so that the commits of a connection keep their order.
    /// - Returns: whether it may be queued now; otherwise it is held for `nextHeld`.
    /// - Throws: RESOURCE_EXHAUSTED, and counts nothing.
    func enter(_ request: QueuedCommit) throws(Status) -> Bool {
        let (refusal, isHeld) = state.withLock { state -> (Status?, Bool) in
            if let refusal = Self.refusal(of: request, state) { return (refusal, false) }
            state.nextSequence += 1
            request.sequence = state.nextSequence
            let requester = request.requester
            request.isSlow = request.isLarge || state.shares.load(of: requester).slow > 0
            state.shares.add(request.load, for: requester)
            let isHeld = !state.held.isEmpty && state.held[Sender(requester)]?.requests.append(request) != nil
            return (nil, isHeld)
        }
        if let refusal { throw refusal }
        return !isHeld
    }

    private static func refusal(of request: QueuedCommit, _ state: State) -> Status? {
        let requester = request.requester
        switch state.shares.refusal(of: requester, bytes: request.heldBytes) {
        case .full: return isFull
        case .overShare: return isOverShare
        case nil: break
        }
        if requester.isAdministrator { return nil }
        let own = state.shares.load(of: requester)
        // A connection with nothing in the queue takes nothing away from the account's other connections, and one that has
        // the queue for itself from nobody.
        guard own.count > 0, own.count < state.shares.total.count,
            let account = state.shares.accounts[requester.account]
        else { return nil }
        let nanosecondsMax = Double(Limits.commitQueuedMillisecondsMax) * 1e6
        func nanoseconds(_ load: WriteLoad) -> Double { Double(load.cost + request.cost) * account.nanosecondsPerUnit }
        if nanoseconds(account.load) > nanosecondsMax,
            nanoseconds(own) > nanosecondsMax / Double(account.connections.count)
        {
            return isOverShare
        }
        return nil
    }

    // MARK: Return to the preparer

    /// Connections whose commits are held back.
    private let heldCount = Atomic<Int>(0)

    /// Makes everything of its connection wait for a commit that returns to the preparer, both queued and later
    /// commits, so that nothing overtakes it. Must be called by the writer.
    func holdOthers(behind request: QueuedCommit) {
        state.withLock { state in
            let sender = Sender(request.requester)
            if state.held[sender] != nil { return }
            state.held[sender] = Held(first: request.sequence)
            heldCount.store(state.held.count, ordering: .releasing)
        }
    }

    /// Whether commits are held back. Only the writer begins with that.
    var holdsAny: Bool { heldCount.load(ordering: .acquiring) > 0 }

    /// Whether a commit that the writer takes must wait for another one of its connection; then it is held here, and no
    /// longer the writer's.
    func keeps(_ request: QueuedCommit) -> Bool {
        state.withLock { state in
            let sender = Sender(request.requester)
            guard let first = state.held[sender]?.first, first != request.sequence else { return false }
            state.held[sender]?.requests.append(request)
            return true
        }
    }

    /// The commits that waited for a commit, in order of arrival. Must be called until none is left: commits that
    /// arrive in the meantime are still held back.
    func nextHeld(behind request: QueuedCommit) -> [QueuedCommit] {
        state.withLock { state in
            let sender = Sender(request.requester)
            guard let held = state.held[sender], held.first == request.sequence else { return [] }
            if held.requests.isEmpty {
                state.held[sender] = nil
                heldCount.store(state.held.count, ordering: .releasing)
            } else {
                state.held[sender]?.requests = []
            }
            return held.requests.sorted { $0.sequence < $1.sequence }
        }
    }

    /// A commit rests on large documents: it and the later commits of its connection take the preparer's path.
    func grow(_ request: QueuedCommit) {
        let load = request.load
        request.restsOnLargeDocuments = true
        request.isSlow = true
        request.cost = max(request.cost, CommitCost.largeUnitsMin)
        state.withLock { $0.shares.replace(load, by: request.load, for: request.requester) }
    }

    func leave(_ request: QueuedCommit) {
        state.withLock { $0.shares.remove(request.load, for: request.requester) }
    }

    /// Notes the measured cost of a commit to the writer.
    func measured(_ request: QueuedCommit, nanoseconds: UInt64) {
        let rate = Double(nanoseconds) / Double(max(1, request.cost))
        // The store's fixed cost of a small commit does not measure units.
        if request.cost < Self.measuredUnitsMin, nanoseconds < Self.measuredNanosecondsMin { return }
        state.withLock { state in
            state.shares.measured(
                rate, for: request.requester, weight: Self.weight, bounds: 500...10 * CommitCost.nanosecondsPerUnit)
        }
    }

    private static let measuredUnitsMin = 64
    private static let measuredNanosecondsMin: UInt64 = 1_000_000
    /// Weight of the newest measurement in the average.
    private static let weight = 0.25
}

extension QueuedCommit {
    /// What the request is counted as while it waits.
    fileprivate var load: WriteLoad { WriteLoad(count: 1, bytes: heldBytes, cost: cost, slow: isSlow ? 1 : 0) }
}
