import Glibc
import HearthConcurrency

/// How long tests wait for what must happen. Only a hang takes so long, on a machine however busy: no test measures
/// time with it.
package enum Patience {
    /// Of a wait for one condition.
    package static let seconds = 600
    package static let milliseconds = seconds * 1000

    /// The time limit of a test or a suite, of which some wait for the lock of many others: `.timeLimit(.minutes(…))`.
    package static let minutes = 30
}

/// Waits, without its own timeout, until a condition holds.
package func until(_ condition: () async throws -> Bool) async rethrows {
    while try await !condition() { await Task.yield() }
}

/// Waits for an effect of another thread; false when it never happens.
package func eventually(_ condition: () -> Bool) -> Bool {
    let end = MonotonicTime.now.advanced(milliseconds: Patience.milliseconds)
    while !condition() {
        if MonotonicTime.now > end { return false }
        sched_yield()
    }
    return true
}

/// The same for a task, which leaves its thread to others meanwhile.
package func eventually(_ condition: () -> Bool) async -> Bool {
    let end = MonotonicTime.now.advanced(milliseconds: Patience.milliseconds)
    while !condition() {
        if MonotonicTime.now > end { return false }
        try? await Task.sleep(for: .milliseconds(1))
    }
    return true
}
