import HearthConcurrency
import Synchronization

/// The writer's lock, with priority for the checkpointer.
///
/// A thread that writes in a loop locks again before a sleeping one has woken up. Without the priority the checkpointer
/// might never get the lock, and the WAL would grow.
final class WriterGate: Sendable {
    private let monitor = Monitor()
    private let isWanted = Atomic(false)

    func lock() {
        monitor.lock()
        while isWanted.load(ordering: .acquiring) { monitor.wait() }
    }

    /// Locks after at most one other thread; for one thread at a time.
    func lockFirst() {
        isWanted.store(true, ordering: .releasing)
        monitor.lock()
        isWanted.store(false, ordering: .releasing)
        monitor.signal()
    }

    /// Locks when no other thread has it or waits with a reservation.
    func tryLock() -> Bool {
        if isWanted.load(ordering: .acquiring) || !monitor.tryLock() { return false }
        return true
    }

    func unlock() { monitor.unlock() }

    /// Makes others wait until `lockFirst` or `endReservation` is called.
    func reserve() { isWanted.store(true, ordering: .releasing) }

    func endReservation() {
        if !isWanted.load(ordering: .acquiring) { return }
        monitor.withLock {
            isWanted.store(false, ordering: .releasing)
            monitor.signal()
        }
    }

    func withLock<Result, Failure>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        lock()
        defer { unlock() }
        return try body()
    }
}
