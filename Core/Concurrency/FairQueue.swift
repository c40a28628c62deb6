import HearthModel

/// A queue that is fair between accounts, and within an account between connections, however much the others have
/// queued.
///
/// Start-time fair queueing: every flow has a virtual time, which grows by the cost of each element that is served. The
/// flow with the smallest time is served next. A flow that becomes active starts at the current virtual time, so that
/// no flow saves up credit; but it does not start before the cost of its last element is paid off. Without that, a flow
/// that sends one small element after the other would always be served before a flow that was served a large element.
/// Adding and taking cost O(log n) in the number of flows.
package struct FairQueue<Element> {
    private var order = SliceOrder<UInt64>()
    /// Accounts with nothing queued stay until their next slice, or until there are too many of them.
    private var accounts: [UInt64: Account<Element>] = [:]
    private var emptyCount = 0
    private var longest = LongestFlows()
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }

    /// - Parameter cost: how much of the shared resource the element uses, in any unit, at least 1. Elements of other
    ///   flows may be served first until those flows have used as much.
    package mutating func append(_ element: Element, for requester: Requester, cost: Int = 1) {
        count += 1
        let number = requester.account
        switch accounts[number]?.count {
        case nil: order.begin(number)
        case 0?: emptyCount -= 1
        default: break
        }
        let isAdministrator = requester.isAdministrator
        accounts[number, default: Account<Element>(isAdministrator: isAdministrator)].append(
            element, requester.connection, cost: max(1, cost))
        if longest.isKept {
            longest.grew(
                number, to: accounts[number]!.count, isAdministrator: accounts[number]!.isAdministrator,
                flowsCount: accounts.count)
        }
    }

    /// The number of elements that an account has queued.
    package func count(of requester: Requester) -> Int { accounts[requester.account]?.count ?? 0 }

    /// Removes the element of the flow that is next.
    package mutating func popFirst() -> Element? {
        while let account = order.takeFirst() {
            guard let (element, cost) = accounts[account]!.removeFirst() else {
                accounts[account] = nil
                emptyCount -= 1
                order.end()
                continue
            }
            count -= 1
            // An account with nothing more is put back as well: what it used still counts when it returns soon.
            order.putBack(account, cost: cost)
            if accounts[account]!.count == 0 { leaveEmpty() }
            return element
        }
        return nil
    }

    /// Removes the newest element of the longest queue: that of the longest connection in the longest account. An
    /// administrator's queue is considered only when all others are empty.
    package mutating func popLastOfLongest() -> Element? {
        let account = longest.first(of: accounts.map { ($0.key, $0.value.isAdministrator) }) {
            accounts[$0]?.count ?? 0
        }
        guard let account, let element = accounts[account]?.removeLastOfLongest() else { return nil }
        count -= 1
        if accounts[account]!.count == 0 { leaveEmpty() }
        return element
    }

    /// Removes everything that one connection has queued, in order.
    package mutating func removeAll(of requester: Requester) -> [Element] {
        guard let removed = accounts[requester.account]?.removeAll(of: requester.connection), !removed.isEmpty else {
            return []
        }
        count -= removed.count
        if accounts[requester.account]!.count == 0 { leaveEmpty() }
        return removed
    }

    /// Removes everything, in the order of service.
    package mutating func removeAll() -> [Element] {
        var all: [Element] = []
        all.reserveCapacity(count)
        while let element = popFirst() { all.append(element) }
        return all
    }

    private mutating func leaveEmpty() {
        emptyCount += 1
        guard emptyCount > emptyFlowsMax, emptyCount > accounts.count / 2 else { return }
        accounts = accounts.filter { $0.value.count > 0 }
        order.retain { accounts[$0] != nil }
        emptyCount = 0
    }

    /// How many heap entries all searches for the longest flow have read together.
    package var visits: Int { longest.visits + accounts.values.reduce(0) { $0 + $1.visits } }
}

extension FairQueue: Sendable where Element: Sendable {}

/// The number of inactive flows that are stored until their next slice.
private let emptyFlowsMax = 64

/// What the connections of one account have queued.
private struct Account<Element> {
    private var connections = SliceOrder<UInt64>()
    private var elements: [UInt64: Queue<(element: Element, cost: Int)>] = [:]
    private var emptyCount = 0
    private var longest = LongestFlows()
    private(set) var count = 0
    let isAdministrator: Bool

    init(isAdministrator: Bool) { self.isAdministrator = isAdministrator }

    var visits: Int { longest.visits }

    mutating func removeLastOfLongest() -> Element? {
        let connection = longest.first(of: elements.keys.map { ($0, false) }) { elements[$0]?.count ?? 0 }
        guard let connection, let (element, _) = elements[connection]?.popLast() else { return nil }
        count -= 1
        if elements[connection]!.isEmpty { leaveEmpty() }
        return element
    }

    mutating func append(_ element: Element, _ connection: UInt64, cost: Int) {
        count += 1
        switch elements[connection]?.isEmpty {
        case nil: connections.begin(connection)
        case true?: emptyCount -= 1
        case false?: break
        }
        elements[connection, default: Queue()].append((element, cost))
        if longest.isKept {
            longest.grew(connection, to: elements[connection]!.count, flowsCount: elements.count)
        }
    }

    mutating func removeAll(of connection: UInt64) -> [Element] {
        guard var waiting = elements[connection], !waiting.isEmpty else { return [] }
        elements[connection] = Queue()
        leaveEmpty()
        count -= waiting.count
        var removed: [Element] = []
        while let (element, _) = waiting.popFirst() { removed.append(element) }
        return removed
    }

    private mutating func leaveEmpty() {
        emptyCount += 1
        guard emptyCount > emptyFlowsMax, emptyCount > elements.count / 2 else { return }
        elements = elements.filter { !$0.value.isEmpty }
        connections.retain { elements[$0] != nil }
        emptyCount = 0
    }

    mutating func removeFirst() -> (Element, Int)? {
        while let connection = connections.takeFirst() {
            guard let (element, cost) = elements[connection]!.popFirst() else {
                elements[connection] = nil
                emptyCount -= 1
                connections.end()
                continue
            }
            count -= 1
            connections.putBack(connection, cost: cost)
            if elements[connection]!.isEmpty { leaveEmpty() }
            return (element, cost)
        }
        return nil
    }
}

extension Account: Sendable where Element: Sendable {}

/// The order of service: a heap of flows by virtual time. Of two flows with the same time, the one that was added first
/// comes first.
private struct SliceOrder<Flow: Hashable & Sendable>: Sendable {
    private struct Entry {
        var time: UInt64
        var number: UInt64
        var flow: Flow
    }

    private var heap: [Entry] = []
    /// The virtual time of the flow that was served last.
    private var now: UInt64 = 0
    private var numbers: UInt64 = 0
    private var served: (flow: Flow, time: UInt64)?

    mutating func begin(_ flow: Flow) { insert(flow, at: now) }

    /// Removes the next flow. `putBack` or `end` must follow.
    mutating func takeFirst() -> Flow? {
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
    mutating func putBack(_ flow: Flow, cost: Int) {
        insert(flow, at: (served?.time ?? now) + UInt64(cost))
        served = nil
    }

    /// The removed flow has nothing more to do.
    mutating func end() { served = nil }

    /// Removes the flows that are no longer active.
    mutating func retain(_ isKept: (Flow) -> Bool) {
        // A sorted array is a valid heap.
        heap = heap.filter { isKept($0.flow) }.sorted(by: isBefore)
    }

    private mutating func insert(_ flow: Flow, at time: UInt64) {
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
