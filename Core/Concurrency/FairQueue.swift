import HearthModel

/// A queue that gives each account its turn, and within an account each connection, however much the others have queued.
///
/// Fair queueing by start time: every flow has a virtual time, which what it was given moves on; the flow with the
/// smallest is served. A flow that had nothing to do begins at the present virtual time, so that nobody saves up.
/// Adding and taking cost the logarithm of the number of flows.
package struct FairQueue<Element> {
    private var order = TurnOrder<UInt64>()
    private var accounts: [UInt64: Account<Element>] = [:]
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }

    /// - Parameter cost: what the element takes of what is shared, in any unit, at least 1; elements of other flows may
    ///   come first until they have been given as much.
    package mutating func append(_ element: Element, for requester: Requester, cost: Int = 1) {
        count += 1
        let isNew = accounts[requester.account] == nil
        if isNew { order.begin(requester.account) }
        accounts[requester.account, default: Account<Element>(isAdministrator: requester.isAdministrator)].append(
            element, requester.connection, cost: max(1, cost))
    }

    /// How much an account has waiting here.
    package func count(of requester: Requester) -> Int { accounts[requester.account]?.count ?? 0 }

    /// The element whose turn it is.
    package mutating func popFirst() -> Element? {
        guard let account = order.takeFirst() else { return nil }
        count -= 1
        let (element, cost) = accounts[account]!.removeFirst()
        if accounts[account]!.count == 0 {
            accounts[account] = nil
            order.end(account, cost: cost)
        } else {
            order.putBack(account, cost: cost)
        }
        return element
    }

    /// Takes out the newest element of the longest queue: that of the connection which has most in the account which has
    /// most. An administrator's queue is only looked at when nobody else has any.
    package mutating func popLastOfLongest() -> Element? {
        let clients = accounts.filter { !$0.value.isAdministrator }
        let longest = (clients.isEmpty ? accounts : clients).max { ($0.value.count, $0.key) < ($1.value.count, $1.key) }
        guard let account = longest?.key else { return nil }
        count -= 1
        let element = accounts[account]!.removeLastOfLongest()
        if accounts[account]!.count == 0 {
            accounts[account] = nil
            order.remove(account)
        }
        return element
    }

    /// Takes out what one connection has waiting, in its order.
    package mutating func removeAll(of requester: Requester) -> [Element] {
        guard let removed = accounts[requester.account]?.removeAll(of: requester.connection) else { return [] }
        count -= removed.count
        if accounts[requester.account]?.count == 0 {
            accounts[requester.account] = nil
            order.remove(requester.account)
        }
        return removed
    }

    /// Everything, in the order of turns.
    package mutating func removeAll() -> [Element] {
        var all: [Element] = []
        all.reserveCapacity(count)
        while let element = popFirst() { all.append(element) }
        return all
    }
}

extension FairQueue: Sendable where Element: Sendable {}

/// What the connections of one account have queued.
private struct Account<Element> {
    private var connections = TurnOrder<UInt64>()
    private var elements: [UInt64: Queue<(element: Element, cost: Int)>] = [:]
    private(set) var count = 0
    let isAdministrator: Bool

    init(isAdministrator: Bool) { self.isAdministrator = isAdministrator }

    mutating func removeLastOfLongest() -> Element {
        let connection = elements.max { ($0.value.count, $0.key) < ($1.value.count, $1.key) }!.key
        count -= 1
        let (element, _) = elements[connection]!.popLast()!
        if elements[connection]!.isEmpty {
            elements[connection] = nil
            connections.remove(connection)
        }
        return element
    }

    mutating func append(_ element: Element, _ connection: UInt64, cost: Int) {
        count += 1
        if elements[connection] == nil { connections.begin(connection) }
        elements[connection, default: Queue()].append((element, cost))
    }

    mutating func removeAll(of connection: UInt64) -> [Element] {
        guard var waiting = elements.removeValue(forKey: connection) else { return [] }
        connections.remove(connection)
        count -= waiting.count
        var removed: [Element] = []
        while let (element, _) = waiting.popFirst() { removed.append(element) }
        return removed
    }

    mutating func removeFirst() -> (Element, Int) {
        let connection = connections.takeFirst()!
        count -= 1
        let (element, cost) = elements[connection]!.popFirst()!
        if elements[connection]!.isEmpty {
            elements[connection] = nil
            connections.end(connection, cost: cost)
        } else {
            connections.putBack(connection, cost: cost)
        }
        return (element, cost)
    }
}

extension Account: Sendable where Element: Sendable {}

/// Whose turn it is: a heap of flows by virtual time; of two at one time the one that came first.
private struct TurnOrder<Flow: Hashable & Sendable>: Sendable {
    private struct Entry {
        var time: UInt64
        var number: UInt64
        var flow: Flow
    }

    private var heap: [Entry] = []
    /// The time of the flow that was served last.
    private var now: UInt64 = 0
    private var numbers: UInt64 = 0
    private var served: (flow: Flow, time: UInt64)?

    mutating func begin(_ flow: Flow) { insert(flow, at: now) }

    /// The flow whose turn it is, taken out: `putBack` or `end` follows.
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

    /// The flow that was taken has more to do.
    mutating func putBack(_ flow: Flow, cost: Int) {
        insert(flow, at: (served?.time ?? now) + UInt64(cost))
        served = nil
    }

    /// The flow that was taken has nothing more to do.
    mutating func end(_ flow: Flow, cost: Int) { served = nil }

    /// The flow has nothing to do any more, without having been served.
    mutating func remove(_ flow: Flow) {
        guard let place = heap.firstIndex(where: { $0.flow == flow }) else { return }
        let last = heap.removeLast()
        guard place < heap.count else { return }
        heap[place] = last
        siftUp(from: place)
        siftDown(from: place)
    }

    private mutating func insert(_ flow: Flow, at time: UInt64) {
        numbers += 1
        heap.append(Entry(time: time, number: numbers, flow: flow))
        siftUp(from: heap.count - 1)
    }

    private mutating func siftUp(from place: Int) {
        var child = place
        while child > 0 {
            let parent = (child - 1) / 2
            if !isBefore(heap[child], heap[parent]) { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    private mutating func siftDown(from place: Int = 0) {
        var parent = place
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

/// First in, first out; both ends in constant time.
package struct Queue<Element> {
    private var elements: [Element?] = []
    private var head = 0

    package init() {}

    package var isEmpty: Bool { head == elements.count }
    package var count: Int { elements.count - head }

    package var first: Element? { head < elements.count ? elements[head] : nil }

    package mutating func append(_ element: Element) { elements.append(element) }

    /// In their order.
    package func forEach(_ body: (Element) -> Void) {
        for element in elements[head...] {
            if let element { body(element) }
        }
    }

    /// Puts an element before all others.
    package mutating func prepend(_ element: Element) {
        if head > 0 {
            head -= 1
            elements[head] = element
        } else {
            elements.insert(element, at: 0)
        }
    }

    package mutating func popLast() -> Element? {
        guard head < elements.count else { return nil }
        return elements.removeLast()
    }

    /// Removes what `isKept` doesn't want.
    package mutating func retain(_ isKept: (Element) -> Bool) {
        elements = elements[head...].filter { $0.map(isKept) ?? false }
        head = 0
    }

    package mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        defer {
            head += 1
            if head == elements.count {
                elements.removeAll(keepingCapacity: head <= 64)
                head = 0
            } else if head >= 64, head * 2 >= elements.count {
                elements.removeFirst(head)
                head = 0
            }
        }
        defer { elements[head] = nil }
        return elements[head]
    }
}

extension Queue: Sendable where Element: Sendable {}
