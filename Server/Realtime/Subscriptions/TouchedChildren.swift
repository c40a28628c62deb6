import HearthModel
import HearthTree
import HearthTreeStorage

/// The children of a location that a commit touches, with what they are ordered by before and after it: read once for all
/// windows.
final class TouchedChildren {
    /// A child at one moment.
    package struct State: Equatable {
        var exists = false
        /// What it is ordered by, on the indexes of windows. Paths inside of it are left out where it has nothing.
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

    /// Branches at one place of a trie that are looked up one by one; of more, those that the child has are found by its keys.
    private static let branchesMax = 8
    /// Bytes of children that came into windows by a change of a part of them; those of more are read beside the writer.
    private static let wholeBytesMax = 256 << 10

    /// - Parameter changes: below the path, or of its priority, which belongs to no child.
    init(_ path: TreePath, _ changes: [TreeChange]) {
        self.path = path
        for change in changes where change.place != path {
            let key = change.path.keys[path.count]
            if byKey[key] == nil { keys.append(key) }
            byKey[key, default: []].append(change)
        }
    }

    func changes(of key: TreeKey) -> [TreeChange] { byKey[key] ?? [] }

    func before(_ key: TreeKey) -> State { before[key] ?? State() }
    func after(_ key: TreeKey) -> State { after[key] ?? State() }

    /// Reads what the children are ordered by before the commit.
    func look(before view: TreeView, for windows: WindowIndex) throws(Status) { before = try states(view, windows) }

    func look(after view: TreeView, for windows: WindowIndex) throws(Status) { after = try states(view, windows) }

    /// A child whole, as the commit leaves it; nil when it is so large that it has to be read beside the writer.
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
            if !windows.paths.isEmpty { try Self.look(child, [], windows.paths, view, &state.values) }
            states[key] = state
        }
        return states
    }

    /// Finds out what is at the paths of a trie.
    private static func look(
        _ child: TreePath, _ inside: [TreeKey], _ paths: OrderPaths, _ view: TreeView,
        _ values: inout [TreeQuery.Index: TreeIndexValue]
    ) throws(Status) {
        let place = child + TreePath(keys: inside)
        if !inside.isEmpty || paths.isEnd {
            guard let content = try content(place, view) else { return }
            if paths.isEnd { values[.child(TreePath(keys: inside))] = content }
            if content != .inner { return }
        }
        var keys = Array(paths.branches.keys)
        if keys.count > branchesMax {
            let there = try view.children(of: place, limit: keys.count)
            // When it has more than there are branches, these are the fewer.
            if there.count < keys.count { keys = there }
        }
        for key in keys {
            guard let branch = paths.branches[key] else { continue }
            try look(child, inside + [key], branch, view, &values)
        }
    }

    /// What is at a place, as an order sees it; nil for nothing.
    private static func content(_ place: TreePath, _ view: TreeView) throws(Status) -> TreeIndexValue? {
        if let value = try view.value(at: place) { return .scalar(value) }
        return try view.hasChildren(at: place) ? .inner : nil
    }
}
