/// The children in a query's window. Source: the public SDKs.
extension TreeQuery {
    package func indexValue(of child: Node) -> TreeIndexValue { index.value(of: child) }

    /// The order of the children by the index.
    package func compare(_ lhs: (key: TreeKey, node: Node), _ rhs: (key: TreeKey, node: Node)) -> Int {
        index.compare(lhs, rhs)
    }

    /// Whether a child is within the bounds. The limit is not applied: it depends on the other children.
    package func contains(_ key: TreeKey, _ child: Node) -> Bool {
        contains(key, value: index.value(of: child))
    }

    package func contains(_ key: TreeKey, value: TreeIndexValue) -> Bool {
        if let start {
            let order = compare(key, value, to: start)
            if order < 0 || order == 0 && !start.isInclusive { return false }
        }
        if let end {
            let order = compare(key, value, to: end)
            if order > 0 || order == 0 && !end.isInclusive { return false }
        }
        return true
    }

    private func compare(_ key: TreeKey, _ value: TreeIndexValue, to bound: Bound) -> Int {
        if index != .key {
            let order = TreeIndexValue.compare(value, TreeIndexValue(bound.value))
            if order != 0 { return order }
        }
        switch bound.key {
        case .min: return 1
        case .max: return -1
        case .key(let other): return TreeKey.compare(key, other)
        }
    }

    /// The children of the window, in the order of the index.
    package func orderedChildren(of node: Node) -> [(key: TreeKey, node: Node)] {
        index == .key ? window(inOrderOfKeys: node.children) : window(sorting: node.children)
    }

    /// The window as a node. The whole node for a query without bounds and limit; otherwise children alone: a leaf has
    /// none, and the priority isn't part of a window.
    package func result(of node: Node) -> Node {
        isUnfiltered ? node : Node(children: orderedChildren(of: node).map { ($0.key, $0.node) })
    }

    private func window(inOrderOfKeys children: Children) -> [(key: TreeKey, node: Node)] {
        var low = start.map { position(of: $0, in: children, isEnd: false) } ?? 0
        var high = max(end.map { position(of: $0, in: children, isEnd: true) } ?? children.count, low)
        if let limit, high - low > limit {
            if isLimitedToLast { low = high - limit } else { high = low + limit }
        }
        return Array(children[low..<high])
    }

    /// The index of the first child within the start, or of the first beyond the end.
    private func position(of bound: Bound, in children: Children, isEnd: Bool) -> Int {
        switch bound.key {
        case .min: return 0
        case .max: return children.count
        case .key(let key):
            let position = children.position(of: key)
            let isThere = position < children.count && children[position].key == key
            return isThere && bound.isInclusive == isEnd ? position + 1 : position
        }
    }

    private func window(sorting children: Children) -> [(key: TreeKey, node: Node)] {
        var candidates: [(value: TreeIndexValue, key: TreeKey, node: Node)] = []
        var isSorted = true
        for (key, node) in children {
            let value = index.value(of: node)
            guard contains(key, value: value) else { continue }
            // The keys ascend: equal values are in order already.
            if let last = candidates.last, TreeIndexValue.compare(last.value, value) > 0 { isSorted = false }
            candidates.append((value, key, node))
        }
        if !isSorted {
            candidates.sort {
                let order = TreeIndexValue.compare($0.value, $1.value)
                return order != 0 ? order < 0 : $0.key < $1.key
            }
        }
        let window = limit.map { isLimitedToLast ? candidates.suffix($0) : candidates.prefix($0) } ?? candidates[...]
        return window.map { ($0.key, $0.node) }
    }
}
