import HearthConcurrency
import HearthModel
import Synchronization

/// Gives commits their versions, and reads their times, so that the two never contradict each other.
///
/// What holds at all times: versions only grow; a commit's version is greater than every read time that was given out
/// before it; while commits are on their way, a read time that is given out lies before all of them.
final class CommitClock: Sendable {
    private struct State {
        /// The greatest version or read time given out.
        var last: Int64
        /// The version of the last commit that is durable and visible.
        var committed: Int64
        /// When it came, in monotonic nanoseconds; that of the opening for one that was there before.
        var committedNanoseconds: UInt64
        /// Whether the writer has begun to give versions to commits that aren't visible yet.
        var isCommitting = false
        /// While it has: what the state after `committed` is valid for, as every commit on its way is later.
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

    /// The time before which nothing can be read that isn't there yet.
    var latest: Int64 {
        state.withLock { max($0.last, clock.now().microseconds) }
    }

    var committed: Int64 { state.withLock { $0.committed } }

    /// The newest commit, and when it came.
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

    /// A promise that `time` is a read time of the state whose last commit is `committed`. A snapshot that is taken
    /// afterwards shows that state for sure while `generation` stands, if that is known; else it may show a later one.
    struct Promise {
        var time: Int64
        var committed: Int64
        /// Nil while commits are on their way, which become visible in the store at a moment of its own.
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

    /// Runs `body` when no commit is on its way whose version might lie at or before a read time: at once, or from the
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
