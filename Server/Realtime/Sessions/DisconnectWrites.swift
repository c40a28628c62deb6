import HearthHost
import HearthModel
import HearthTree

/// The writes that a client has requested for the end of its connection.
///
/// Later writes replace earlier ones, or are merged into them, so that in the end all are one change of the tree. A
/// write below an earlier one is stored separately until then: its cost depends on its own size, not on the size of the
/// earlier one. Source: the `onDisconnect` tree of the public SDKs, and their documentation.
struct DisconnectWrites: Sendable {
    fileprivate struct Part {
        var node: Node
        /// The bytes of the path and of the encoded node.
        var sizeBytes: Int
        /// Its approximate size in memory.
        var memoryBytes: Int
        /// Whether it changes an older entry above it.
        var isNested: Bool
        /// The order in which entries were requested.
        var number: Int
    }

    private struct Branch {
        var part: Part?
        var children: [TreeKey: Branch] = [:]

        var isEmpty: Bool { part == nil && children.isEmpty }
    }

    private var root = Branch()
    private var lastNumber = 0
    /// The bytes of all entries.
    private(set) var sizeBytes = 0
    /// The approximate size of all entries in memory.
    private(set) var memoryBytes = 0
    private(set) var partCount = 0
    private var nestedCount = 0
    /// Locations whose entry has changed since the last call.
    private var touched: Set<TreePath> = []
    /// The changes that undo the present attempt.
    private var undo: Undo?
    /// For tests: the number of replaced entries.
    private(set) var attemptSteps = 0

    /// The entries that an attempt replaced, in its order.
    struct Undo {
        fileprivate var steps: [(path: TreePath, part: Part?)] = []
    }

    var isEmpty: Bool { partCount == 0 }

    /// One change for each location that is written, in the order of paths; no location is above another.
    var changes: [TreeChange] {
        var changes: [TreeChange] = []
        Self.visit(root, .root) { path, branch in
            guard let part = branch.part else { return true }
            changes.append(TreeChange(path: path, node: Self.folded(part.node, branch, path)))
            return false
        }
        return changes.sorted { $0.path.keys.lexicographicallyPrecedes($1.path.keys) }
    }

    /// All entries; older ones above them follow.
    var parts: [(path: TreePath, node: Node)] {
        var parts: [(path: TreePath, node: Node)] = []
        Self.visit(root, .root) { path, branch in
            if let part = branch.part { parts.append((path, part.node)) }
            return true
        }
        return parts
    }

    /// The present entries at the locations where they have changed since the last call; nil for none.
    mutating func takeChanges() -> [(path: TreePath, node: Node?)] {
        defer { touched = [] }
        return touched.map { ($0, part(at: $0)?.node) }
    }

    // MARK: Adding and removing

    /// Runs `body` and undoes it when the result exceeds the limits.
    /// - Parameter mayTake: whether all entries together may use this amount of memory.
    /// - Returns: the attempt, for `undo`; nil when nothing was changed.
    mutating func attempt(
        mayTake: (_ memoryBytes: Int) -> Bool = { _ in true }, _ body: (inout DisconnectWrites) -> Void
    ) -> Undo? {
        undo = Undo()
        body(&self)
        if nestedCount > Limits.realtimeDisconnectWritesMax { fold() }
        let isTooMuch =
            partCount - nestedCount > Limits.realtimeDisconnectWritesMax
            || sizeBytes > Limits.realtimeDisconnectBytesMax || !mayTake(memoryBytes)
        let done = undo ?? Undo()
        undo = nil
        if isTooMuch { takeBack(done) }
        return isTooMuch ? nil : done
    }

    /// Restores the state before an attempt. All later attempts must be undone first.
    mutating func takeBack(_ attempt: Undo) {
        for step in attempt.steps.reversed() { replace(step.path, step.part) }
    }

    mutating func put(_ path: TreePath, _ node: Node) {
        removeAll(atOrBelow: path)
        set(path, node)
    }

    mutating func merge(_ changes: [TreeChange]) {
        for change in changes { put(change.path, change.node) }
    }

    /// Removes the writes at a location and below it. Writes above keep the rest of their data.
    mutating func cancel(_ path: TreePath) {
        if let top = topmost(above: path) { fold(top) }
        removeAll(atOrBelow: path)
        // A write of a whole node is divided on the path down to the location.
        while let above = topmost(above: path), let whole = part(at: above) {
            // A leaf or a removal has no part to remove.
            if whole.node.childCount == 0 { return }
            replace(above, nil)
            for (key, child) in whole.node.children where !path.contains(above.child(key)) {
                set(above.child(key), child)
            }
        }
    }

    // MARK: Parts

    private func part(at path: TreePath) -> Part? { branch(at: path)?.part }

    private func branch(at path: TreePath) -> Branch? {
        var branch = root
        for key in path.keys {
            guard let child = branch.children[key] else { return nil }
            branch = child
        }
        return branch
    }

    /// The first location on a path, and above it, that has an entry.
    private func topmost(above path: TreePath) -> TreePath? {
        var branch = root
        for (depth, key) in path.keys.enumerated() {
            if branch.part != nil { return TreePath(keys: Array(path.keys[..<depth])) }
            guard let child = branch.children[key] else { return nil }
            branch = child
        }
        return nil
    }

    private mutating func set(_ path: TreePath, _ node: Node) {
        var string: [UInt8] = []
        TreeJSON.append(node, to: &string, form: .export)
        lastNumber += 1
        replace(
            path,
            Part(
                node: node, sizeBytes: path.string.utf8.count + string.count,
                memoryBytes: path.string.utf8.count + ParsedSize.ofJSON(string), isNested: topmost(above: path) != nil,
                number: lastNumber))
    }

    private mutating func replace(_ path: TreePath, _ part: Part?) {
        let old = Self.replace(part, path.keys[...], &root)
        undo?.steps.append((path, old))
        attemptSteps += 1
        touched.insert(path)
        sizeBytes += (part?.sizeBytes ?? 0) - (old?.sizeBytes ?? 0)
        memoryBytes += (part?.memoryBytes ?? 0) - (old?.memoryBytes ?? 0)
        partCount += (part == nil ? 0 : 1) - (old == nil ? 0 : 1)
        nestedCount += (part?.isNested == true ? 1 : 0) - (old?.isNested == true ? 1 : 0)
    }

    private static func replace(_ part: Part?, _ keys: ArraySlice<TreeKey>, _ branch: inout Branch) -> Part? {
        guard let key = keys.first else {
            defer { branch.part = part }
            return branch.part
        }
        let old = replace(part, keys.dropFirst(), &branch.children[key, default: Branch()])
        if branch.children[key]?.isEmpty == true { branch.children[key] = nil }
        return old
    }

    private mutating func removeAll(atOrBelow path: TreePath) {
        guard let branch = branch(at: path) else { return }
        var paths: [TreePath] = []
        Self.visit(branch, path) { path, branch in
            if branch.part != nil { paths.append(path) }
            return true
        }
        for path in paths { replace(path, nil) }
    }

    /// - Parameter body: returns whether the entries below are visited, too.
    private static func visit(_ branch: Branch, _ path: TreePath, _ body: (TreePath, Branch) -> Bool) {
        guard body(path, branch) else { return }
        for (key, child) in branch.children { visit(child, path.child(key), body) }
    }

    // MARK: Folding

    /// A node with the entries below its location merged in, in the order in which they were requested.
    private static func folded(_ node: Node, _ branch: Branch, _ path: TreePath) -> Node {
        var parts: [(path: TreePath, part: Part)] = []
        for (key, child) in branch.children {
            visit(child, path.child(key)) { path, branch in
                if let part = branch.part { parts.append((path, part)) }
                return true
            }
        }
        parts.sort { $0.part.number < $1.part.number }
        return parts.reduce(node) { node, part in
            node.applying(TreeChange(path: part.path.relative(to: path), node: part.part.node))
        }
    }

    /// Merges the entries at a location and below it into one.
    private mutating func fold(_ path: TreePath) {
        guard let branch = branch(at: path), let part = branch.part, !branch.children.isEmpty else { return }
        let node = Self.folded(part.node, branch, path)
        removeAll(atOrBelow: path)
        set(path, node)
    }

    private mutating func fold() {
        var tops: [TreePath] = []
        Self.visit(root, .root) { path, branch in
            if branch.part != nil { tops.append(path) }
            return branch.part == nil
        }
        for path in tops { fold(path) }
    }
}
