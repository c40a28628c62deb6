import HearthConcurrency
import HearthModel
import Synchronization

/// Memory for decoded requests. A request waits for it, round-robin between accounts and connections, instead of
/// failing. A request that needs more than the total gets all of it, exclusively.
package final class WorkingMemory: Sendable {
    private struct Claim: Sendable {
        let bytes: Int
        let granted: @Sendable (WorkingShare) -> Void
    }

    private struct State: Sendable {
        var used = 0
        /// The next request, while there is not enough memory for it: no other one overtakes it, otherwise large ones
        /// would wait forever.
        var first: Claim?
        var waiting = FairQueue<Claim>()
    }

    let bytesMax: Int
    private let state = Mutex(State())

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    var usedBytes: Int { state.withLock { $0.used } }
    var waitingCount: Int { state.withLock { $0.waiting.count + ($0.first == nil ? 0 : 1) } }

    /// - Parameter granted: called when the memory is available: immediately on this thread, or later on the thread
    ///   that releases memory. It must not block. The memory counts as used until the share is freed.
    package func take(_ bytes: Int, for requester: Requester, _ granted: @escaping @Sendable (WorkingShare) -> Void) {
        let claim = Claim(bytes: min(max(0, bytes), bytesMax), granted: granted)
        state.withLock { $0.waiting.append(claim, for: requester, cost: max(1, claim.bytes >> 10)) }
        grant()
    }

    /// Takes memory that is available immediately.
    /// - Returns: nil when there is not enough, or other requests wait for it.
    package func takeNow(_ bytes: Int) -> WorkingShare? {
        let bytes = min(max(0, bytes), bytesMax)
        let isGranted = state.withLock { state in
            guard state.first == nil, state.waiting.isEmpty, state.used + bytes <= bytesMax else { return false }
            state.used += bytes
            return true
        }
        return isGranted ? WorkingShare(self, bytes) : nil
    }

    func release(_ bytes: Int) {
        state.withLock { $0.used -= bytes }
        grant()
    }

    private func grant() {
        while let claim = next() { claim.granted(WorkingShare(self, claim.bytes)) }
    }

    private func next() -> Claim? {
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
