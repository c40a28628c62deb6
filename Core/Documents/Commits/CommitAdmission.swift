import HearthConcurrency
import HearthModel
import Synchronization

/// How much each client may have waiting for the writer.
///
/// Every queued commit is counted for its account and its connection. An account has a share of the queue. When the
/// share is used up, or when the account has more than a second of work queued while others wait, those of its
/// connections that hold more than their part fail with RESOURCE_EXHAUSTED.
final class CommitAdmission: Sendable {
    /// The queued commits.
    private struct Load {
        var count = 0
        var bytes = 0
        /// In units of `CommitCost`.
        var cost = 0
        /// Those that take the preparer's path.
        var slow = 0

        mutating func add(_ request: CommitRequest) {
            count += 1
            bytes += request.heldBytes
            cost += request.cost
            slow += request.isSlow ? 1 : 0
        }

        mutating func remove(_ request: CommitRequest) {
            count -= 1
            bytes -= request.heldBytes
            cost -= request.cost
            slow -= request.isSlow ? 1 : 0
        }
    }

    private struct Account {
        var load = Load()
        var connections: [UInt64: Load] = [:]
        /// The recent cost of a unit of this account's commits. The requests alone do not show the size of the stored
        /// documents.
        var nanosecondsPerUnit: Double
    }

    private struct State {
        var total = Load()
        /// The queued commits of clients that are not administrators.
        var clients = Load()
        var accounts: [UInt64: Account] = [:]
        var nanosecondsPerUnit = CommitCost.nanosecondsPerUnit
        var nextSequence: UInt64 = 0
        /// Connections with a commit that returns to the preparer.
        var held: [Sender: Held] = [:]
    }

    private struct Held {
        /// The commit that returns.
        let first: UInt64
        /// The commits that wait for it.
        var requests: [CommitRequest] = []
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

    var queued: (count: Int, bytes: Int) { state.withLock { ($0.total.count, $0.total.bytes) } }

    /// For tests: whether nothing is counted.
    var isIdle: Bool {
        state.withLock { state in
            let loads = [state.total, state.clients]
            return state.accounts.isEmpty && loads.allSatisfy { $0.count == 0 && $0.cost == 0 && $0.slow == 0 }
        }
    }

    static let isFull = Status.resourceExhausted("Too many commits are waiting for the disk.")
    static let isOverShare = Status.resourceExhausted(
        "Too many commits of this client are waiting while others wait, too.")

    /// Counts a commit until `leave`, and decides its path. After a slow commit of the same connection everything takes
    /// the slow path, so that the commits of a connection keep their order.
    /// - Returns: whether it may be queued now; otherwise it is held for `nextHeld`.
    /// - Throws: RESOURCE_EXHAUSTED, and counts nothing.
    func enter(_ request: inout CommitRequest) throws(Status) -> Bool {
        let (refusal, entered, isHeld) = state.withLock { [request] state -> (Status?, CommitRequest, Bool) in
            var request = request
            if let refusal = Self.refusal(of: request, state) { return (refusal, request, false) }
            state.nextSequence += 1
            request.sequence = state.nextSequence
            let requester = request.requester
            let isBehind = (state.accounts[requester.account]?.connections[requester.connection]?.slow ?? 0) > 0
            request.isSlow = request.isLarge || isBehind
            state.total.add(request)
            if !requester.isAdministrator { state.clients.add(request) }
            let rate = state.nanosecondsPerUnit
            state.accounts[requester.account, default: Account(nanosecondsPerUnit: rate)].load.add(request)
            state.accounts[requester.account]!.connections[requester.connection, default: Load()].add(request)
            let isHeld = !state.held.isEmpty && state.held[Sender(requester)]?.requests.append(request) != nil
            return (nil, request, isHeld)
        }
        if let refusal { throw refusal }
        request = entered
        return !isHeld
    }

    private static func refusal(of request: CommitRequest, _ state: State) -> Status? {
        func isFull(_ load: Load, share: Double = 1) -> Bool {
            Double(load.count) >= Double(Limits.commitQueueMax) * share
                || Double(load.bytes + request.heldBytes) > Double(Limits.commitQueueBytesMax) * share
        }
        if isFull(state.total) { return Self.isFull }
        let requester = request.requester
        if requester.isAdministrator { return nil }
        if isFull(state.clients, share: clientsShare) { return Self.isFull }
        guard let account = state.accounts[requester.account] else { return nil }
        let own = account.connections[requester.connection] ?? Load()
        // A connection with nothing queued takes nothing from the account's other connections.
        if own.count == 0 { return nil }
        let connections = Double(account.connections.count)
        if isFull(account.load, share: accountShare), isFull(own, share: accountShare / connections) {
            return isOverShare
        }
        if state.total.count == own.count { return nil }
        let nanosecondsMax = Double(Limits.commitQueuedMillisecondsMax) * 1e6
        func nanoseconds(_ load: Load) -> Double { Double(load.cost + request.cost) * account.nanosecondsPerUnit }
        if nanoseconds(account.load) > nanosecondsMax, nanoseconds(own) > nanosecondsMax / connections {
            return isOverShare
        }
        return nil
    }

    private static let clientsShare = 0.75
    private static let accountShare = 0.5

    // MARK: Return to the preparer

    /// Connections whose commits are held back.
    private let heldCount = Atomic<Int>(0)

    /// Makes everything of its connection wait for a commit that returns to the preparer, both queued and later
    /// commits, so that nothing overtakes it. Must be called by the writer.
    func holdOthers(behind request: CommitRequest) {
        state.withLock { state in
            let sender = Sender(request.requester)
            if state.held[sender] != nil { return }
            state.held[sender] = Held(first: request.sequence)
            heldCount.store(state.held.count, ordering: .releasing)
        }
    }

    /// Whether a commit that the writer takes must wait for another one of its connection; then it is held here.
    func keeps(_ request: CommitRequest) -> Bool {
        // Only the writer raises it above zero.
        if heldCount.load(ordering: .acquiring) == 0 { return false }
        return state.withLock { state in
            let sender = Sender(request.requester)
            guard let first = state.held[sender]?.first, first != request.sequence else { return false }
            state.held[sender]?.requests.append(request)
            return true
        }
    }

    /// The commits that waited for a commit, in order of arrival. Must be called until none is left: commits that
    /// arrive in the meantime are still held back.
    func nextHeld(behind request: CommitRequest) -> [CommitRequest] {
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
    func grown(_ request: CommitRequest) -> CommitRequest {
        var grown = request
        grown.restsOnLargeDocuments = true
        grown.isSlow = true
        grown.cost = max(request.cost, CommitCost.largeUnitsMin)
        state.withLock { [grown] state in
            func replace(_ load: inout Load) {
                load.remove(request)
                load.add(grown)
            }
            let requester = request.requester
            replace(&state.total)
            if !requester.isAdministrator { replace(&state.clients) }
            guard var account = state.accounts.removeValue(forKey: requester.account) else { return }
            replace(&account.load)
            if var connection = account.connections[requester.connection] {
                replace(&connection)
                account.connections[requester.connection] = connection
            }
            state.accounts[requester.account] = account
        }
        return grown
    }

    func leave(_ request: CommitRequest) {
        state.withLock { state in
            let requester = request.requester
            state.total.remove(request)
            if !requester.isAdministrator { state.clients.remove(request) }
            guard var account = state.accounts.removeValue(forKey: requester.account) else { return }
            account.load.remove(request)
            account.connections[requester.connection]?.remove(request)
            if account.connections[requester.connection]?.count == 0 {
                account.connections[requester.connection] = nil
            }
            if account.load.count > 0 { state.accounts[requester.account] = account }
        }
    }

    /// Notes the measured cost of a commit to the writer.
    func measured(_ request: CommitRequest, nanoseconds: UInt64) {
        let rate = Double(nanoseconds) / Double(max(1, request.cost))
        // The store's fixed cost of a small commit does not measure units.
        if request.cost < Self.measuredUnitsMin, nanoseconds < Self.measuredNanosecondsMin { return }
        state.withLock { state in
            state.nanosecondsPerUnit += (rate - state.nanosecondsPerUnit) * Self.weight / 8
            state.nanosecondsPerUnit = min(max(state.nanosecondsPerUnit, 500), 10 * CommitCost.nanosecondsPerUnit)
            guard let known = state.accounts[request.requester.account]?.nanosecondsPerUnit else { return }
            state.accounts[request.requester.account]!.nanosecondsPerUnit = known + (rate - known) * Self.weight
        }
    }

    private static let measuredUnitsMin = 64
    private static let measuredNanosecondsMin: UInt64 = 1_000_000
    /// Weight of the newest measurement in the average.
    private static let weight = 0.25
}
