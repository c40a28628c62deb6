import HearthConcurrency
import HearthModel
import Synchronization

/// Memory for what requests become when they are decoded. Who wants some waits for it, in turn between accounts and
/// connections, instead of being refused; a request that wants more than there is gets all of it, alone.
package final class WorkingMemory: Sendable {
    private struct Wish: Sendable {
        let bytes: Int
        let granted: @Sendable (WorkingShare) -> Void
    }

    private struct State: Sendable {
        var used = 0
        /// Whose turn it is, when there isn't room for it yet: nobody overtakes, else large ones would wait for ever.
        var first: Wish?
        var waiting = FairQueue<Wish>()
    }

    let bytesMax: Int
    private let state = Mutex(State())

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    var usedBytes: Int { state.withLock { $0.used } }
    var waitingCount: Int { state.withLock { $0.waiting.count + ($0.first == nil ? 0 : 1) } }

    /// - Parameter granted: called when there is room: on this thread at once, or later on that of who makes room. It must
    ///   not block. The memory counts as used until the share is freed.
    package func take(_ bytes: Int, for requester: Requester, _ granted: @escaping @Sendable (WorkingShare) -> Void) {
        let wish = Wish(bytes: min(max(0, bytes), bytesMax), granted: granted)
        state.withLock { $0.waiting.append(wish, for: requester, cost: max(1, wish.bytes >> 10)) }
        grant()
    }

    /// What there is at once.
    /// - Returns: nil when there isn't room, or others wait for it.
    package func takeNow(_ bytes: Int) -> WorkingShare? {
        let bytes = min(max(0, bytes), bytesMax)
        let isGranted = state.withLock { state in
            guard state.first == nil, state.waiting.isEmpty, state.used + bytes <= bytesMax else { return false }
            state.used += bytes
            return true
        }
        return isGranted ? WorkingShare(self, bytes) : nil
    }

    fileprivate func release(_ bytes: Int) {
        state.withLock { $0.used -= bytes }
        grant()
    }

    private func grant() {
        while let wish = next() { wish.granted(WorkingShare(self, wish.bytes)) }
    }

    private func next() -> Wish? {
        state.withLock { state in
            guard let wish = state.first ?? state.waiting.popFirst() else { return nil }
            guard state.used + wish.bytes <= bytesMax else {
                state.first = wish
                return nil
            }
            state.first = nil
            state.used += wish.bytes
            return wish
        }
    }
}

/// A part of the memory in use; given back when the object is freed, or before.
package final class WorkingShare: Sendable {
    private let memory: WorkingMemory
    private let bytes: Atomic<Int>

    fileprivate init(_ memory: WorkingMemory, _ bytes: Int) {
        self.memory = memory
        self.bytes = Atomic(bytes)
    }

    deinit { end() }

    package func end() {
        let freed = bytes.exchange(0, ordering: .relaxed)
        if freed > 0 { memory.release(freed) }
    }
}
