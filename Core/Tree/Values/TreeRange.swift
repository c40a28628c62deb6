/// A part of a tree that is replaced: all leaves behind one path up to another. Source: the range merges (`rm`) of the
/// public SDKs.
///
/// The data below `start` is behind it, and the data below `end` is behind that: of a node at `end` only a leaf belongs
/// to the range. Priorities of inner nodes are leaves `.priority`, as in `CompoundHash`.
package struct TreeRange: Equatable, Sendable {
    /// Exclusive; nil: from the beginning.
    package let start: TreePath?
    /// Inclusive; nil: to the end.
    package let end: TreePath?
    /// The present data of the range.
    package let node: Node

    package init(start: TreePath?, end: TreePath?, node: Node) {
        self.start = start
        self.end = end
        self.node = node
    }

    /// The data of `node` in a range. The range may become larger: a priority cannot be sent for a node without a leaf
    /// in the range.
    init(of node: Node, after start: TreePath?, through end: TreePath?) {
        var bounds = Bounds(start: start, end: end)
        bounds.widen(for: node)
        self.init(start: bounds.start, end: bounds.end, node: bounds.part(of: node))
    }

    /// `old` with this range replaced.
    package func applied(to old: Node) -> Node {
        Bounds(start: start, end: end).replace(in: old, by: node, at: [])
    }
}

extension TreeRange {
    /// One element of the list in a push `rm`.
    package init(_ string: [UInt8], in range: Range<Int>? = nil, limits: TreeLimits = .standard) throws(TreeDataError) {
        var start: TreePath?
        var end: TreePath?
        var node = Node.empty
        for (name, slice) in try TreeJSON.members(string, in: range) {
            switch TreeKey(name) {
            case "s": start = TreePath(try Self.path(string, slice))
            case "e": end = TreePath(try Self.path(string, slice))
            case "m": node = try TreeJSON.node(string, in: slice, limits: limits)
            default: break
            }
        }
        self.init(start: start, end: end, node: node)
    }

    private static func path(_ string: [UInt8], _ slice: Range<Int>) throws(TreeDataError) -> String {
        guard case .string(let path) = try TreeJSON.value(string, in: slice) else {
            throw TreeDataError("Invalid range: it needs paths s and e")
        }
        return path
    }

    package func append(to string: inout [UInt8]) {
        string.append(UInt8(ascii: "{"))
        for (name, path) in [("s", start), ("e", end)] {
            guard let path else { continue }
            TreeJSON.appendString(name, to: &string)
            string.append(UInt8(ascii: ":"))
            TreeJSON.appendString(path.isRoot ? "/" : path.string, to: &string)
            string.append(UInt8(ascii: ","))
        }
        string.append(contentsOf: "\"m\":".utf8)
        TreeJSON.append(node, to: &string, form: .export)
        string.append(UInt8(ascii: "}"))
    }
}

extension TreePath {
    /// In the order of a walk: key by key, a location before its subtree.
    static func compare(_ lhs: TreePath, _ rhs: TreePath) -> Int { compare(lhs.keys[...], rhs.keys[...]) }

    static func compare(_ lhs: ArraySlice<TreeKey>, _ rhs: ArraySlice<TreeKey>) -> Int {
        for (left, right) in zip(lhs, rhs) {
            let order = TreeKey.compare(left, right)
            if order != 0 { return order }
        }
        return lhs.count - rhs.count
    }
}

/// The bounds of a range.
private struct Bounds {
    var start: TreePath?
    var end: TreePath?

    func isBehindStart(_ keys: [TreeKey]) -> Bool {
        start.map { TreePath.compare(keys[...], $0.keys[...]) > 0 } ?? true
    }

    /// Negative before the end, zero at it.
    private func compareToEnd(_ keys: [TreeKey]) -> Int { end.map { TreePath.compare(keys[...], $0.keys[...]) } ?? -1 }

    func contains(_ keys: [TreeKey]) -> Bool { isBehindStart(keys) && compareToEnd(keys) <= 0 }

    private func hasStart(below keys: [TreeKey]) -> Bool { start?.keys.starts(with: keys) ?? false }
    private func hasEnd(below keys: [TreeKey]) -> Bool { end?.keys.starts(with: keys) ?? false }

    func part(of node: Node) -> Node { part(of: node, at: []) }

    private func part(of node: Node, at keys: [TreeKey]) -> Node {
        if !hasStart(below: keys), !hasEnd(below: keys) { return contains(keys) ? node : .empty }
        guard node.childCount > 0 else { return contains(keys) ? node : .empty }
        let all = node.children
        // A client may name thousands of ranges of one large node.
        let children = all[positions(in: all, at: keys)].map { ($0.key, part(of: $0.node, at: keys + [$0.key])) }
        return Node(children: children, priority: contains(keys + [.priority]) ? node.priority : nil)
    }

    /// Of the children of a node that may have leaves in the range.
    private func positions(in children: Children, at keys: [TreeKey]) -> Range<Int> {
        var positions = 0..<children.count
        if let start, hasStart(below: keys), start.count > keys.count {
            positions = children.position(of: start.keys[keys.count])..<children.count
        }
        if let end, hasEnd(below: keys), end.count > keys.count {
            let key = end.keys[keys.count]
            let index = children.position(of: key)
            let isThere = index < children.count && children[index].key == key
            positions = positions.clamped(to: 0..<(isThere ? index + 1 : index))
        }
        return positions
    }

    private func firstLeafBehindStart(of node: Node, at keys: [TreeKey]) -> [TreeKey]? {
        let children = node.children
        if children.isEmpty { return !node.isEmpty && isBehindStart(keys) ? keys : nil }
        let isCut = hasStart(below: keys)
        if !isCut, !isBehindStart(keys) { return nil }
        var position = 0
        if isCut, let start, start.count > keys.count { position = children.position(of: start.keys[keys.count]) }
        while position < children.count {
            let (key, child) = children[position]
            if let leaf = firstLeafBehindStart(of: child, at: keys + [key]) { return leaf }
            position += 1
        }
        return nil
    }

    private func lastLeafBeforeStart(of node: Node, at keys: [TreeKey]) -> [TreeKey]? {
        guard let start else { return nil }
        let children = node.children
        if children.isEmpty { return !node.isEmpty && !isBehindStart(keys) ? keys : nil }
        let isCut = hasStart(below: keys)
        // The data below the start is behind it.
        if isBehindStart(keys) || isCut && start.count == keys.count { return nil }
        var position = children.count
        if isCut {
            let key = start.keys[keys.count]
            position = children.position(of: key)
            if position < children.count, children[position].key == key { position += 1 }
        }
        while position > 0 {
            position -= 1
            let (key, child) = children[position]
            if let leaf = lastLeafBeforeStart(of: child, at: keys + [key]) { return leaf }
        }
        return nil
    }

    /// Enlarges the range where it cuts a node with a priority and contains none of its leaves: the priority cannot be
    /// sent alone, and a client with no other data of the node would lose it with the last child.
    mutating func widen(for node: Node) {
        if let start { widen(for: node, towards: start) }
        if let end { widen(for: node, towards: end) }
    }

    private mutating func widen(for node: Node, towards path: TreePath) {
        for depth in 0...path.count {
            let keys = Array(path.keys.prefix(depth))
            let node = node.node(at: TreePath(keys: keys))
            guard node.priority != nil, node.childCount > 0, part(of: node, at: keys).isEmpty else { continue }
            if let behind = firstLeafBehindStart(of: node, at: keys) {
                end = TreePath(keys: behind)
            } else if let before = lastLeafBeforeStart(of: node, at: keys) {
                // The leaf, and its siblings.
                start = TreePath(keys: before).parent
            }
        }
    }

    func replace(in old: Node, by new: Node, at keys: [TreeKey]) -> Node {
        let hasEnd = hasEnd(below: keys)
        if isBehindStart(keys) {
            if !hasEnd, compareToEnd(keys) < 0 { return new }
            if hasEnd, new.isLeaf { return new }
            if hasEnd, compareToEnd(keys) == 0 { return old.isLeaf ? .empty : old }
        }
        guard hasEnd || hasStart(below: keys) else { return old }
        // A leaf behind the start is in the range, and the new data has no value at its location.
        var result = old.isLeaf && isBehindStart(keys) ? .empty : old
        var gone: [TreeKey] = []
        for key in Set(old.children.map(\.key)).union(new.children.map(\.key)) {
            let child = replace(in: old.child(key), by: new.child(key), at: keys + [key])
            if child.isEmpty { gone.append(key) } else { result = result.setting(key, to: child) }
        }
        // Last, so that a node whose children are all replaced always has a child, and keeps its priority.
        for key in gone { result = result.setting(key, to: .empty) }
        // A leaf's priority belongs to the leaf.
        return contains(keys + [.priority]) && !result.isLeaf ? result.with(priority: new.priority) : result
    }
}
