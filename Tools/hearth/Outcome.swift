import Glibc
import HearthModel
import Synchronization

/// What one thread waits for and another one brings.
///
/// `@unchecked Sendable`: the semaphore orders the two, and the mutex guards the value.
final class Outcome<Value>: @unchecked Sendable {
    private let result = Mutex<Box?>(nil)
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    private struct Box: @unchecked Sendable {
        let result: Result<Value, Status>
    }

    init() { sem_init(semaphore, 0, 0) }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    func set(_ value: Result<Value, Status>) {
        let box = Box(result: value)
        result.withLock { $0 = $0 ?? box }
        sem_post(semaphore)
    }

    func wait() throws(Status) -> Value {
        while sem_wait(semaphore) != 0 {}
        guard let box = result.withLock({ $0 }) else { throw .internalError("There is no result.") }
        return try box.result.get()
    }
}
