import HearthModel

/// Ranges of keys with something attached, among which those that hold a key are found without looking at the others.
///
/// The ranges lie sorted by their lower ends, as a balanced tree whose nodes know the greatest upper end beneath them. What
/// came since the tree was built is looked through one by one, until that is worth building it anew.
package struct IntervalIndex<Element: AnyObject> {
    private struct Interval {
        var range: KeyRange
        var element: Element
    }

    private var sorted: [Interval] = []
    /// By position of a node: the greatest upper end of its subtree; nil for none.
    private var greatest: [[UInt8]?] = []
    private var recent: [Interval] = []
    private var removed: Set<ObjectIdentifier> = []

    package private(set) var count = 0

    package init() {}

    /// An element has one range at most.
    package mutating func insert(_ element: Element, _ range: KeyRange) {
        // One that was removed may still lie in the tree, with another range.
        if removed.contains(ObjectIdentifier(element)) { rebuild() }
        recent.append(Interval(range: range, element: element))
        count += 1
        if recent.count > 32 + sorted.count / 8 { rebuild() }
    }

    package mutating func remove(_ element: Element) {
        if let place = recent.firstIndex(where: { $0.element === element }) {
            recent.remove(at: place)
        } else {
            removed.insert(ObjectIdentifier(element))
            if removed.count > 32 + sorted.count / 8 { rebuild() }
        }
        count -= 1
    }

    private mutating func rebuild() {
        sorted = sorted.filter { !removed.contains(ObjectIdentifier($0.element)) } + recent
        sorted.sort { UTF8Order.compare($0.range.lower, $1.range.lower) < 0 }
        recent = []
        removed = []
        greatest = Array(repeating: [], count: sorted.count)
        _ = measure(0, sorted.count)
    }

    /// - Returns: the greatest upper end of a part of the tree; empty for an empty part.
    private mutating func measure(_ low: Int, _ high: Int) -> [UInt8]? {
        if low >= high { return [] }
        let middle = (low + high) / 2
        let left = measure(low, middle)
        let right = measure(middle + 1, high)
        greatest[middle] = ValueRanges.greater(ValueRanges.greater(left, right), sorted[middle].range.upper)
        return greatest[middle]
    }

    /// Calls `body` for each element whose range holds a key.
    package func forEach(containing key: [UInt8], _ body: (Element) -> Void) {
        for interval in recent where interval.range.contains(key) { body(interval.element) }
        visit(key, 0, sorted.count, body)
    }

    private func visit(_ key: [UInt8], _ low: Int, _ high: Int, _ body: (Element) -> Void) {
        if low >= high { return }
        let middle = (low + high) / 2
        if let greatest = greatest[middle], UTF8Order.compare(greatest, key) <= 0 { return }
        visit(key, low, middle, body)
        let interval = sorted[middle]
        if UTF8Order.compare(interval.range.lower, key) > 0 { return }
        if interval.range.contains(key), !removed.contains(ObjectIdentifier(interval.element)) {
            body(interval.element)
        }
        visit(key, middle + 1, high, body)
    }
}
