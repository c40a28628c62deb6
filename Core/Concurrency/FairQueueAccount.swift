/// What the connections of one account have queued in a `FairQueue`.
@usableFromInline struct FairQueueAccount<Element> {
    @usableFromInline var connections = SliceOrder()
    @usableFromInline var elements: [UInt64: Queue<(element: Element, cost: Int)>] = [:]
    @usableFromInline var emptyCount = 0
    @usableFromInline var longest = LongestFlows()
    @usableFromInline var count = 0
    @usableFromInline let isAdministrator: Bool

    @inlinable init(isAdministrator: Bool) { self.isAdministrator = isAdministrator }

    @inlinable var visits: Int { longest.visits }

    @inlinable mutating func removeLastOfLongest() -> Element? {
        let connection = longest.first(of: elements.keys.map { ($0, false) }) { elements[$0]?.count ?? 0 }
        guard let connection, let (element, _) = elements[connection]?.popLast() else { return nil }
        count -= 1
        if elements[connection]!.isEmpty { leaveEmpty() }
        return element
    }

    @inlinable mutating func append(_ element: Element, _ connection: UInt64, cost: Int) {
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

    @inlinable mutating func removeAll(of connection: UInt64) -> [Element] {
        guard var waiting = elements[connection], !waiting.isEmpty else { return [] }
        elements[connection] = Queue()
        leaveEmpty()
        count -= waiting.count
        var removed: [Element] = []
        while let (element, _) = waiting.popFirst() { removed.append(element) }
        return removed
    }

    @inlinable mutating func leaveEmpty() {
        emptyCount += 1
        guard emptyCount > emptyFlowsMax, emptyCount > elements.count / 2 else { return }
        elements = elements.filter { !$0.value.isEmpty }
        connections.retain { elements[$0] != nil }
        emptyCount = 0
    }

    @inlinable mutating func removeFirst() -> (Element, Int)? {
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

extension FairQueueAccount: Sendable where Element: Sendable {}
