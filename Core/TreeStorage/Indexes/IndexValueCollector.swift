import HearthModel
import HearthTree

/// Collects the order values of a node's children, and no other data, from a walk over the node.
struct IndexValueCollector: SubtreeVisitor {
    private let query: TreeQuery
    private let keysMax: Int
    /// The path from a child to its order value.
    private let inside: [TreeKey]
    private(set) var found: [(key: TreeKey, value: TreeIndexValue)] = []

    /// Of the open node: 0 for the node itself, 1 for its children. Below 0 no node is open.
    private var depth = -1
    /// The number of keys of `inside` that match the open nodes.
    private var matched = 0
    private var child: (key: TreeKey, value: TreeIndexValue)?

    init(_ query: TreeQuery, keysMax: Int) {
        self.query = query
        self.keysMax = keysMax
        if case .child(let path) = query.index { inside = path.keys } else { inside = [] }
    }

    mutating func open(_ key: TreeKey?, priority: Scalar?) {
        depth += 1
        guard let key, depth > 0 else { return }
        if depth == 1 {
            matched = 0
            child = (key, value(ofChild: .inner, priority))
        } else if isNext(key, at: depth) {
            matched += 1
            if matched == inside.count { child?.value = .inner }
        }
    }

    mutating func leaf(_ key: TreeKey?, _ value: Scalar, priority: Scalar?) throws(Status) {
        guard let key, depth >= 0 else { return }
        if depth == 0 {
            try add((key, self.value(ofChild: .scalar(value), priority)))
        } else if matched + 1 == inside.count, isNext(key, at: depth + 1) {
            child?.value = .scalar(value)
        }
    }

    mutating func close() throws(Status) {
        if depth == 1, let child {
            try add(child)
        } else if depth > 1, depth - 1 == matched {
            matched -= 1
        }
        depth -= 1
    }

    private func isNext(_ key: TreeKey, at depth: Int) -> Bool {
        matched < inside.count && depth == matched + 2 && inside[matched] == key
    }

    private func value(ofChild content: TreeIndexValue, _ priority: Scalar?) -> TreeIndexValue {
        switch query.index {
        case .key: .null
        case .priority: TreeIndexValue(priority)
        case .value: content
        case .child: inside.isEmpty ? content : .null
        }
    }

    private mutating func add(_ child: (key: TreeKey, value: TreeIndexValue)) throws(Status) {
        guard query.contains(child.key, value: child.value) else { return }
        if let limit = query.limit, found.count >= max(2 * min(limit, keysMax), Self.keptMin) { _ = window() }
        if found.count >= keysMax { throw SubtreeWalk.tooLarge }
        found.append(child)
    }

    /// Fewer children are not sorted before the end.
    private static let keptMin = 1000

    /// The window of the query among the children so far, in the order of its index; the others are dropped.
    mutating func window() -> [(key: TreeKey, value: TreeIndexValue)] {
        if query.index != .key {
            found.sort {
                let order = TreeIndexValue.compare($0.value, $1.value)
                return order != 0 ? order < 0 : $0.key < $1.key
            }
        }
        if let limit = query.limit, found.count > limit {
            if query.isLimitedToLast { found.removeFirst(found.count - limit) } else { found.removeSubrange(limit...) }
        }
        return found
    }
}
