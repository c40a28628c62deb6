import HearthConcurrency
import HearthModel
import HearthTestDoubles
import HearthTestSupport

@testable import HearthDocuments

extension Database {
    /// Has a transaction that never ends lock a document.
    func hold(_ path: ResourcePath) async throws {
        let id = try begin(.readWrite(retry: nil))
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            read(.transaction(id), [.document(path)]) { result in
                continuation.resume(with: result.map { _ in })
            }
        }
    }

    /// Moves the clock on while commits wait for such a lock: they give up after two seconds, and the transaction loses it after
    /// five. Blocks the calling thread: a task would wait for other tests' threads after each step.
    /// - Returns: false when the condition doesn't hold in time.
    func outlastsLocks(_ clock: StoppedClock, until condition: () -> Bool) -> Bool {
        eventually {
            if statistics.queuedCommits > 0 {
                clock.advance(seconds: 0.1)
                tick()
            }
            return condition()
        }
    }
}
