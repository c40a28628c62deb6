import HearthConcurrency
import Synchronization

/// Starts a thread for a body; the test joins it.
package func testThread(_ body: @escaping @Sendable () -> Void) -> NamedThread {
    guard let thread = NamedThread.start("test", body) else { fatalError("no thread can be started") }
    return thread
}

/// Runs a body in several threads at once, and waits for them.
package func inThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let threads = (0..<count).map { index in testThread { body(index) } }
    for thread in threads { thread.join() }
}

/// Runs code that blocks in a thread of its own: not in Swift's pool, and not in one of Dispatch, which begins more
/// threads only a few at a time while the machine is busy, and which code under test may need meanwhile.
package func blocking<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        testThread { continuation.resume(with: Swift.Result { try body() }) }.detach()
    }
}

/// Counts down to 0.
package final class Countdown: Sendable {
    private let count: Mutex<Int>
    private let latch = Latch()

    package init(_ count: Int) { self.count = Mutex(count) }

    package func signal() {
        let isOver = count.withLock { count in
            count -= 1
            return count <= 0
        }
        if isOver { latch.open() }
    }

    package func wait() { latch.wait() }
}
