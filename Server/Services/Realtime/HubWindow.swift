import HearthModel
import HearthTree
import HearthTreeStorage

/// A query that is listened to, with its window as of the last commit. Belongs to the writer's thread of its database.
final class HubWindow {
    private let query: TreeQuery
    private let path: TreePath
    private var window: FilteredWindow
    /// Those who listen to it, one a loop.
    var listens: [SharedListen] = []
    /// It is ahead of what listeners were told, or couldn't be read: to be read anew.
    var isBroken = false

    init(_ query: TreeQuery, _ path: TreePath, _ view: TreeView) throws(Status) {
        self.query = query
        self.path = path
        window = try Self.read(query, path, view)
    }

    /// Takes a commit in.
    /// - Returns: what leads listeners from the window before to the one after it; nil when that is the same.
    func change(_ route: HubRoute, _ commit: TreeCommit, _ after: TreeView) -> RealtimeEvent.Change? {
        do throws(Status) {
            // Changes of the place itself; its priority belongs to no child.
            let isReplaced = route.above != nil || route.inside.contains { commit.changes[$0].path == path }
            if isReplaced || isBroken { return try replace(after).map { .push($0) } }
            return try move(route.inside.map { commit.changes[$0] }, after).map { .push($0) }
        } catch {
            isBroken = true
            return .lost
        }
    }

    private func replace(_ after: TreeView) throws(Status) -> RealtimePush? {
        let wasEmpty = window.isEmpty && !isBroken
        window = try Self.read(query, path, after)
        isBroken = false
        if wasEmpty, window.isEmpty { return nil }
        return RealtimePush(.put(path, try Self.result(query, path, after)))
    }

    private func move(_ changes: [TreeChange], _ after: TreeView) throws(Status) -> RealtimePush? {
        var byChild: [(key: TreeKey, changes: [TreeChange])] = []
        var positions: [TreeKey: Int] = [:]
        for change in changes where change.place != path {
            let key = change.path.keys[path.count]
            if let position = positions[key] {
                byChild[position].changes.append(change)
            } else {
                positions[key] = byChild.count
                byChild.append((key, [change]))
            }
        }
        var touched: [(key: TreeKey, value: TreeIndexValue?)] = []
        for (key, _) in byChild { touched.append((key, try value(of: key, after))) }
        let difference: FilteredWindow.Difference
        switch window.apply(touched) {
        case .changed(let found): difference = found
        case .unsound(let keysBefore):
            window = try Self.read(query, path, after)
            difference = window.difference(from: keysBefore, touched: Set(positions.keys))
        }
        var members: [(path: TreePath, node: Node)] = []
        for key in difference.leaving { members.append((TreePath(keys: [key]), .empty)) }
        for key in difference.entering {
            members.append((TreePath(keys: [key]), try after.node(at: path.child(key))))
        }
        for key in difference.staying {
            for change in RealtimePush.ordered(byChild[positions[key]!].changes) {
                members.append((change.path.relative(to: path), change.node))
            }
        }
        switch members.count {
        case 0: return nil
        case 1: return RealtimePush(.put(path + members[0].path, members[0].node))
        default: return RealtimePush(.merge(path, members))
        }
    }

    /// Where a child stands on the index; nil when there is none, or it doesn't match the bounds.
    private func value(of key: TreeKey, _ view: TreeView) throws(Status) -> TreeIndexValue? {
        let child = path.child(key)
        guard try view.exists(at: child) else { return nil }
        let value = try query.indexValue(at: child, in: view)
        return query.contains(key, value: value) ? value : nil
    }

    // MARK: Reading

    private static func read(
        _ query: TreeQuery, _ path: TreePath, _ view: TreeView
    ) throws(Status) -> FilteredWindow {
        var wider = query
        if let limit = query.limit { wider.limit = limit + FilteredWindow.reserve(for: limit) }
        var found = try view.keys(of: wider, at: path)
        if !found.isIndexed, query.limit != nil {
            // All children were looked at, and would be again: so all that match are kept.
            wider.limit = nil
            found = try view.keys(of: wider, at: path)
        }
        return FilteredWindow(
            query, positions: found.children.map { FilteredWindow.Position(value: $0.value, key: $0.key) },
            isComplete: wider.limit.map { found.children.count < $0 } ?? true)
    }

    /// The window's children, whole.
    static func result(_ query: TreeQuery, _ path: TreePath, _ view: TreeView) throws(Status) -> Node {
        Node(children: try view.result(of: query, at: path).children.map { ($0.key, $0.node) })
    }
}

extension TreeQuery {
    /// What a child is ordered by, without reading more of it.
    func indexValue(at child: TreePath, in data: TreeView) throws(Status) -> TreeIndexValue {
        switch index {
        case .key: return .null
        case .priority: return TreeIndexValue(try data.priority(at: child))
        case .value: return try Self.content(at: child, in: data)
        case .child(let path): return try Self.content(at: child + path, in: data)
        }
    }

    private static func content(at path: TreePath, in data: TreeView) throws(Status) -> TreeIndexValue {
        if let value = try data.value(at: path) { return TreeIndexValue(value) }
        return try data.hasChildren(at: path) ? .inner : .null
    }
}
