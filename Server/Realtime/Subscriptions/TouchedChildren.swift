import HearthModel
import HearthTree
import HearthTreeStorage

/// The children of a location that a commit touches, with their order values before and after it: read once for all
/// windows.
final class TouchedChildren {
    /// A child before or after a commit.
    package struct State: Equatable {
        var exists = false
        /// Its order values, on the indexes of windows. Paths that the child does not have are omitted.
        var values: [TreeQuery.Index: TreeIndexValue] = [:]

        /// Nil when there is no such child.
        func value(_ index: TreeQuery.Index) -> TreeIndexValue? { exists ? values[index] ?? .null : nil }
    }

    private let path: TreePath
    private(set) var keys: [TreeKey] = []
    private var byKey: [TreeKey: [TreeChange]] = [:]
    private var before: [TreeKey: State] = [:]
    private var after: [TreeKey: State] = [:]
    private var whole: [TreeKey: Node] = [:]
    private var wholeBytes = 0

    /// The maximum number of branches at one location of a trie that are looked up individually. With more, the child's
    /// keys are used to find the branches.
    private static let branchesMax = 8
    /// The bytes of children that enter windows by a change of a part of them; larger ones are read beside the writer.
    private static let wholeBytesMax = 256 << 10

    /// - Parameter changes: below the path, or of its priority, which belongs to no child.
    init(_ path: TreePath, _ changes: [TreeChange]) {
        self.path = path
        for change in changes where change.location != path {
            let key = change.path.keys[path.count]
            if byKey[key] == nil { keys.append(key) }
            byKey[key, default: []].append(change)
        }
    }

    func changes(of key: TreeKey) -> [TreeChange] { byKey[key] ?? [] }

    func before(_ key: TreeKey) -> State { before[key] ?? State() }
    func after(_ key: TreeKey) -> State { after[key] ?? State() }

    /// Reads the children's order values before the commit.
    func read(before view: TreeView, for windows: WindowIndex) throws(Status) { before = try states(view, windows) }

    func read(after view: TreeView, for windows: WindowIndex) throws(Status) { after = try states(view, windows) }

    /// A whole child after the commit; nil when it is so large that it must be read beside the writer.
    func node(_ key: TreeKey, _ after: TreeView) throws(Status) -> Node? {
        let child = path.child(key)
        if let changes = byKey[key], changes.count == 1, changes[0].path == child { return changes[0].node }
        if let known = whole[key] { return known }
        wholeBytes += try after.sizeEstimate(at: child, upTo: Self.wholeBytesMax)
        if wholeBytes > Self.wholeBytesMax { return nil }
        let node = try after.node(at: child)
        whole[key] = node
        return node
    }

    private func states(_ view: TreeView, _ windows: WindowIndex) throws(Status) -> [TreeKey: State] {
        var states: [TreeKey: State] = [:]
        states.reserveCapacity(keys.count)
        for key in keys {
            let child = path.child(key)
            guard try view.exists(at: child) else { continue }
            var state = State(exists: true)
            if windows.isUsed(.key) { state.values[.key] = .null }
            if windows.isUsed(.priority) { state.values[.priority] = TreeIndexValue(try view.priority(at: child)) }
            if windows.isUsed(.value) { state.values[.value] = try Self.content(child, view) ?? .null }
            if !windows.paths.isEmpty { try Self.readValues(child, [], windows.paths, view, &state.values) }
            states[key] = state
        }
        return states
    }

    /// Reads the values at the paths of a trie.
    private static func readValues(
        _ child: TreePath, _ inside: [TreeKey], _ paths: OrderPaths, _ view: TreeView,
        _ values: inout [TreeQuery.Index: TreeIndexValue]
    ) throws(Status) {
        let location = child + TreePath(keys: inside)
        if !inside.isEmpty || paths.isEnd {
            guard let content = try content(location, view) else { return }
            if paths.isEnd { values[.child(TreePath(keys: inside))] = content }
            if content != .inner { return }
        }
        var keys = Array(paths.branches.keys)
        if keys.count > branchesMax {
            let there = try view.children(of: location, limit: keys.count)
            // When the node has more children than the trie has branches, the branches are fewer.
            if there.count < keys.count { keys = there }
        }
        for key in keys {
            guard let branch = paths.branches[key] else { continue }
            try readValues(child, inside + [key], branch, view, &values)
        }
    }

    /// The order value of a location; nil for none.
    private static func content(_ location: TreePath, _ view: TreeView) throws(Status) -> TreeIndexValue? {
        if let value = try view.value(at: location) { return .scalar(value) }
        return try view.hasChildren(at: location) ? .inner : nil
    }
}
