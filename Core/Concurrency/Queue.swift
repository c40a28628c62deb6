/// First in, first out; both ends in constant time.
@usableFromInline package struct Queue<Element> {
    @usableFromInline var elements: [Element?] = []
    @usableFromInline var head = 0

    @inlinable package init() {}

    @inlinable package var isEmpty: Bool { head == elements.count }
    @inlinable package var count: Int { elements.count - head }

    @inlinable package var first: Element? { head < elements.count ? elements[head] : nil }

    @inlinable package mutating func append(_ element: Element) { elements.append(element) }

    /// Calls `body` with each element, in order.
    @inlinable package func forEach(_ body: (Element) -> Void) {
        for element in elements[head...] {
            if let element { body(element) }
        }
    }

    /// Adds an element at the front.
    @inlinable package mutating func prepend(_ element: Element) {
        if head > 0 {
            head -= 1
            elements[head] = element
        } else {
            elements.insert(element, at: 0)
        }
    }

    @inlinable package mutating func popLast() -> Element? {
        guard head < elements.count else { return nil }
        return elements.removeLast()
    }

    /// Removes the elements for which `isKept` returns false.
    @inlinable package mutating func retain(_ isKept: (Element) -> Bool) {
        elements = elements[head...].filter { $0.map(isKept) ?? false }
        head = 0
    }

    @inlinable package mutating func popFirst() -> Element? {
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
