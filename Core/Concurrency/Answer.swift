import Synchronization

/// Waits for the result of a call that takes a completion handler, until the caller's task is cancelled. It always
/// returns: when the work never calls the completion, cancellation ends the wait. The first result counts; later calls
/// of the completion are ignored.
/// - Parameter start: begins the work; it is not called when the task is already cancelled. The closure that it returns
///   ends the work when no caller waits any more. That closure may be called from any thread, and is not called after
///   the completion.
/// - Throws: `CancellationError`, or the error that the completion receives.
nonisolated(nonsending) package func answer<Success: Sendable>(
    stoppable start: (@escaping @Sendable (Result<Success, any Error>) -> Void) -> @Sendable () -> Void
) async throws -> Success {
    try Task.checkCancellation()
    let answer = Answer<Success>()
    return try await withTaskCancellationHandler {
        answer.stop(with: start { answer.give($0) })
        return try await withCheckedThrowingContinuation { answer.wait($0) }
    } onCancel: {
        answer.cancel()
    }
}

/// The same for work that continues when no caller waits for it, such as a write.
nonisolated(nonsending) package func answer<Success: Sendable>(
    _ start: (@escaping @Sendable (Result<Success, any Error>) -> Void) -> Void
) async throws -> Success {
    try await answer(stoppable: { completion in
        start(completion)
        return {}
    })
}

/// The answer to one call: its result or the cancellation of its caller, whichever comes first.
private final class Answer<Success: Sendable>: Sendable {
    private struct State {
        var result: Result<Success, any Error>?
        var continuation: CheckedContinuation<Success, any Error>?
        var stop: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    func give(_ result: Result<Success, any Error>) { take(result).continuation?.resume(with: result) }

    func cancel() {
        let taken = take(.failure(CancellationError()))
        taken.continuation?.resume(throwing: CancellationError())
        taken.stop?()
    }

    /// - Returns: the waiting continuation and the closure that ends the work; nothing unless this result is the first.
    private func take(_ result: Result<Success, any Error>) -> State {
        state.withLock { state in
            if state.result != nil { return State() }
            defer { state = State(result: result) }
            return state
        }
    }

    func wait(_ new: CheckedContinuation<Success, any Error>) {
        let result = state.withLock { state in
            if state.result == nil { state.continuation = new }
            return state.result
        }
        if let result { new.resume(with: result) }
    }

    func stop(with stop: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            if state.result == nil { state.stop = stop }
            if case .failure(is CancellationError) = state.result { return true }
            return false
        }
        if isCancelled { stop() }
    }
}
