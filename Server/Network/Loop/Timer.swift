import HearthConcurrency
import Synchronization

/// A job that an event loop runs once, at a time.
///
/// `@unchecked Sendable`: `heapIndex` and `job` belong to the loop's thread; the rest is constant.
package final class Timer: HeapTimer, @unchecked Sendable {
    private let loop: EventLoop
    package let deadline: UInt64
    private var job: (@Sendable () -> Void)?
    /// The timer's index in the heap; -1 when it is not in it.
    package var heapIndex = -1
    private let isCancelled = Atomic<Bool>(false)

    init(loop: EventLoop, deadline: UInt64, job: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.deadline = deadline
        self.job = job
    }

    /// Any thread. On the loop's thread the job is certain not to run afterwards.
    package func cancel() {
        isCancelled.store(true, ordering: .relaxed)
        loop.cancel(self)
    }

    func fire() {
        guard !isCancelled.load(ordering: .relaxed) else { return }
        let job = job
        self.job = nil
        job?()
    }
}
