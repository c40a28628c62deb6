#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A thread that takes everything that was put into its queue, in order, and works on it in batches.
///
/// The queue's mutex guards `pending`, `waker` and `isStopping`; everything else belongs to the thread.
package final class WorkerThread<Element: Sendable>: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var pending: [Element] = []
    private var isStopping = false
    private var isRunning = false
    private var thread = pthread_t()
    private let body: @Sendable ([Element]) -> Void
    private let idle: @Sendable () -> Void

    /// How long nothing has to come before the thread is idle.
    private static var idleNanoseconds: Int { 100_000_000 }

    /// - Parameters:
    ///   - body: gets all that has gathered, at least one element.
    ///   - idle: called once when nothing has come for a tenth of a second.
    package init(idle: @escaping @Sendable () -> Void = {}, body: @escaping @Sendable ([Element]) -> Void) {
        self.body = body
        self.idle = idle
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// Adds an element; the thread is started with the first. False when the thread is stopping or can't be started.
    @discardableResult
    package func push(_ element: Element) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        if isStopping { return false }
        if !isRunning {
            guard start() else { return false }
            isRunning = true
        }
        pending.append(element)
        pthread_cond_signal(condition)
        return true
    }

    package var count: Int {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return pending.count
    }

    /// Works off what is waiting, and ends the thread.
    /// - Returns: what is not worked off, when the thread stops itself: it can't wait for its own end.
    @discardableResult
    package func stop() -> [Element] {
        pthread_mutex_lock(mutex)
        let wasRunning = isRunning && !isStopping
        isStopping = true
        let isOwnThread = isRunning && pthread_equal(thread, pthread_self()) != 0
        let rest = isOwnThread ? pending : []
        if isOwnThread { pending = [] }
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
        if wasRunning { if isOwnThread { pthread_detach(thread) } else { pthread_join(thread, nil) } }
        return rest
    }

    private func start() -> Bool {
        guard let started = ThreadBody.start({ [self] in run() }) else { return false }
        thread = started
        return true
    }

    private func run() {
        var isIdleDue = true
        while true {
            pthread_mutex_lock(mutex)
            while pending.isEmpty, !isStopping {
                if !isIdleDue {
                    pthread_cond_wait(condition, mutex)
                } else if waitForIdleness() {
                    isIdleDue = false
                    pthread_mutex_unlock(mutex)
                    idle()
                    pthread_mutex_lock(mutex)
                }
            }
            let batch = pending
            pending = []
            pthread_mutex_unlock(mutex)
            if batch.isEmpty { return }
            isIdleDue = true
            body(batch)
        }
    }

    /// Whether nothing has come for a while.
    private func waitForIdleness() -> Bool {
        var deadline = timespec()
        clock_gettime(CLOCK_REALTIME, &deadline)
        let nanoseconds = deadline.tv_nsec + Self.idleNanoseconds
        deadline.tv_sec += nanoseconds / 1_000_000_000
        deadline.tv_nsec = nanoseconds % 1_000_000_000
        return pthread_cond_timedwait(condition, mutex, &deadline) == ETIMEDOUT && pending.isEmpty && !isStopping
    }
}

/// What a new thread runs; kept alive by the thread.
private final class ThreadBody: Sendable {
    private let body: @Sendable () -> Void

    private init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
    }

    /// Nil when the system has no room for another thread.
    static func start(_ body: @escaping @Sendable () -> Void) -> pthread_t? {
        var thread = pthread_t()
        let retained = Unmanaged.passRetained(ThreadBody(body))
        if pthread_create(&thread, nil, threadEntry, retained.toOpaque()) == 0 { return thread }
        retained.release()
        return nil
    }

    fileprivate func callAsFunction() { body() }
}

private func threadEntry(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let argument { Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue()() }
    return nil
}
