/// Which flow has most waiting, asked for when there is no room for more: a heap that is only kept once somebody asks.
///
/// A flow that grows is put in again with its new length; one that shrinks keeps its entry, which is set right when it comes
/// to the top. So asking costs the logarithm of the number of flows on the average, and who never asks pays nothing.
struct LongestFlows: Sendable {
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
    private(set) var isKept = false
    /// How many entries were looked at so far.
    private(set) var visits = 0

    private static let spareEntries = 64

    /// A flow is longer than before.
    /// - Parameter flowsCount: how many there are.
    mutating func grew(_ flow: UInt64, to length: Int, isAdministrator: Bool = false, flowsCount: Int) {
        guard isKept else { return }
        if heap.count > 2 * flowsCount + Self.spareEntries {
            // Most of it is of the past. The next one who asks has it made anew.
            heap = []
            isKept = false
            return
        }
        heap.append(Entry(isAdministrator: isAdministrator, length: length, flow: flow))
        siftUp(from: heap.count - 1)
    }

    /// The longest flow, clients before administrators; nil when all are empty.
    /// - Parameters:
    ///   - flows: all that there are, for a heap that is not kept yet.
    ///   - length: of a flow, now.
    mutating func first(
        of flows: @autoclosure () -> [(flow: UInt64, isAdministrator: Bool)], length: (UInt64) -> Int
    ) -> UInt64? {
        if !isKept {
            isKept = true
            heap = flows().map { Entry(isAdministrator: $0.isAdministrator, length: length($0.flow), flow: $0.flow) }
            visits += heap.count
            for place in stride(from: heap.count / 2 - 1, through: 0, by: -1) { siftDown(from: place) }
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

    private mutating func siftUp(from place: Int) {
        var child = place
        while child > 0 {
            let parent = (child - 1) / 2
            visits += 1
            if !heap[child].isBefore(heap[parent]) { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    private mutating func siftDown(from place: Int) {
        var parent = place
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
