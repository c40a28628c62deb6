import HearthConcurrency
import HearthModel
import Synchronization

/// Assigns versions to commits and read times to reads, so that the two never contradict each other.
///
/// Invariants: versions only grow; a commit's version is greater than every read time that was assigned before it;
/// while commits are under way, an assigned read time is less than all their versions.
final class CommitClock: Sendable {
    private struct State {
        /// The greatest assigned version or read time.
        var last: Int64
        /// The version of the last commit that is durable and visible.
        var committed: Int64
        /// When it was committed, in monotonic nanoseconds; the time of opening for a commit that existed before.
        var committedNanoseconds: UInt64
        /// Whether the writer has begun to assign versions to commits that are not visible yet.
        var isCommitting = false
        /// While it has: the time until which the state after `committed` is valid, because every commit under way is
        /// later.
        var settledUntil: Int64 = 0
        /// Changes with every group of commits.
        var generation: UInt64 = 0
        var waiting: [@Sendable () -> Void] = []
    }

    private let state: Mutex<State>
    private let clock: any Clock

    init(clock: any Clock, lastVersion: Int64) {
        self.clock = clock
        state = Mutex(
            State(
                last: lastVersion, committed: lastVersion, committedNanoseconds: clock.monotonicNanoseconds()))
    }

    /// The time before which every commit is visible.
    var latest: Int64 {
        state.withLock { max($0.last, clock.now().microseconds) }
    }

    var committed: Int64 { state.withLock { $0.committed } }

    /// The newest commit, and its monotonic time.
    var lastCommit: (version: Int64, nanoseconds: UInt64) {
        state.withLock { ($0.committed, $0.committedNanoseconds) }
    }

    // MARK: Writer

    func beginGroup() {
        let now = clock.now().microseconds
        state.withLock { state in
            state.last = max(state.last, now - 1)
            state.settledUntil = state.last
            state.isCommitting = true
            state.generation += 1
        }
    }

    /// A version for the next commit of the group.
    /// - Parameter earliest: the commit's own request time, which its version must not precede.
    func nextVersion(notBefore earliest: Int64) -> Int64 {
        let now = clock.now().microseconds
        return state.withLock { state in
            state.last = max(now, state.last + 1, earliest)
            return state.last
        }
    }

    /// - Parameter committed: the version of the last commit of the group, nil when nothing was committed.
    func endGroup(committed: Int64?) {
        let waiting = state.withLock { state in
            state.isCommitting = false
            state.generation += 1
            if let committed {
                state.committed = committed
                state.committedNanoseconds = clock.monotonicNanoseconds()
            }
            let waiting = state.waiting
            state.waiting = []
            return waiting
        }
        for body in waiting { body() }
    }

    // MARK: Readers

    /// A guarantee that `time` is a read time of the state whose last commit is `committed`. If `generation` is known,
    /// a snapshot that is taken afterwards shows exactly that state while `generation` is unchanged; otherwise it may
    /// show a later one.
    struct Promise {
        var time: Int64
        var committed: Int64
        /// Nil while commits are under way: the store makes them visible at a moment that the clock does not know.
        var generation: UInt64?
    }

    func promise() -> Promise {
        let now = clock.now().microseconds
        return state.withLock { state in
            if state.isCommitting {
                return Promise(time: state.settledUntil, committed: state.committed, generation: nil)
            }
            state.last = max(state.last, now)
            return Promise(time: state.last, committed: state.committed, generation: state.generation)
        }
    }

    func holds(_ promise: Promise) -> Bool {
        guard let generation = promise.generation else { return false }
        return state.withLock { $0.generation == generation }
    }

    /// Runs `body` when no commit is under way whose version might be at or before a read time: at once, or from the
    /// writer's thread.
    func whenSettled(_ body: @escaping @Sendable () -> Void) {
        let isSettled = state.withLock { state in
            if state.isCommitting { state.waiting.append(body) }
            return !state.isCommitting
        }
        if isSettled { body() }
    }

    /// Keeps later commits above a read time that is being served.
    func raise(to time: Int64) {
        state.withLock { $0.last = max($0.last, time) }
    }
}
