import Synchronization

/// A value that a callback sets and a test's task waits for.
package final class Box<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiters: [UInt64: CheckedContinuation<Value, any Error>] = [:]
        var waiterCount: UInt64 = 0
    }

    private let state = Mutex(State())

    package init() {}

    package func set(_ value: Value) {
        let waiters = state.withLock { state in
            state.value = value
            defer { state.waiters = [:] }
            return state.waiters.values.map { $0 }
        }
        for waiter in waiters { waiter.resume(returning: value) }
    }

    package var current: Value? { state.withLock { $0.value } }

    /// Releases the value: a call that its own handler's box retains would retain the server.
    package func forget() { state.withLock { $0.value = nil } }

    /// Ends with the test's task, so that the test's time limit applies.
    package func value() async throws -> Value {
        let number = state.withLock { state in
            state.waiterCount += 1
            return state.waiterCount
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let value = state.withLock { state -> Value? in
                    if state.value == nil { state.waiters[number] = continuation }
                    return state.value
                }
                if let value { return continuation.resume(returning: value) }
                if Task.isCancelled { giveUp(number) }
            }
        } onCancel: {
            giveUp(number)
        }
    }

    private func giveUp(_ number: UInt64) {
        state.withLock { $0.waiters.removeValue(forKey: number) }?.resume(throwing: CancellationError())
    }
}
