import HearthConcurrency
import HearthModel
import Synchronization

/// Jobs that requesters queue, and the one worker that takes them, round-robin between the requesters.
///
/// There are two lanes. The worker takes from both alternately, so that a requester with a quick job waits for one
/// large job at most, however many are queued. The jobs that the worker takes in one slice come from one lane.
///
/// It is in the module of its only user, and not beside `FairQueue`: generic code that isn't inlinable is specialised
/// within a module only.
final class FairWorker<Job: Sendable>: Sendable {
    enum Lane: Int {
        case quick, large
    }

    private struct LaneState {
        var queue = FairQueue<Job>()
        /// A job that was taken and did not fit into the slice: the first of the next one.
        var returned: Job?

        var isEmpty: Bool { returned == nil && queue.isEmpty }
        var count: Int { queue.count + (returned == nil ? 0 : 1) }

        mutating func pop() -> Job? {
            guard let job = returned else { return queue.popFirst() }
            returned = nil
            return job
        }

        mutating func removeAll() -> [Job] {
            defer { returned = nil }
            return (returned.map { [$0] } ?? []) + queue.removeAll()
        }
    }

    private struct State {
        var quick = LaneState()
        var large = LaneState()
        var last = Lane.large
        /// Whether the body runs, or will run soon.
        var isAwake = false
        var isStopped = false

        mutating func pop(_ lane: Lane) -> Job? { lane == .quick ? quick.pop() : large.pop() }

        mutating func removeAll() -> [Job] { quick.removeAll() + large.removeAll() }
    }

    private let state = Mutex(State())
    private let driver: any WorkerDriver

    /// - Parameter body: takes jobs with `next` until there is none.
    init(
        _ name: String, drivers: WorkerDrivers = ThreadDriver.make, idle: @escaping @Sendable () -> Void = {},
        body: @escaping @Sendable () -> Void
    ) {
        driver = drivers(name, idle, body)
    }

    func count(_ lane: Lane) -> Int { state.withLock { lane == .quick ? $0.quick.count : $0.large.count } }

    /// Queues a job.
    /// - Returns: jobs that can't be processed because the worker has ended; mostly none.
    func push(_ job: Job, for requester: Requester, cost: Int = 1, _ lane: Lane = .quick) -> [Job] {
        let (isStopped, mustWake) = state.withLock { state in
            if state.isStopped { return (true, false) }
            if lane == .quick {
                state.quick.queue.append(job, for: requester, cost: cost)
            } else {
                state.large.queue.append(job, for: requester, cost: cost)
            }
            defer { state.isAwake = true }
            return (false, !state.isAwake)
        }
        if isStopped { return [job] }
        return mustWake ? wakeDriver() : []
    }

    /// Makes the body run, when there is a job.
    /// - Returns: jobs that can't be processed because the worker has ended.
    func wake() -> [Job] {
        let mustWake = state.withLock { state in
            if state.isAwake || (state.quick.isEmpty && state.large.isEmpty) { return false }
            state.isAwake = true
            return true
        }
        return mustWake ? wakeDriver() : []
    }

    private func wakeDriver() -> [Job] {
        if driver.wake() { return [] }
        return state.withLock { state in
            state.isAwake = false
            return state.removeAll()
        }
    }

    /// What the body does next.
    enum Next {
        case job(Job, Lane)
        /// There are large jobs only, and they must wait.
        case wait
        /// The body ends.
        case end
    }

    /// For the body alone.
    /// - Parameter largeMustWait: whether no job of the large lane is wanted now.
    func next(largeMustWait: Bool = false) -> Next {
        state.withLock { state in
            for lane in state.last == .quick ? [Lane.large, .quick] : [.quick, .large] {
                guard lane == .quick || !largeMustWait, let job = state.pop(lane) else { continue }
                state.last = lane
                return .job(job, lane)
            }
            if !state.large.isEmpty { return .wait }
            state.isAwake = false
            return .end
        }
    }

    /// The next job of one lane, for the body.
    func next(in lane: Lane) -> Job? { state.withLock { $0.pop(lane) } }

    /// For the body: `job`, the last that it took from a lane, belongs to the next slice of that lane.
    func putBack(_ job: Job, in lane: Lane) {
        state.withLock { state in
            if lane == .quick { state.quick.returned = job } else { state.large.returned = job }
        }
    }

    /// The body ends although there may be more jobs; `wake` makes it continue.
    func pause() { state.withLock { $0.isAwake = false } }

    /// Processes the queued jobs, and ends the worker.
    /// - Returns: the unprocessed jobs, because the worker stops itself or has paused.
    func stop() -> [Job] {
        state.withLock { $0.isStopped = true }
        driver.stop()
        return state.withLock { $0.removeAll() }
    }
}
