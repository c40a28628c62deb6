import HearthModel
import HearthTree
import HearthTreeStorage

/// A query that is listened to, with its window as of the last commit. Belongs to the writer's thread of its database.
///
/// What is in the window is read beside the writer. Until that is there, a window only notes which children commits touch;
/// those are looked at again in the end.
final class HubWindow {
    let query: TreeQuery
    let path: TreePath
    private var window: FilteredWindow?
    /// Those who listen to it, one a loop.
    var listens: [SharedListen] = []
    /// It is ahead of what listeners were told, or couldn't be read: to be read anew.
    var isBroken = false

    // Until it is known.
    private var touched: Set<TreeKey> = []
    private var isOvertaken = false
    private var readings = 0

    private static let touchedMax = 10_000
    /// After so many readings beside the writer, one is made while it waits.
    private static let readingsMax = 3

    init(_ query: TreeQuery, _ path: TreePath) {
        self.query = query
        self.path = path
    }

    /// Whether it is kept up to date.
    var isKnown: Bool { window != nil }

    /// Takes what was read on a state that had at least the commits before this object was in the trie.
    /// - Parameter view: of the last commit.
    /// - Returns: false when too much has changed meanwhile, and it is to be read again.
    func begin(with read: FilteredWindow, _ view: TreeView) throws(Status) -> Bool {
        defer {
            touched = []
            isOvertaken = false
        }
        readings += 1
        if isOvertaken {
            if readings < Self.readingsMax { return false }
            window = try Self.read(query, path, view)
            return true
        }
        var begun = read
        var now: [(key: TreeKey, value: TreeIndexValue?)] = []
        for key in touched { now.append((key, try value(of: key, view))) }
        if case .unsound = begun.apply(now) { begun = try Self.read(query, path, view) }
        window = begun
        return true
    }

    /// Takes a commit in.
    /// - Returns: what leads listeners from the window before to the one after it; nil when that is the same.
    func change(_ route: HubRoute, _ commit: TreeCommit, _ after: TreeView) -> RealtimeEvent.Change? {
        // Changes of the place itself; its priority belongs to no child.
        let isReplaced = route.above != nil || route.inside.contains { commit.changes[$0].path == path }
        guard isKnown else {
            if isReplaced { isOvertaken = true }
            for index in route.inside where !isOvertaken && commit.changes[index].place != path {
                touched.insert(commit.changes[index].path.keys[path.count])
                if touched.count > Self.touchedMax { isOvertaken = true }
            }
            return nil
        }
        do throws(Status) {
            if isReplaced || isBroken { return try replace(after).map { .push($0) } }
            return try move(route.inside.map { commit.changes[$0] }, after).map { .push($0) }
        } catch {
            isBroken = true
            return .lost
        }
    }

    private func replace(_ after: TreeView) throws(Status) -> RealtimePush? {
        let wasEmpty = window?.isEmpty == true && !isBroken
        let read = try Self.read(query, path, after)
        window = read
        isBroken = false
        if wasEmpty, read.isEmpty { return nil }
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
        switch window?.apply(touched) {
        case nil: return nil
        case .changed(let found): difference = found
        case .unsound(let keysBefore):
            let read = try Self.read(query, path, after)
            window = read
            difference = read.difference(from: keysBefore, touched: Set(positions.keys))
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

    /// - Throws: RESOURCE_EXHAUSTED when the window is too large.
    static func read(_ query: TreeQuery, _ path: TreePath, _ view: TreeView) throws(Status) -> FilteredWindow {
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
