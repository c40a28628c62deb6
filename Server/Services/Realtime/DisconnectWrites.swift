import HearthModel
import HearthTree

/// What a client wants written when its connection ends: at any moment a set of places none of which is above another.
///
/// Later wishes replace earlier ones, or are worked into them, so that all are one change of the tree. Source: the
/// `onDisconnect` tree of the public SDKs, and their documentation.
struct DisconnectWrites: Sendable {
    private var nodes: [TreePath: Node] = [:]
    private var sizes: [TreePath: Int] = [:]
    /// Of the texts of paths and nodes.
    private(set) var sizeBytes = 0
    /// Strict ancestors of the places, with how many of those are below each.
    private var above: [TreePath: Int] = [:]
    /// Places whose wish is another than when it was asked last.
    private var touched: Set<TreePath> = []

    var isEmpty: Bool { nodes.isEmpty }
    var count: Int { nodes.count }

    /// In the order of paths; no place is above another.
    var changes: [TreeChange] {
        nodes.map { TreeChange(path: $0.key, node: $0.value) }.sorted { lhs, rhs in
            lhs.path.keys.lexicographicallyPrecedes(rhs.path.keys)
        }
    }

    /// What is wished now at the places where that has changed since the last call; nil for nothing.
    mutating func takeChanges() -> [(path: TreePath, node: Node?)] {
        defer { touched = [] }
        return touched.map { ($0, nodes[$0]) }
    }

    mutating func put(_ path: TreePath, _ node: Node) {
        if let above = place(above: path), let whole = nodes[above] {
            let change = TreeChange(path: path.relative(to: above), node: node)
            return keep(whole.applying(change), at: above)
        }
        forget(atOrBelow: path)
        keep(node, at: path)
    }

    private mutating func keep(_ node: Node, at path: TreePath) {
        var text: [UInt8] = []
        TreeJSON.append(node, to: &text, form: .export)
        let size = path.text.utf8.count + text.count
        sizeBytes += size - (sizes.updateValue(size, forKey: path) ?? 0)
        if nodes.updateValue(node, forKey: path) == nil { count(path, 1) }
        touched.insert(path)
    }

    private mutating func forget(_ path: TreePath) {
        guard nodes.removeValue(forKey: path) != nil else { return }
        sizeBytes -= sizes.removeValue(forKey: path) ?? 0
        count(path, -1)
        touched.insert(path)
    }

    private mutating func count(_ path: TreePath, _ change: Int) {
        var ancestor = path.parent
        while let place = ancestor {
            let count = (above[place] ?? 0) + change
            above[place] = count == 0 ? nil : count
            ancestor = place.parent
        }
    }

    private mutating func forget(atOrBelow path: TreePath) {
        forget(path)
        if above[path] == nil { return }
        for place in nodes.keys.filter({ path.contains($0) }) { forget(place) }
    }

    mutating func merge(_ changes: [TreeChange]) {
        for change in changes { put(change.path, change.node) }
    }

    /// Forgets what was wished at a place and below it. What was wished above stays but for this part.
    mutating func cancel(_ path: TreePath) {
        forget(atOrBelow: path)
        // A write of a whole node is taken apart on the way down to the place.
        while let above = place(above: path), let whole = nodes[above] {
            // Of a leaf, or a removal, there is no part to take out.
            if whole.childCount == 0 { return }
            forget(above)
            for (key, child) in whole.children where !path.contains(above.child(key)) {
                keep(child, at: above.child(key))
            }
        }
    }

    /// The strict ancestor of a place that has a wish.
    private func place(above path: TreePath) -> TreePath? {
        var above = path.parent
        while let place = above {
            if nodes[place] != nil { return place }
            above = place.parent
        }
        return nil
    }
}
