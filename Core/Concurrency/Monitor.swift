import Glibc

/// A lock with a condition to wait on.
///
/// `Synchronization.Mutex` has no condition, and its closures cannot return a generic result that is not Sendable, as
/// `Store.write` must.
@usableFromInline package final class Monitor: @unchecked Sendable {
    // Both may be used from any thread.
    let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        // Otherwise a step of the system's clock would lengthen or shorten waits.
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    @inline(__always) @usableFromInline
    package func lock() {
        #if DEBUG
        if let interleaving = Interleaving.current { return interleaving.lock(self) }
        #endif
        pthread_mutex_lock(mutex)
    }

    /// Locks if the lock is free; true when it did.
    package func tryLock() -> Bool {
        #if DEBUG
        if let interleaving = Interleaving.current { return interleaving.tryLock(self) }
        #endif
        return pthread_mutex_trylock(mutex) == 0
    }

    @inline(__always) @usableFromInline
    package func unlock() {
        #if DEBUG
        if let interleaving = Interleaving.current { return interleaving.unlock(self) }
        #endif
        pthread_mutex_unlock(mutex)
    }

    @inlinable package func withLock<Result, Failure>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        lock()
        defer { unlock() }
        return try body()
    }

    /// Wakes all waiting threads.
    package func signal() {
        #if DEBUG
        if let interleaving = Interleaving.current { return interleaving.signal(self) }
        #endif
        pthread_cond_broadcast(condition)
    }

    /// Waits for a signal. The lock must be held; it is held again when the call returns.
    package func wait() {
        #if DEBUG
        if let interleaving = Interleaving.current { return interleaving.wait(self, until: nil) }
        #endif
        pthread_cond_wait(condition, mutex)
    }

    /// Waits for a signal until `deadline`. The lock must be held; it is held again when the call returns.
    package func wait(until deadline: MonotonicTime) {
        #if DEBUG
        if let interleaving = Interleaving.current {
            return interleaving.wait(self, until: deadline.nanoseconds)
        }
        #endif
        var time = timespec(
            tv_sec: Int(deadline.nanoseconds / 1_000_000_000), tv_nsec: Int(deadline.nanoseconds % 1_000_000_000))
        pthread_cond_timedwait(condition, mutex, &time)
    }
}
