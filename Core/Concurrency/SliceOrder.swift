/// The order of service of a `FairQueue`: a heap of flows by virtual time. Of two flows with the same time, the one that was added first
/// comes first.
@usableFromInline struct SliceOrder: Sendable {
    private struct Entry {
        var time: UInt64
        var number: UInt64
        var flow: UInt64
    }

    private var heap: [Entry] = []
    /// The virtual time of the flow that was served last.
    private var now: UInt64 = 0
    private var numbers: UInt64 = 0
    private var served: (flow: UInt64, time: UInt64)?

    @usableFromInline init() {}

    @usableFromInline mutating func begin(_ flow: UInt64) { insert(flow, at: now) }

    /// Removes the next flow. `putBack` or `end` must follow.
    @usableFromInline mutating func takeFirst() -> UInt64? {
        guard let first = heap.first else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            siftDown()
        }
        now = max(now, first.time)
        served = (first.flow, first.time)
        return first.flow
    }

    /// The removed flow has more to do.
    @usableFromInline mutating func putBack(_ flow: UInt64, cost: Int) {
        insert(flow, at: (served?.time ?? now) + UInt64(cost))
        served = nil
    }

    /// The removed flow has nothing more to do.
    @usableFromInline mutating func end() { served = nil }

    /// Removes the flows that are no longer active.
    @usableFromInline mutating func retain(_ isKept: (UInt64) -> Bool) {
        // A sorted array is a valid heap.
        heap = heap.filter { isKept($0.flow) }.sorted(by: isBefore)
    }

    private mutating func insert(_ flow: UInt64, at time: UInt64) {
        numbers += 1
        heap.append(Entry(time: time, number: numbers, flow: flow))
        siftUp(from: heap.count - 1)
    }

    private mutating func siftUp(from index: Int) {
        var child = index
        while child > 0 {
            let parent = (child - 1) / 2
            if !isBefore(heap[child], heap[parent]) { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    private mutating func siftDown(from index: Int = 0) {
        var parent = index
        while true {
            var first = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && isBefore(heap[child], heap[first])
            {
                first = child
            }
            if first == parent { return }
            heap.swapAt(parent, first)
            parent = first
        }
    }

    private func isBefore(_ lhs: Entry, _ rhs: Entry) -> Bool {
        lhs.time != rhs.time ? lhs.time < rhs.time : lhs.number < rhs.number
    }
}
