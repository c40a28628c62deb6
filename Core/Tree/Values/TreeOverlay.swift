import HearthModel

/// A tree after changes that are not made yet. Reads only the needed parts of the tree below.
///
/// The changes are made at once. A later one replaces earlier ones at and below its location. A put below a leaf
/// deletes the leaf's value and keeps its priority; a removal below a leaf has no effect; a node that is left without
/// children is deleted with its priority. A priority is set on locations that exist in the end.
package struct TreeOverlay: TreeData {
    private let base: any TreeData
    private let changes: ChangeTree

    /// - Parameter changes: at paths from the root of `base`, without deferred values.
    package init(base: any TreeData, changes: [TreeChange]) {
        self.init(base: base, changes: ChangeTree(changes))
    }

    package init(base: any TreeData, changes: ChangeTree) {
        self.base = base
        self.changes = changes
    }

    package func value(at path: TreePath) throws(Status) -> Scalar? {
        switch changes.descend(path) {
        case .untouched: try base.value(at: path)
        case .replaced(let node): node.value
        case .changed(let tree): tree.hasContent ? nil : try base.value(at: path)
        }
    }

    package func leaf(at path: TreePath) throws(Status) -> Leaf? {
        switch changes.descend(path) {
        case .untouched: try base.leaf(at: path)
        case .replaced(let node): node.value.map(Leaf.init)
        case .changed(let tree): tree.hasContent ? nil : try base.leaf(at: path)
        }
    }

    package func priority(at path: TreePath) throws(Status) -> Scalar? {
        switch changes.descend(path) {
        case .untouched: return try base.priority(at: path)
        case .replaced(let node): return node.priority
        case .changed(let tree):
            guard try exists(tree, at: path) else { return nil }
            if let priority = tree.priority { return priority }
            return try base.priority(at: path)
        }
    }

    package func hasChildren(at path: TreePath) throws(Status) -> Bool {
        switch changes.descend(path) {
        case .untouched: try base.hasChildren(at: path)
        case .replaced(let node): node.childCount > 0
        case .changed(let tree): try hasChildren(tree, at: path)
        }
    }

    package func exists(at path: TreePath) throws(Status) -> Bool {
        switch changes.descend(path) {
        case .untouched: try base.exists(at: path)
        case .replaced(let node): !node.isEmpty
        case .changed(let tree): try exists(tree, at: path)
        }
    }

    package func node(at path: TreePath) throws(Status) -> Node {
        switch changes.descend(path) {
        case .untouched: try base.node(at: path)
        case .replaced(let node): node
        case .changed(let tree): tree.applied(to: try base.node(at: path))
        }
    }

    package func keys(at path: TreePath, after key: TreeKey?, limit: Int) throws(Status) -> [TreeKey] {
        switch changes.descend(path) {
        case .untouched: return try base.keys(at: path, after: key, limit: limit)
        case .replaced(let node): return node.keys(at: .root, after: key, limit: limit)
        case .changed(let tree): return try keys(tree, at: path, after: key, limit: limit)
        }
    }

    private func exists(_ tree: ChangeTree, at path: TreePath) throws(Status) -> Bool {
        if let replacement = tree.replacement { return !replacement.isEmpty }
        if tree.hasContent { return true }
        guard try base.exists(at: path) else { return false }
        if tree.below.isEmpty { return true }
        if try base.value(at: path) != nil { return true }
        return try hasChildren(tree, at: path)
    }

    private func hasChildren(_ tree: ChangeTree, at path: TreePath) throws(Status) -> Bool {
        if tree.hasContent { return true }
        if tree.below.isEmpty { return try base.hasChildren(at: path) }
        return try !keys(tree, at: path, after: nil, limit: 1).isEmpty
    }

    /// Merges the names below with those that the changes add, without those that they remove.
    private func keys(
        _ tree: ChangeTree, at path: TreePath, after key: TreeKey?, limit: Int
    ) throws(Status) -> [TreeKey] {
        var fresh = tree.below.filter { $0.value.hasContent }.map(\.key).filter { candidate in
            key.map { $0 < candidate } ?? true
        }
        fresh.sort(by: >)
        var found: [TreeKey] = []
        var last = key
        while found.count < limit {
            let asked = max(limit - found.count, min(tree.below.count + 1, Limits.treeKeysPerReadMax))
            let known = try base.keys(at: path, after: last, limit: asked)
            for key in known {
                while let next = fresh.last, next < key { found.append(fresh.removeLast()) }
                if fresh.last == key { fresh.removeLast() }
                if let part = tree.below[key] {
                    guard try exists(part, at: path.child(key)) else { continue }
                }
                found.append(key)
            }
            last = known.last
            if known.count < asked {
                found.append(contentsOf: fresh.reversed())
                break
            }
        }
        return Array(found.prefix(limit))
    }
}
