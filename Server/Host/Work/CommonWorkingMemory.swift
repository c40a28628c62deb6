import HearthConcurrency
import HearthModel
import Synchronization

/// Memory of which everybody gets the less, the less is free, as in `MemoryBudget`: an account may hold at most F × F / B
/// bytes, where B is all of it and F the part that is free afterwards. Whoever would hold more waits until others, or
/// its own requests, release some. One account holds at most 0.38 of all, n of them leave about an n-th, and whoever
/// holds little is not kept waiting by those who wait: they wait for what they are not entitled to.
///
/// A connection that holds little may have more although its account holds much, because an account may be the address
/// of a network. Then the account may hold four times as much: at most 0.61 of all.
final class CommonWorkingMemory: WorkingPart {
    private struct Connection: Hashable {
        let account: UInt64
        let number: UInt64
    }

    private struct State: Sendable {
        var used = 0
        var byAccount: [UInt64: Int] = [:]
        var byConnection: [Connection: Int] = [:]
        var waiting = FairQueue<WorkingClaim>()
        /// How many of those who wait are still to be asked whether there is enough for them now.
        var tries = 0
        /// Whether a thread is granting memory: one at a time, in a loop, because a share may end while it is granted.
        var isGranting = false
    }

    let bytesMax: Int
    /// The largest claim: there must be memory for it when nothing else is in use.
    let claimBytesMax: Int
    private let smallBytesMax: Int
    private let state = Mutex(State())

    init(bytesMax: Int, smallBytesMax: Int = Limits.workingSmallBytesMax) {
        self.bytesMax = bytesMax
        self.smallBytesMax = smallBytesMax
        claimBytesMax = bytesMax / Limits.workingClaimDivisor
    }

    var usedBytes: Int { state.withLock { $0.used } }
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    func take(_ bytes: Int, for requester: Requester, _ granted: @escaping @Sendable (WorkingShare) -> Void) {
        let claim = WorkingClaim(bytes: min(max(0, bytes), claimBytesMax), requester: requester, granted: granted)
        let isGranted = state.withLock { state in
            if hold(claim.bytes, of: requester, &state) { return true }
            state.waiting.append(claim, for: requester, cost: claim.cost)
            return false
        }
        if isGranted { granted(WorkingShare(self, claim.bytes, requester)) }
    }

    /// - Returns: nil when the requester may not hold as much now.
    func takeNow(_ bytes: Int, for requester: Requester) -> WorkingShare? {
        let bytes = min(max(0, bytes), claimBytesMax)
        return state.withLock { hold(bytes, of: requester, &$0) } ? WorkingShare(self, bytes, requester) : nil
    }

    func release(_ bytes: Int, of requester: Requester) {
        let mustGrant = state.withLock { state in
            change(by: -bytes, requester, &state)
            state.tries = min(state.waiting.count, Limits.workingTriesMax)
            defer { state.isGranting = true }
            return !state.isGranting
        }
        guard mustGrant else { return }
        while let claim = state.withLock({ next(&$0) }) {
            claim.granted(WorkingShare(self, claim.bytes, claim.requester))
        }
    }

    /// A release tries some of those who wait, the next release the next ones. When nothing is in use there is memory
    /// for each claim, so nobody waits without an end.
    private func next(_ state: inout State) -> WorkingClaim? {
        while state.tries > 0, let claim = state.waiting.popFirst() {
            if hold(claim.bytes, of: claim.requester, &state) { return claim }
            state.tries -= 1
            state.waiting.append(claim, for: claim.requester, cost: claim.cost)
        }
        state.isGranting = false
        return nil
    }

    private func hold(_ bytes: Int, of requester: Requester, _ state: inout State) -> Bool {
        let free = bytesMax - state.used - bytes
        if free < 0 { return false }
        let key = Connection(account: requester.account, number: requester.connection)
        let account = state.byAccount[requester.account, default: 0] + bytes
        let connection = state.byConnection[key, default: 0] + bytes
        let most = Double(free) * Double(free) / Double(bytesMax)
        let isEntitled =
            Double(account) <= most
            || connection <= smallBytesMax && Double(connection) <= most && Double(account) <= 4 * most
        if isEntitled { change(by: bytes, requester, &state) }
        return isEntitled
    }

    private func change(by bytes: Int, _ requester: Requester, _ state: inout State) {
        let key = Connection(account: requester.account, number: requester.connection)
        let account = state.byAccount[requester.account, default: 0] + bytes
        let connection = state.byConnection[key, default: 0] + bytes
        state.used += bytes
        state.byAccount[requester.account] = account == 0 ? nil : account
        state.byConnection[key] = connection == 0 ? nil : connection
    }
}
