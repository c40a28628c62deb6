import Glibc
import HearthConcurrency

/// How long `eventually` waits.
private let patienceSeconds: UInt64 = 60

/// Waits, without its own timeout, until a condition holds.
package func until(_ condition: () async throws -> Bool) async rethrows {
    while try await !condition() { await Task.yield() }
}

/// Waits for an effect of another thread; false when it doesn't happen in a minute.
package func eventually(_ condition: () -> Bool) -> Bool {
    let start = SystemClock().monotonicNanoseconds()
    while !condition() {
        if SystemClock().monotonicNanoseconds() - start > patienceSeconds * 1_000_000_000 { return false }
        sched_yield()
    }
    return true
}

/// The same for a task, which leaves its thread to others meanwhile.
package func eventually(_ condition: () -> Bool) async -> Bool {
    let start = SystemClock().monotonicNanoseconds()
    while !condition() {
        if SystemClock().monotonicNanoseconds() - start > patienceSeconds * 1_000_000_000 { return false }
        try? await Task.sleep(for: .milliseconds(1))
    }
    return true
}
