import HearthModel

/// Ranges of keys with attached elements. It finds the ranges that contain a key without examining the others.
///
/// The ranges are in trees of sizes that double, each sorted by lower ends as a balanced tree whose nodes store the
/// greatest upper end beneath them. A few new ranges are examined one by one; when they are enough for a tree they are
/// joined with the small trees into the next larger one. So inserting n ranges costs n log² n, and a look-up log² n and
/// the ranges that it finds.
@usableFromInline package struct IntervalIndex<Element: AnyObject> {
    @usableFromInline struct Interval {
        @usableFromInline var range: KeyRange
        @usableFromInline var element: Element

        @inlinable init(range: KeyRange, element: Element) {
            self.range = range
            self.element = element
        }
    }

    @usableFromInline struct Tree {
        @usableFromInline var sorted: [Interval]
        /// By position of a node: the greatest upper end of its subtree; nil for none.
        @usableFromInline var greatest: [[UInt8]?]

        @inlinable init(_ intervals: [Interval]) {
            sorted = intervals.sorted { UTF8Order.compare($0.range.lower, $1.range.lower) < 0 }
            greatest = Array(repeating: [], count: sorted.count)
            _ = measure(0, sorted.count)
        }

        /// - Returns: the greatest upper end of a part of the tree; empty for an empty part.
        @inlinable mutating func measure(_ low: Int, _ high: Int) -> [UInt8]? {
            if low >= high { return [] }
            let middle = (low + high) / 2
            let left = measure(low, middle)
            let right = measure(middle + 1, high)
            greatest[middle] = Self.greater(Self.greater(left, right), sorted[middle].range.upper)
            return greatest[middle]
        }

        /// The greater of two upper ends; nil is the greatest.
        @inlinable static func greater(_ one: [UInt8]?, _ other: [UInt8]?) -> [UInt8]? {
            guard let one, let other else { return nil }
            return UTF8Order.compare(one, other) < 0 ? other : one
        }

        /// - Returns: whether the body stopped the walk.
        @inlinable func visit(
            _ probe: Probe, _ low: Int, _ high: Int, _ visited: inout Int, _ body: (Element) -> Bool
        ) -> Bool {
            if low >= high { return false }
            let middle = (low + high) / 2
            visited += 1
            if probe.isBehind(greatest[middle]) { return false }
            if visit(probe, low, middle, &visited, body) { return true }
            let interval = sorted[middle]
            if probe.isBefore(interval.range.lower) { return false }
            if !probe.isBehind(interval.range.upper), body(interval.element) { return true }
            return visit(probe, middle + 1, high, &visited, body)
        }
    }

    /// A key, or a range of keys, for which ranges are looked up.
    @usableFromInline enum Probe {
        case key([UInt8])
        case range(KeyRange)

        /// Whether all of it is at or after an upper end.
        @inlinable func isBehind(_ upper: [UInt8]?) -> Bool {
            guard let upper else { return false }
            switch self {
            case .key(let key): return UTF8Order.compare(upper, key) <= 0
            case .range(let range): return UTF8Order.compare(upper, range.lower) <= 0
            }
        }

        /// Whether all of it is before a lower end.
        @inlinable func isBefore(_ lower: [UInt8]) -> Bool {
            switch self {
            case .key(let key): UTF8Order.compare(lower, key) > 0
            case .range(let range): range.upper.map { UTF8Order.compare(lower, $0) >= 0 } ?? false
            }
        }

        @inlinable func meets(_ range: KeyRange) -> Bool { !isBefore(range.lower) && !isBehind(range.upper) }
    }

    @inlinable static var recentMax: Int { 16 }

    /// At each level a tree of at most `recentMax << level` ranges, or none.
    @usableFromInline var trees: [Tree?] = []
    @usableFromInline var recent: [Interval] = []
    /// Elements whose ranges are still in a tree.
    @usableFromInline var removed: Set<ObjectIdentifier> = []

    @usableFromInline package internal(set) var count = 0

    @inlinable package init() {}

    /// An element has at most one range.
    @inlinable package mutating func insert(_ element: Element, _ range: KeyRange) {
        // A removed one may still be in a tree, with another range.
        if removed.contains(ObjectIdentifier(element)) { rebuild() }
        recent.append(Interval(range: range, element: element))
        count += 1
        if recent.count >= Self.recentMax { carry() }
    }

    @inlinable package mutating func remove(_ element: Element) {
        if let position = recent.firstIndex(where: { $0.element === element }) {
            recent.remove(at: position)
        } else {
            removed.insert(ObjectIdentifier(element))
            if removed.count > 2 * Self.recentMax + count { rebuild() }
        }
        count -= 1
    }

    /// Joins the new ranges with all trees up to the first free level.
    @inlinable mutating func carry() {
        var intervals = recent
        recent = []
        var level = 0
        while level < trees.count, let tree = trees[level] {
            intervals += tree.sorted
            trees[level] = nil
            level += 1
        }
        if level == trees.count { trees.append(nil) }
        trees[level] = Tree(withoutRemoved(intervals))
    }

    @inlinable mutating func rebuild() {
        let intervals = withoutRemoved(trees.flatMap { $0?.sorted ?? [] }) + recent
        recent = []
        var level = 0
        while Self.recentMax << level < intervals.count { level += 1 }
        trees = Array(repeating: nil, count: level)
        trees.append(Tree(intervals))
    }

    @inlinable mutating func withoutRemoved(_ intervals: [Interval]) -> [Interval] {
        if removed.isEmpty { return intervals }
        return intervals.filter { removed.remove(ObjectIdentifier($0.element)) == nil }
    }

    /// Calls `body` for each element whose range contains a key.
    /// - Returns: how many nodes were visited.
    @discardableResult
    @inlinable package func forEach(containing key: [UInt8], _ body: (Element) -> Void) -> Int {
        var visited = 0
        _ = visit(.key(key), &visited) { element in
            body(element)
            return false
        }
        return visited
    }

    /// Whether an element has a range that contains a key.
    @inlinable package func holds(_ key: [UInt8]) -> Bool {
        var visited = 0
        return visit(.key(key), &visited) { _ in true }
    }

    /// Calls `body` with the elements whose ranges overlap a range until it returns true.
    /// - Returns: how many nodes were visited.
    @inlinable package func visit(_ range: KeyRange, _ body: (Element) -> Bool) -> Int {
        var visited = 0
        if !range.isEmpty { _ = visit(.range(range), &visited, body) }
        return visited
    }

    @inlinable func visit(_ probe: Probe, _ visited: inout Int, _ body: (Element) -> Bool) -> Bool {
        for interval in recent {
            visited += 1
            if probe.meets(interval.range), body(interval.element) { return true }
        }
        for case let tree? in trees {
            let isOver = tree.visit(probe, 0, tree.sorted.count, &visited) { element in
                removed.contains(ObjectIdentifier(element)) ? false : body(element)
            }
            if isOver { return true }
        }
        return false
    }
}
