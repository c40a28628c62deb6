/// Finds the longest flow when the capacity is used up. The heap exists only after the first request for it.
///
/// A flow that grows is added again with its new length. The entry of a flow that shrinks is corrected when it reaches
/// the top. A request costs O(log n) in the number of flows on average, and queues that never ask pay nothing.
@usableFromInline struct LongestFlows: Sendable {
    private struct Entry {
        var isAdministrator: Bool
        var length: Int
        var flow: UInt64

        /// Administrators come last.
        func isBefore(_ other: Entry) -> Bool {
            if isAdministrator != other.isAdministrator { return other.isAdministrator }
            return length != other.length ? length > other.length : flow > other.flow
        }
    }

    private var heap: [Entry] = []
    @usableFromInline private(set) var isKept = false
    /// The number of entries that were read so far.
    @usableFromInline private(set) var visits = 0

    @usableFromInline init() {}

    private static let spareEntries = 64

    /// Records that a flow has grown.
    /// - Parameter flowsCount: the number of flows.
    @usableFromInline mutating func grew(_ flow: UInt64, to length: Int, isAdministrator: Bool = false, flowsCount: Int)
    {
        guard isKept else { return }
        if heap.count > 2 * flowsCount + Self.spareEntries {
            // Most entries are outdated. The next request builds the heap again.
            heap = []
            isKept = false
            return
        }
        heap.append(Entry(isAdministrator: isAdministrator, length: length, flow: flow))
        siftUp(from: heap.count - 1)
    }

    /// The longest flow, clients before administrators; nil when all are empty.
    /// - Parameters:
    ///   - flows: all flows, to build the heap when it does not exist yet.
    ///   - length: the current length of a flow.
    @usableFromInline mutating func first(
        of flows: @autoclosure () -> [(flow: UInt64, isAdministrator: Bool)], length: (UInt64) -> Int
    ) -> UInt64? {
        if !isKept {
            isKept = true
            heap = flows().map { Entry(isAdministrator: $0.isAdministrator, length: length($0.flow), flow: $0.flow) }
            visits += heap.count
            for index in stride(from: heap.count / 2 - 1, through: 0, by: -1) { siftDown(from: index) }
        }
        while let top = heap.first {
            let present = length(top.flow)
            if present > 0, present == top.length { return top.flow }
            if present > 0 {
                heap[0].length = min(present, top.length)
            } else {
                let last = heap.removeLast()
                if !heap.isEmpty { heap[0] = last }
            }
            siftDown(from: 0)
        }
        return nil
    }

    private mutating func siftUp(from index: Int) {
        var child = index
        while child > 0 {
            let parent = (child - 1) / 2
            visits += 1
            if !heap[child].isBefore(heap[parent]) { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    private mutating func siftDown(from index: Int) {
        var parent = index
        while true {
            var first = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
                visits += 1
                if heap[child].isBefore(heap[first]) { first = child }
            }
            if first == parent { return }
            heap.swapAt(parent, first)
            parent = first
        }
    }
}
