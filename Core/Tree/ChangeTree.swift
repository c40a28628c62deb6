/// Changes by place, none of them below another: a later change replaces earlier ones at and below its place, and is worked into
/// one above.
struct ChangeTree: Sendable {
    /// What stands here now; then there is nothing below, and no priority beside it.
    private(set) var replacement: Node?
    /// The priority that this place gets if it exists; `.some(nil)` takes it away.
    private(set) var priority: Scalar??
    private(set) var below: [TreeKey: ChangeTree] = [:]
    /// Whether something that isn't empty is put here or below, so that this place surely exists.
    private(set) var hasContent = false

    init() {}

    init(_ changes: [TreeChange]) {
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

    /// The part for a place below: what is known there, or a replacement's part.
    func descend(_ path: TreePath) -> Place {
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

    enum Place {
        case untouched
        case replaced(Node)
        case changed(ChangeTree)
    }

    /// First what is put, then what is taken away, then priorities: a node that is never left without children keeps its
    /// priority whatever the order of the changes was.
    func applied(to node: Node) -> Node {
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
}
