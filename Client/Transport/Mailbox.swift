import Synchronization

/// Work that other threads hand to the transport's thread.
final class Mailbox: Sendable {
    typealias Job = @Sendable () -> Void

    private struct State {
        var jobs: [Job] = []
        var isClosed = false
    }

    private let state = Mutex(State())

    enum Delivery {
        /// The first since the owner looked: wake it.
        case wantsWake
        case queued
        /// The owner has gone; the job was not taken.
        case closed
    }

    func put(_ job: @escaping Job) -> Delivery {
        state.withLock { state in
            guard !state.isClosed else { return .closed }
            state.jobs.append(job)
            return state.jobs.count == 1 ? .wantsWake : .queued
        }
    }

    func takeAll() -> [Job] {
        state.withLock { state in
            let jobs = state.jobs
            state.jobs = []
            return jobs
        }
    }

    var isEmpty: Bool { state.withLock { $0.jobs.isEmpty } }

    /// Takes nothing more; gives what had been put.
    func close() -> [Job] {
        state.withLock { state in
            state.isClosed = true
            let jobs = state.jobs
            state.jobs = []
            return jobs
        }
    }
}
