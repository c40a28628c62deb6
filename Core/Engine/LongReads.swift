import HearthConcurrency
import HearthModel
import Synchronization

/// Admission of long reads: reads that hold a snapshot across ticks of an event loop, or run on a worker's thread.
///
/// A snapshot costs a connection of the engine and keeps old pages alive, so the number of long reads that are open at
/// a time is bounded in the whole process. Others wait: round-robin between accounts, and between the connections of an
/// account. No thread blocks. Short reads (opened and closed within one tick of a loop) need no admission: the engine
/// reserves readers for them.
///
/// A caller that waits for a slow peer must return its read first and request another one when the peer is ready.
/// Otherwise slow peers hold the reads that others wait for.
package final class LongReads: Sendable {
    private struct State {
        var active = 0
        var waiting = FairQueue<LongReadRequest>()
        /// Reads in the queue.
        var cancelled = 0
        var cancelledByAccount: [UInt64: Int] = [:]
        /// Whether a thread is admitting reads.
        var isGranting = false
        var isClosed = false

        /// A cancelled read is no longer in the queue.
        mutating func forgetCancelled(_ account: UInt64) {
            cancelled -= 1
            let rest = cancelledByAccount[account, default: 0] - 1
            cancelledByAccount[account] = rest > 0 ? rest : nil
        }
    }

    private let max: Int
    private let waitingMax: Int
    private let waitingShareMax: Int
    private let state = Mutex(State())

    /// - Parameters:
    ///   - max: reads that are open at a time.
    ///   - waitingMax: reads that wait, of all requesters together.
    ///   - waitingShareMax: the same of one account; administrators have no such bound.
    package init(
        max: Int = Limits.longReadsMax, waitingMax: Int = Limits.longReadsWaitingMax,
        waitingShareMax: Int = Limits.longReadsWaitingShareMax
    ) {
        self.max = max
        self.waitingMax = waitingMax
        self.waitingShareMax = waitingShareMax
    }

    /// Reads that are open.
    package var activeCount: Int { state.withLock { $0.active } }
    /// Reads that wait for admission.
    package var waitingCount: Int { state.withLock { $0.waiting.count - $0.cancelled } }

    /// Whether callers that hold a read without using it should return it now: others wait, or may have to soon.
    package var isScarce: Bool {
        state.withLock { $0.active * 2 > max || $0.waiting.count > $0.cancelled }
    }

    /// A read at once, if one is free and no other caller waits for it.
    package func take() -> LongRead? {
        let isFree = state.withLock { state in
            if state.isClosed || state.active >= max || state.waiting.count > state.cancelled { return false }
            state.active += 1
            return true
        }
        return isFree ? LongRead(self) : nil
    }

    /// Calls `begin` once when the requester is admitted: at once on this thread when a read is free, otherwise later
    /// on the thread that returns one. `begin` must return quickly: it passes the read on to a loop or to a worker.
    /// Fails with RESOURCE_EXHAUSTED when too many wait already, with UNAVAILABLE when the server is shutting down.
    /// - Parameter cost: the approximate amount that is read, at least 1, in a unit of the callers' choice; equal
    ///   requesters get equal cost.
    /// - Returns: a handle that cancels the wait.
    @discardableResult
    package func whenFree(
        for requester: Requester, cost: Int = 1, _ begin: @escaping @Sendable (Result<LongRead, Status>) -> Void
    ) -> LongReadRequest? {
        enum Decision { case now, later(LongReadRequest), refused(Status) }
        let decision = state.withLock { state -> Decision in
            if state.isClosed { return .refused(Self.shutdown) }
            if state.active < max, state.waiting.count == state.cancelled {
                state.active += 1
                return .now
            }
            let isFull =
                state.waiting.count - state.cancelled >= waitingMax
                || state.waiting.count(of: requester) - state.cancelledByAccount[requester.account, default: 0]
                    >= waitingShareMax
            if isFull, !requester.isAdministrator { return .refused(Self.full) }
            let request = LongReadRequest(self, requester, cost: cost, begin)
            state.waiting.append(request, for: requester, cost: cost)
            return .later(request)
        }
        switch decision {
        case .now: begin(.success(LongRead(self)))
        case .later(let request): return request
        case .refused(let status): begin(.failure(status))
        }
        return nil
    }

    /// Fails all waiting and all future calls.
    package func close() {
        let waiting = state.withLock { state in
            state.isClosed = true
            state.cancelled = 0
            state.cancelledByAccount = [:]
            return state.waiting.removeAll().compactMap { $0.takeBegin() }
        }
        for begin in waiting { begin(.failure(Self.shutdown)) }
    }

    private static let full = Status.resourceExhausted("Too many long reads are waiting.")
    private static let shutdown = Status.unavailable("The server is shutting down.")

    fileprivate func release() {
        state.withLock { $0.active -= 1 }
        // One thread at a time, in a loop: otherwise a read that is returned from within `begin` would recurse deeper
        // and deeper.
        while let (request, begin) = next() {
            begin(.success(LongRead(self)))
            withExtendedLifetime(request) {}
            state.withLock { $0.isGranting = false }
        }
    }

    /// The next waiting read, with a slot taken for it; nil when none waits, no slot is free, or another thread is
    /// admitting already.
    private func next() -> (LongReadRequest, @Sendable (Result<LongRead, Status>) -> Void)? {
        state.withLock { state in
            if state.isGranting { return nil }
            while state.active < max, let request = state.waiting.popFirst() {
                guard let begin = request.takeBegin() else {
                    state.forgetCancelled(request.requester.account)
                    continue
                }
                state.active += 1
                state.isGranting = true
                return (request, begin)
            }
            return nil
        }
    }

    fileprivate func cancel(_ request: LongReadRequest) {
        let begin = state.withLock { state -> (@Sendable (Result<LongRead, Status>) -> Void)? in
            guard let begin = request.takeBegin() else { return nil }
            if state.isClosed { return begin }
            state.cancelled += 1
            state.cancelledByAccount[request.requester.account, default: 0] += 1
            // Removes cancelled reads from the queue before they are most of it.
            if state.cancelled > Self.cancelledMin, state.cancelled * 2 > state.waiting.count {
                for request in state.waiting.removeAll() where request.isWaiting {
                    state.waiting.append(request, for: request.requester, cost: request.cost)
                }
                state.cancelled = 0
                state.cancelledByAccount = [:]
            }
            return begin
        }
        // The closure's captures are freed outside of the lock.
        withExtendedLifetime(begin) {}
    }

    private static let cancelledMin = 64
}

/// A read that waits for admission.
package final class LongReadRequest: @unchecked Sendable {
    private let reads: LongReads
    fileprivate let requester: Requester
    fileprivate let cost: Int
    // Guarded by the lock of `reads`.
    private var begin: (@Sendable (Result<LongRead, Status>) -> Void)?

    fileprivate init(
        _ reads: LongReads, _ requester: Requester, cost: Int,
        _ begin: @escaping @Sendable (Result<LongRead, Status>) -> Void
    ) {
        self.reads = reads
        self.requester = requester
        self.cost = cost
        self.begin = begin
    }

    fileprivate var isWaiting: Bool { begin != nil }

    /// Called at admission; nil after the first call.
    fileprivate func takeBegin() -> (@Sendable (Result<LongRead, Status>) -> Void)? {
        defer { begin = nil }
        return begin
    }

    /// Ends the wait without a call, unless the read was already admitted.
    package func cancel() { reads.cancel(self) }
}

/// The right to hold one long snapshot; returned by `end`, or when the object is freed.
package final class LongRead: Sendable {
    private let reads: LongReads
    private let isOver = Atomic(false)

    fileprivate init(_ reads: LongReads) { self.reads = reads }

    deinit { end() }

    /// Returns the right; the next waiting read is admitted on this thread. Harmless when repeated.
    package func end() {
        if !isOver.exchange(true, ordering: .acquiringAndReleasing) { reads.release() }
    }
}

extension LongReads {
    /// Calls `begin` once when the requester is admitted, or never when the call is cancelled before: then it no longer
    /// counts as waiting.
    /// - Returns: a handle that cancels the wait of a call that continues or has ended automatically.
    @discardableResult
    package func whenFree(
        for requester: Requester, cancellation: Cancellation,
        _ begin: @escaping @Sendable (Result<LongRead, Status>) -> Void
    ) -> LongReadRequest? {
        let key = cancellation.reserve()
        let request = whenFree(for: requester) { result in
            cancellation.release(key)
            begin(result)
        }
        // Cancelling an admitted read has no effect.
        if let request { cancellation.set(key) { request.cancel() } } else { cancellation.release(key) }
        return request
    }
}
