import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Threads for work that would hold up an event loop: scans whose cost isn't that of their answer.
///
/// The mutex guards all state; threads are started when there is work for them, and stay.
final class WorkerPool: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var jobs: [@Sendable () -> Void] = []
    private var head = 0
    private var threads: [pthread_t] = []
    private var idleCount = 0
    private var isStopping = false
    private let threadsMax: Int

    init(threadsMax: Int) {
        self.threadsMax = threadsMax
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    func run(_ job: @escaping @Sendable () -> Void) {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        if isStopping { return }
        jobs.append(job)
        if idleCount > 0 {
            pthread_cond_signal(condition)
        } else if threads.count < threadsMax {
            startThread()
        }
    }

    /// Drops what is waiting, and ends the threads when they have finished what they are at.
    func stop() {
        pthread_mutex_lock(mutex)
        isStopping = true
        jobs = []
        head = 0
        pthread_cond_broadcast(condition)
        let running = threads
        pthread_mutex_unlock(mutex)
        for thread in running { pthread_join(thread, nil) }
    }

    private func startThread() {
        var thread = pthread_t()
        let box = Unmanaged.passRetained(self).toOpaque()
        if pthread_create(&thread, nil, poolThreadEntry, box) == 0 {
            threads.append(thread)
        } else {
            Unmanaged<WorkerPool>.fromOpaque(box).release()
        }
    }

    fileprivate func work() {
        while let job = next() { job() }
    }

    private func next() -> (@Sendable () -> Void)? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while head == jobs.count, !isStopping {
            idleCount += 1
            pthread_cond_wait(condition, mutex)
            idleCount -= 1
        }
        if isStopping { return nil }
        let job = jobs[head]
        head += 1
        if head == jobs.count {
            jobs.removeAll(keepingCapacity: true)
            head = 0
        }
        return job
    }
}

private func poolThreadEntry(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let argument { Unmanaged<WorkerPool>.fromOpaque(argument).takeRetainedValue().work() }
    return nil
}
