/// What a `TimerHeap` orders. A class, because the heap notes in each timer where it is.
@usableFromInline package protocol HeapTimer: AnyObject {
    /// Monotonic nanoseconds.
    var deadline: UInt64 { get }
    /// The timer's index in the heap; -1 when it is in none. Only the heap changes it.
    var heapIndex: Int { get set }
}

/// A binary heap of timers, the earliest first, that can remove one from the middle. Pure: the time is a parameter.
///
/// Nearly every gRPC call sets a timer of a minute and cancels it within a millisecond: a heap that kept cancelled
/// timers until they are due would hold millions. Adding, removing and taking cost O(log n).
///
/// Everything is inlinable, because each event loop uses it several times a request: the compiler specialises it for the
/// loop's own class of timers. For that the type itself must be `@usableFromInline`, too; `nm` shows no call of
/// `TimerHeap` from HearthNetwork then.
@usableFromInline package struct TimerHeap<Timer: HeapTimer> {
    @usableFromInline var timers: [Timer] = []

    @inlinable package init() {}

    @inlinable package var count: Int { timers.count }

    @inlinable package var earliestDeadline: UInt64? { timers.first?.deadline }

    @inlinable package mutating func insert(_ timer: Timer) {
        timer.heapIndex = timers.count
        timers.append(timer)
        siftUp(timer.heapIndex)
    }

    /// Harmless when the timer is not in the heap.
    @inlinable package mutating func remove(_ timer: Timer) {
        let index = timer.heapIndex
        guard index >= 0 else { return }
        timer.heapIndex = -1
        let last = timers.removeLast()
        guard index < timers.count else { return }
        put(last, at: index)
        siftUp(index)
        siftDown(last.heapIndex)
    }

    /// Takes the earliest timer if its time has come.
    @inlinable package mutating func popDue(_ now: UInt64) -> Timer? {
        guard let first = timers.first, first.deadline <= now else { return nil }
        remove(first)
        return first
    }

    /// - Returns: what was in the heap, in no order.
    @inlinable @discardableResult package mutating func removeAll() -> [Timer] {
        let removed = timers
        for timer in removed { timer.heapIndex = -1 }
        timers = []
        return removed
    }

    @inlinable mutating func put(_ timer: Timer, at index: Int) {
        timers[index] = timer
        timer.heapIndex = index
    }

    @inlinable mutating func siftUp(_ start: Int) {
        var index = start
        let timer = timers[index]
        while index > 0 {
            let parent = (index - 1) / 2
            guard timer.deadline < timers[parent].deadline else { break }
            put(timers[parent], at: index)
            index = parent
        }
        put(timer, at: index)
    }

    @inlinable mutating func siftDown(_ start: Int) {
        var index = start
        let timer = timers[index]
        while true {
            var child = 2 * index + 1
            guard child < timers.count else { break }
            if child + 1 < timers.count && timers[child + 1].deadline < timers[child].deadline { child += 1 }
            guard timers[child].deadline < timer.deadline else { break }
            put(timers[child], at: index)
            index = child
        }
        put(timer, at: index)
    }
}
