/// What is to happen at a later time, ordered by that time. Pure: the time comes in as a parameter.
struct TimerQueue {
    typealias Identifier = UInt64

    private struct Entry {
        var time: UInt64
        var identifier: Identifier
    }

    /// A binary heap, the earliest first. Cancelled entries stay until their turn, or until they outnumber the others.
    private var heap: [Entry] = []
    private var actions: [Identifier: () -> Void] = [:]
    private var nextIdentifier: Identifier = 1

    var count: Int { actions.count }

    mutating func schedule(atNanoseconds time: UInt64, _ action: @escaping () -> Void) -> Identifier {
        let identifier = nextIdentifier
        nextIdentifier += 1
        actions[identifier] = action
        heap.append(Entry(time: time, identifier: identifier))
        siftUp(heap.count - 1)
        return identifier
    }

    mutating func cancel(_ identifier: Identifier) {
        guard actions.removeValue(forKey: identifier) != nil else { return }
        if heap.count > 64, heap.count > actions.count * 2 { sweep() }
    }

    /// The earliest time at which something is to happen.
    mutating func earliest() -> UInt64? {
        while let first = heap.first {
            if actions[first.identifier] != nil { return first.time }
            removeFirst()
        }
        return nil
    }

    /// Takes the next action whose time has come.
    mutating func takeDue(nowNanoseconds now: UInt64) -> (() -> Void)? {
        guard let time = earliest(), time <= now, let first = heap.first else { return nil }
        removeFirst()
        return actions.removeValue(forKey: first.identifier)
    }

    private mutating func sweep() {
        heap = heap.filter { actions[$0.identifier] != nil }.sorted { $0.time < $1.time }
    }

    private mutating func removeFirst() {
        let last = heap.removeLast()
        guard !heap.isEmpty else { return }
        heap[0] = last
        siftDown()
    }

    private mutating func siftUp(_ start: Int) {
        var child = start
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].time < heap[parent].time else { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    private mutating func siftDown() {
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
                if heap[child].time < heap[least].time { least = child }
            }
            guard least != parent else { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
