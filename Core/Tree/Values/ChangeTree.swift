/// Changes by location, none of them below another: a later change replaces earlier ones at and below its location, and
/// is merged into one above.
package struct ChangeTree: Sendable {
    /// The new value of this location; then there is no change below, and no separate priority.
    package private(set) var replacement: Node?
    /// The priority that this location gets if it exists; `.some(nil)` removes it.
    package private(set) var priority: Scalar??
    package private(set) var below: [TreeKey: ChangeTree] = [:]
    /// Whether a value that isn't empty is put here or below, so that this location certainly exists.
    package private(set) var hasContent = false

    init() {}

    package init(_ changes: [TreeChange]) {
        for change in changes { add(change, at: change.path.keys[...]) }
        findContent()
    }

    private mutating func findContent() {
        if let replacement {
            hasContent = !replacement.isEmpty
            return
        }
        for key in below.keys {
            below[key]!.findContent()
            if below[key]!.hasContent { hasContent = true }
        }
    }

    private mutating func add(_ change: TreeChange, at keys: ArraySlice<TreeKey>) {
        if let present = replacement, !keys.isEmpty {
            let relative = TreeChange(path: TreePath(keys: Array(keys)), node: change.node)
            replacement = present.applying(relative)
            return
        }
        guard let key = keys.first else {
            self = ChangeTree()
            replacement = change.node
            return
        }
        if keys.count == 1, key == .priority {
            priority = .some(change.node.value)
            return
        }
        below[key, default: ChangeTree()].add(change, at: keys.dropFirst())
    }

    /// The part for a location below: its own changes, or its part of a replacement.
    package func descend(_ path: TreePath) -> Descent {
        var tree = self
        for (depth, key) in path.keys.enumerated() {
            if let node = tree.replacement {
                return .replaced(node.node(at: TreePath(keys: Array(path.keys[depth...]))))
            }
            guard let next = tree.below[key] else { return .untouched }
            tree = next
        }
        if let node = tree.replacement { return .replaced(node) }
        return .changed(tree)
    }

    package enum Descent {
        case untouched
        case replaced(Node)
        case changed(ChangeTree)
    }

    /// First the puts, then the removals, then priorities: a node that always has a child keeps its priority, whatever
    /// the order of the changes was.
    package func applied(to node: Node) -> Node {
        if let replacement { return replacement }
        var node = node
        for (key, tree) in below where tree.hasContent {
            node = node.setting(key, to: tree.applied(to: node.child(key)))
        }
        for (key, tree) in below where !tree.hasContent {
            let child = node.child(key)
            if !child.isEmpty { node = node.setting(key, to: tree.applied(to: child)) }
        }
        if let priority { node = node.with(priority: priority) }
        return node
    }

    /// Changes that may be made one after the other with the same result: none is below another; first the puts, then
    /// the removals, then priorities.
    /// - Parameter isInOrder: whether each of the three is in the order of keys.
    package func oneByOne(isInOrder: Bool = false) -> [TreeChange] {
        var (put, taken, priorities): ([TreeChange], [TreeChange], [TreeChange]) = ([], [], [])
        func gather(_ tree: ChangeTree, _ path: TreePath) {
            if let node = tree.replacement {
                let change = TreeChange(path: path, node: node)
                if node.isEmpty { taken.append(change) } else { put.append(change) }
                return
            }
            if let priority = tree.priority {
                priorities.append(
                    TreeChange(path: path.child(.priority), node: priority.map { Node($0) } ?? .empty))
            }
            if isInOrder {
                for key in tree.below.keys.sorted() { if let next = tree.below[key] { gather(next, path.child(key)) } }
            } else {
                for (key, tree) in tree.below { gather(tree, path.child(key)) }
            }
        }
        gather(self, .root)
        return put + taken + priorities
    }

    /// Whether it has more than this number of locations and nodes together.
    package func isLarger(than countMax: Int) -> Bool {
        var left = countMax
        func count(_ tree: ChangeTree) {
            left -= 1
            if let node = tree.replacement { left -= node.count(upTo: left + 1) }
            for next in tree.below.values where left >= 0 { count(next) }
        }
        count(self)
        return left < 0
    }
}

extension Node {
    /// The number of its nodes, including itself; counting stops at a limit.
    package func count(upTo limit: Int) -> Int {
        var count = isEmpty ? 0 : 1
        if childCount > limit { return limit }
        for (_, child) in children where count < limit { count += child.count(upTo: limit - count) }
        return count
    }
}
