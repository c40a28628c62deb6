import Synchronization

/// Takes locks on several resources one after the other, waiting where it must.
final class LockSequence: Sendable {
    private struct State {
        var next = 0
        /// Whether the requested lock is granted.
        var isGranted = false
        /// Whether the sequence has stopped to wait for it.
        var isWaiting = false
        var taken: [LockTable.Taken] = []
    }

    private let resources: [LockTable.Resource]
    private let owner: LockTable.Owner
    private let locks: LockTable
    private let state = Mutex(State())

    init(_ resources: [LockTable.Resource], for owner: LockTable.Owner, in locks: LockTable) {
        self.resources = resources
        self.owner = owner
        self.locks = locks
    }

    /// The locks that the owner did not have before.
    var taken: [LockTable.Taken] { state.withLock { $0.taken } }

    /// - Parameter done: called once: with true when all locks are granted, with false when too many wait for one of
    ///   them.
    func take(_ done: @escaping @Sendable (Bool) -> Void) {
        while true {
            let index = state.withLock { state in
                state.isGranted = false
                state.isWaiting = false
                defer { state.next += 1 }
                return state.next
            }
            guard index < resources.count else { return done(true) }
            let acquisition = locks.acquire(resources[index], for: owner) { [self] in
                let mustResume = state.withLock { state in
                    state.isGranted = true
                    return state.isWaiting
                }
                if mustResume { take(done) }
            }
            switch acquisition {
            case .refused: return done(false)
            case .unchanged: break
            case .taken(let lock): state.withLock { $0.taken.append(lock) }
            }
            // A lock that is granted within the call continues in this loop, so that no number of resources deepens the
            // stack.
            let hasCome = state.withLock { state in
                state.isWaiting = !state.isGranted
                return state.isGranted
            }
            if !hasCome { return }
        }
    }
}
