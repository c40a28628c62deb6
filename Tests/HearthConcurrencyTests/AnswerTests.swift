import HearthModel
import Synchronization
import Testing

@testable import HearthConcurrency

@Suite("An answer to an asynchronous call")
struct AnswerTests {
    private typealias Completion = @Sendable (Result<Int, any Error>) -> Void

    /// A call whose completion is stored, and the result that stopped it.
    private final class Call: Sendable {
        let completion = Mutex<Completion?>(nil)
        let stops = Atomic(0)

        func start(_ completion: @escaping Completion) -> @Sendable () -> Void {
            self.completion.withLock { $0 = completion }
            return { [self] in stops.add(1, ordering: .relaxed) }
        }

        func begun() async -> Completion {
            while true {
                if let completion = completion.withLock({ $0 }) { return completion }
                await Task.yield()
            }
        }

        var stopped: Int { stops.load(ordering: .relaxed) }
    }

    @Test("may arrive before or after the wait begins")
    func both() async throws {
        #expect(try await answer { $0(.success(1)) } == 1)
        let call = Call()
        async let value: Int = answer(stoppable: { call.start($0) })
        let completion = await call.begun()
        completion(.success(2))
        #expect(try await value == 2)
        completion(.success(3))
        completion(.failure(Status.aborted("late")))
        #expect(call.stopped == 0)
    }

    @Test("may be an error")
    func failure() async throws {
        await #expect(throws: Status.aborted("it was")) {
            let _: Int = try await answer { $0(.failure(Status.aborted("it was"))) }
        }
    }

    @Test("is a cancellation when the task is cancelled, and stops the work once")
    func cancelled() async throws {
        let call = Call()
        let task = Task { try await answer(stoppable: { call.start($0) }) }
        let completion = await call.begun()
        task.cancel()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(call.stopped == 1)
        completion(.success(1))
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test("does not start work in a cancelled task")
    func cancelledBefore() async throws {
        let call = Call()
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await answer(stoppable: { call.start($0) })
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(call.completion.withLock { $0 == nil } && call.stopped == 0)
    }

    @Test("arrives when the task is cancelled while the work begins")
    func cancelledWithin() async throws {
        let stops = Mutex(0)
        let task = Task {
            try await answer(stoppable: { (_: @escaping Completion) in
                // The task is cancelled from within the call.
                withUnsafeCurrentTask { $0?.cancel() }
                return { stops.withLock { $0 += 1 } }
            })
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(stops.withLock { $0 } == 1)
    }

    /// Many times, so that ThreadSanitizer sees both orders.
    @Test("is delivered once when it races with the end of the task")
    func race() async throws {
        for round in 0..<500 {
            let call = Call()
            let task = Task { try await answer(stoppable: { call.start($0) }) }
            let completion = await call.begun()
            async let given: Void = Task.detached { completion(.success(round)) }.value
            task.cancel()
            await given
            do {
                let value = try await task.value
                #expect(value == round && call.stopped == 0)
            } catch {
                #expect(error is CancellationError && call.stopped == 1)
            }
        }
    }
}
