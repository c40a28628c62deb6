import Synchronization

/// Waits for what a call with a completion gives, for as long as the caller's task isn't cancelled. It returns when the completion is
/// called, if only in the end; what is called twice, or comes later, is dropped.
/// - Parameter start: begins the work; isn't called when the task is cancelled already. What it returns ends the work when
///   nobody waits for it any more; it may be called from any thread, and isn't called when the completion has been.
/// - Throws: `CancellationError`; what the completion is given.
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

/// The same for work that goes on when nobody waits for it: a write is made, whoever asks how it ends.
nonisolated(nonsending) package func answer<Success: Sendable>(
    _ start: (@escaping @Sendable (Result<Success, any Error>) -> Void) -> Void
) async throws -> Success {
    try await answer(stoppable: { completion in
        start(completion)
        return {}
    })
}

/// The answer to one call: what was asked for or that its caller was cancelled, whichever comes first.
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

    /// - Returns: who is told of it, and what else it ends; nothing unless it is the first.
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
