import Dispatch
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

/// Runs code that blocks outside of Swift's pool of threads.
package func blocking<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        DispatchQueue.global().async { continuation.resume(with: Swift.Result { try body() }) }
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
