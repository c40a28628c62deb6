import HearthModel
import HearthTree
import HearthTreeStorage

/// A query that is listened to, with its window as of the last commit. Belongs to the writer's thread of its database.
///
/// What is in the window is read beside the writer. Until that is there, a window only notes which children commits touch;
/// those are looked at again in the end. The same happens when so much has changed that it has to be read anew.
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
    /// After so many readings beside the writer it is given up: its place is replaced faster than it can be read.
    private static let readingsMax = 20
    /// Children of a window that the writer reads itself.
    private static let readHereMax = 200

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
            if try isSmall(view) {
                keep(try Self.read(query, path, view))
                return true
            }
            if readings < Self.readingsMax { return false }
            throw .unavailable("The data changes too fast to be read.")
        }
        var begun = read
        let before = begun.values(of: touched)
        var now: [FilteredWindow.Touched] = []
        for key in touched {
            now.append(FilteredWindow.Touched(key: key, before: before[key], after: try value(of: key, view)))
        }
        if case .unsound = begun.apply(now) {
            if readings < Self.readingsMax { return false }
            throw .unavailable("The data changes too fast to be read.")
        }
        keep(begun)
        return true
    }

    private func keep(_ read: FilteredWindow) {
        window = read
        isBroken = false
        readings = 0
    }

    /// Whether the place is so small that the writer reads it itself.
    private func isSmall(_ view: TreeView) throws(Status) -> Bool {
        if try view.children(of: path, limit: Self.readHereMax + 1).count > Self.readHereMax { return false }
        return try view.sizeEstimate(at: path, upTo: Limits.treeCompareBytesMax) <= Limits.treeCompareBytesMax
    }

    /// What a commit means to those who listen.
    enum Change {
        case push(RealtimePush)
        /// The window isn't known any more: it has to be read, and they have to load the whole.
        case unknown
    }

    /// Takes a commit in.
    /// - Parameter children: those that it touches; nil when it replaces the place.
    /// - Returns: what leads listeners from the window before to the one after it; nil when that is the same.
    func change(_ children: TouchedChildren?, _ after: TreeView) -> Change? {
        guard isKnown else {
            guard let children else {
                isOvertaken = true
                return nil
            }
            if !isOvertaken { touched.formUnion(children.keys) }
            if touched.count > Self.touchedMax { isOvertaken = true }
            return nil
        }
        do throws(Status) {
            guard let children, !isBroken, !children.areMany else { return try replace(after) }
            return try move(children, after)
        } catch {
            return forget()
        }
    }

    private func forget() -> Change {
        window = nil
        isBroken = false
        return .unknown
    }

    private func replace(_ after: TreeView) throws(Status) -> Change? {
        if isBroken { return forget() }
        // What is large is read beside the writer.
        if try !isSmall(after) { return forget() }
        let wasEmpty = window?.isEmpty == true
        let read = try Self.read(query, path, after)
        window = read
        if wasEmpty, read.isEmpty { return nil }
        return .push(RealtimePush(.put(path, try Self.result(query, path, after))))
    }

    private func move(_ children: TouchedChildren, _ after: TreeView) throws(Status) -> Change? {
        var touched: [FilteredWindow.Touched] = []
        for key in children.keys {
            let before = matching(key, try children.before(key, query.index))
            let now = matching(key, try children.after(key, query.index, after))
            if before != nil || now != nil {
                touched.append(FilteredWindow.Touched(key: key, before: before, after: now))
            }
        }
        if touched.isEmpty { return nil }
        let difference: FilteredWindow.Difference
        switch window?.apply(touched) {
        case nil: return nil
        case .changed(let found): difference = found
        case .unsound(let keysBefore):
            if keysBefore.count > Self.readHereMax { return forget() }
            let read = try Self.read(query, path, after)
            window = read
            difference = read.difference(from: keysBefore, touched: Set(touched.map(\.key)))
        }
        var members: [(path: TreePath, node: Node)] = []
        for key in difference.leaving { members.append((TreePath(keys: [key]), .empty)) }
        for key in difference.entering {
            members.append((TreePath(keys: [key]), try after.node(at: path.child(key))))
        }
        for key in difference.staying {
            for change in RealtimePush.ordered(children.changes(of: key)) {
                members.append((change.path.relative(to: path), change.node))
            }
        }
        switch members.count {
        case 0: return nil
        case 1: return .push(RealtimePush(.put(path + members[0].path, members[0].node)))
        default: return .push(RealtimePush(.merge(path, members)))
        }
    }

    private func matching(_ key: TreeKey, _ value: TreeIndexValue?) -> TreeIndexValue? {
        value.flatMap { query.contains(key, value: $0) ? $0 : nil }
    }

    /// Where a child stands on the index; nil when there is none, or it doesn't match the bounds.
    private func value(of key: TreeKey, _ view: TreeView) throws(Status) -> TreeIndexValue? {
        matching(key, try query.index.value(of: path.child(key), in: view))
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

/// The children of a place that a commit touches, with what they are ordered by before and after it: read once for all
/// windows of an index.
final class TouchedChildren {
    private let path: TreePath
    private(set) var keys: [TreeKey] = []
    private var byKey: [TreeKey: [TreeChange]] = [:]
    private var values: [TreeQuery.Index: (before: [TreeKey: TreeIndexValue?], after: [TreeKey: TreeIndexValue?])] = [:]

    /// - Parameter changes: below the path, or of its priority, which belongs to no child.
    init(_ path: TreePath, _ changes: [TreeChange]) {
        self.path = path
        for change in changes where change.place != path {
            let key = change.path.keys[path.count]
            if byKey[key] == nil { keys.append(key) }
            byKey[key, default: []].append(change)
        }
    }

    /// Whether there are so many that windows are read anew instead of moved.
    var areMany: Bool { keys.count > Self.countMax }

    private static let countMax = 200

    func changes(of key: TreeKey) -> [TreeChange] { byKey[key] ?? [] }

    /// Reads what the children are ordered by before the commit.
    func look(_ indexes: some Sequence<TreeQuery.Index>, _ before: TreeView) throws(Status) {
        for index in indexes {
            var found: [TreeKey: TreeIndexValue?] = [:]
            for key in keys { found[key] = .some(try index.value(of: path.child(key), in: before)) }
            values[index] = (found, [:])
        }
    }

    /// - Throws: when the tree before couldn't be read.
    func before(_ key: TreeKey, _ index: TreeQuery.Index) throws(Status) -> TreeIndexValue? {
        guard let value = values[index]?.before[key] else { throw .internalError("A child was not looked at.") }
        return value
    }

    func after(_ key: TreeKey, _ index: TreeQuery.Index, _ view: TreeView) throws(Status) -> TreeIndexValue? {
        if let known = values[index]?.after[key] { return known }
        let value = try index.value(of: path.child(key), in: view)
        values[index]?.after[key] = .some(value)
        return value
    }

    /// Where the children stand before and after the commit in the order of an index.
    func positions(_ index: TreeQuery.Index, _ view: TreeView) throws(Status) -> [[UInt8]] {
        var positions: [[UInt8]] = []
        for key in keys {
            let before = try before(key, index).map { TreeQuery.position(of: key, $0) }
            let after = try after(key, index, view).map { TreeQuery.position(of: key, $0) }
            if let before { positions.append(before) }
            if let after, after != before { positions.append(after) }
        }
        return positions
    }
}

extension TreeQuery.Index {
    /// What a child is ordered by, without reading more of it; nil when there is no such child.
    func value(of child: TreePath, in data: TreeView) throws(Status) -> TreeIndexValue? {
        guard try data.exists(at: child) else { return nil }
        switch self {
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
