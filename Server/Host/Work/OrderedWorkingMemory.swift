import HearthConcurrency
import HearthModel
import Synchronization

/// Memory that is given in order, round-robin between accounts and connections. A request that needs more than the total
/// gets all of it, exclusively.
final class OrderedWorkingMemory: WorkingPart {
    private struct State: Sendable {
        var used = 0
        /// The next request, while there is not enough memory for it: no other one overtakes it, otherwise large ones
        /// would wait forever.
        var first: WorkingClaim?
        var waiting = FairQueue<WorkingClaim>()
    }

    let bytesMax: Int
    private let state = Mutex(State())

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    var usedBytes: Int { state.withLock { $0.used } }
    var waitingCount: Int { state.withLock { $0.waiting.count + ($0.first == nil ? 0 : 1) } }

    func take(_ bytes: Int, for requester: Requester, _ granted: @escaping @Sendable (WorkingShare) -> Void) {
        let claim = WorkingClaim(bytes: min(max(0, bytes), bytesMax), requester: requester, granted: granted)
        state.withLock { $0.waiting.append(claim, for: requester, cost: claim.cost) }
        grant()
    }

    /// - Returns: nil when there is not enough, or other requests wait for it.
    func takeNow(_ bytes: Int, for requester: Requester) -> WorkingShare? {
        let bytes = min(max(0, bytes), bytesMax)
        let isGranted = state.withLock { state in
            guard state.first == nil, state.waiting.isEmpty, state.used + bytes <= bytesMax else { return false }
            state.used += bytes
            return true
        }
        return isGranted ? WorkingShare(self, bytes, requester) : nil
    }

    func release(_ bytes: Int, of requester: Requester) {
        state.withLock { $0.used -= bytes }
        grant()
    }

    private func grant() {
        while let claim = next() { claim.granted(WorkingShare(self, claim.bytes, claim.requester)) }
    }

    private func next() -> WorkingClaim? {
        state.withLock { state in
            guard let claim = state.first ?? state.waiting.popFirst() else { return nil }
            guard state.used + claim.bytes <= bytesMax else {
                state.first = claim
                return nil
            }
            state.first = nil
            state.used += claim.bytes
            return claim
        }
    }
}
