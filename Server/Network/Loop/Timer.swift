import Synchronization

/// A job that an event loop runs once, at a time.
///
/// `@unchecked Sendable`: `heapIndex` and `job` belong to the loop's thread; the rest is constant.
package final class Timer: @unchecked Sendable {
    private let loop: EventLoop
    let deadline: UInt64
    private var job: (@Sendable () -> Void)?
    /// Where the timer stands in the heap; -1 when it isn't in it.
    var heapIndex = -1
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

/// A binary heap of timers that can take one out of the middle.
///
/// Nearly every gRPC call sets a timer of a minute and cancels it within a millisecond: a heap that kept cancelled
/// timers until they are due would hold millions.
struct TimerHeap {
    private var timers: [Timer] = []

    var earliestDeadline: UInt64? { timers.first?.deadline }

    mutating func insert(_ timer: Timer) {
        timer.heapIndex = timers.count
        timers.append(timer)
        siftUp(timer.heapIndex)
    }

    mutating func remove(_ timer: Timer) {
        let index = timer.heapIndex
        guard index >= 0 else { return }
        timer.heapIndex = -1
        let last = timers.removeLast()
        guard index < timers.count else { return }
        place(last, at: index)
        siftUp(index)
        siftDown(last.heapIndex)
    }

    mutating func popDue(_ now: UInt64) -> Timer? {
        guard let first = timers.first, first.deadline <= now else { return nil }
        remove(first)
        return first
    }

    mutating func removeAll() {
        for timer in timers { timer.heapIndex = -1 }
        timers.removeAll()
    }

    private mutating func place(_ timer: Timer, at index: Int) {
        timers[index] = timer
        timer.heapIndex = index
    }

    private mutating func siftUp(_ start: Int) {
        var index = start
        let timer = timers[index]
        while index > 0 {
            let parent = (index - 1) / 2
            guard timer.deadline < timers[parent].deadline else { break }
            place(timers[parent], at: index)
            index = parent
        }
        place(timer, at: index)
    }

    private mutating func siftDown(_ start: Int) {
        var index = start
        let timer = timers[index]
        while true {
            var child = 2 * index + 1
            guard child < timers.count else { break }
            if child + 1 < timers.count && timers[child + 1].deadline < timers[child].deadline { child += 1 }
            guard timers[child].deadline < timer.deadline else { break }
            place(timers[child], at: index)
            index = child
        }
        place(timer, at: index)
    }
}
