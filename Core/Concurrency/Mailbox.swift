import Synchronization

/// Jobs that other threads hand to the thread of an event loop, in their order. It does not wake the owner: `put` says when
/// somebody must.
///
/// A struct without copies, and inlinable, so that it costs its owner what a `Mutex` of its own would.
@usableFromInline package struct Mailbox: ~Copyable, Sendable {
    @usableFromInline package typealias Job = @Sendable () -> Void

    @usableFromInline struct State: Sendable {
        @usableFromInline var jobs: [Job]
        @usableFromInline var isClosed: Bool

        @inlinable init() {
            jobs = []
            isClosed = false
        }

        @inlinable mutating func take() -> [Job] {
            guard !jobs.isEmpty else { return [] }
            let taken = jobs
            jobs = []
            return taken
        }
    }

    @usableFromInline let state: Mutex<State>

    @inlinable package init() { state = Mutex(State()) }

    @usableFromInline package enum Delivery: Sendable {
        /// The first job since the owner took all: wake the owner.
        case wantsWake
        case queued
        /// The owner has ended; the job was not taken.
        case closed
    }

    @inlinable @inline(__always) package func put(_ job: @escaping Job) -> Delivery {
        state.withLock { state in
            guard !state.isClosed else { return .closed }
            state.jobs.append(job)
            return state.jobs.count == 1 ? .wantsWake : .queued
        }
    }

    @inlinable @inline(__always) package func takeAll() -> [Job] { state.withLock { $0.take() } }

    @inlinable package var isEmpty: Bool { state.withLock { $0.jobs.isEmpty } }

    /// Takes nothing more.
    /// - Returns: what had been put.
    @inlinable package func close() -> [Job] {
        state.withLock { state in
            state.isClosed = true
            return state.take()
        }
    }
}
