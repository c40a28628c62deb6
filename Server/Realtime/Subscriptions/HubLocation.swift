import HearthModel
import HearthTree
import HearthTreeStorage

/// A location in the trie of listeners. Belongs to the writer's thread of its database.
final class HubLocation {
    let path: TreePath
    private var children: [TreeKey: HubLocation] = [:]
    /// The listeners of the whole location, one entry per loop.
    private(set) var plain: [SharedListen] = []
    private(set) var windows: [TreeQuery: RealtimeSharedQuery] = [:]
    /// The same in an index by their ranges.
    private(set) var filed = WindowIndex()

    init(path: TreePath) {
        self.path = path
    }

    /// Whether there are no listeners here or below.
    var isEmpty: Bool { plain.isEmpty && windows.isEmpty && children.isEmpty }

    /// Whether there are listeners at this location itself.
    var isListened: Bool { !plain.isEmpty || !windows.isEmpty }

    var childCount: Int { children.count }

    func child(_ key: TreeKey) -> HubLocation? { children[key] }

    func forEachChild(_ body: (TreeKey, HubLocation) -> Void) {
        for (key, child) in children { body(key, child) }
    }

    /// The locations below it, with the path to each.
    func forEachBelow(_ body: (HubLocation) -> Void) {
        for child in children.values {
            body(child)
            child.forEachBelow(body)
        }
    }

    /// The location with a path, created if it doesn't exist.
    func descendant(_ path: TreePath) -> HubLocation {
        var location = self
        for (depth, key) in path.keys.enumerated() {
            if let known = location.children[key] {
                location = known
            } else {
                let made = HubLocation(path: TreePath(keys: Array(path.keys[...depth])))
                location.children[key] = made
                location = made
            }
        }
        return location
    }

    func find(_ path: TreePath) -> HubLocation? {
        var location = self
        for key in path.keys {
            guard let next = location.children[key] else { return nil }
            location = next
        }
        return location
    }

    /// Removes the locations on a path that have no listeners any more.
    func prune(_ path: TreePath) { prune(path.keys[...]) }

    private func prune(_ keys: ArraySlice<TreeKey>) {
        guard let key = keys.first, let child = children[key] else { return }
        child.prune(keys.dropFirst())
        if child.isEmpty { children[key] = nil }
    }

    /// - Parameter shared: without a query.
    func add(_ shared: SharedListen) { plain.append(shared) }

    /// The window of a query, created if there is none.
    func window(of query: TreeQuery) -> RealtimeSharedQuery {
        if let window = windows[query] { return window }
        let window = RealtimeSharedQuery(query, path)
        windows[query] = window
        filed.file(window)
        return window
    }

    func forget(_ window: RealtimeSharedQuery) {
        window.listens = []
        remove(window)
    }

    private func remove(_ window: RealtimeSharedQuery) {
        filed.remove(window)
        if windows[window.query] === window { windows[window.query] = nil }
    }

    /// Must be called whenever a window has changed.
    func hasChanged(_ window: RealtimeSharedQuery) {
        if windows[window.query] === window { filed.file(window) }
    }

    func remove(_ shared: SharedListen) {
        guard let query = shared.target.query else {
            plain.removeAll { $0 === shared }
            return
        }
        guard let window = windows[query] else { return }
        window.listens.removeAll { $0 === shared }
        if window.listens.isEmpty { remove(window) }
    }
}

/// The changes of a commit that a location of the trie receives.
struct HubRoute {
    let location: HubLocation
    /// Of the changes at or below the location.
    var inside: [Int] = []
    /// Of the change above it.
    var above: Int?
    /// The value that this change sets here, when there is no other.
    var part: Node?
    /// Whether the value is known to be different.
    var isChanged = false
    /// The location's children that the changes touch; nil when they replace the location itself, or no window needs
    /// them.
    var children: TouchedChildren?

    /// The new value for the windows when a commit replaces the location itself, read once for all of them; nil when
    /// the value and the windows are so large that they are read beside the writer.
    func replacement(_ after: TreeView) throws(Status) -> Node? {
        let node: Node
        if let part {
            node = part
        } else {
            let bytesMax = Limits.realtimeCompareBytesMax
            if try after.sizeEstimate(at: location.path, upTo: bytesMax) > bytesMax { return nil }
            node = try after.node(at: location.path)
        }
        return node.childCount * location.windows.count > Self.replacedMax ? nil : node
    }

    /// The maximum number of children that are read for all windows of a replaced location.
    private static let replacedMax = 20_000
}

/// Makes the events of a commit for listeners without a query; listeners with the same event share one object.
final class HubPushes {
    private let commit: TreeCommit
    private var made: [[Int]: RealtimePush] = [:]

    init(_ commit: TreeCommit) {
        self.commit = commit
    }

    func plain(for route: HubRoute) -> RealtimeEvent.Change? {
        if route.location.plain.isEmpty { return nil }
        if let above = route.above {
            let change = commit.changes[above]
            let part = route.part ?? change.node.node(at: route.location.path.relative(to: change.path))
            return .push(RealtimePush(.put(route.location.path, part)))
        }
        if let known = made[route.inside] { return .push(known) }
        let push = RealtimePush(kind(route.inside))
        made[route.inside] = push
        return .push(push)
    }

    private func kind(_ indexes: [Int]) -> RealtimePush.Kind {
        let isWhole = indexes.count == commit.changes.count
        if indexes.count == 1, commit.base == nil || !isWhole {
            let change = commit.changes[indexes[0]]
            return .put(change.path, change.node)
        }
        let base = isWhole ? commit.base ?? common(indexes) : common(indexes)
        let changes = RealtimePush.ordered(indexes.map { commit.changes[$0] })
        return .merge(base, changes.map { ($0.path.relative(to: base), $0.node) })
    }

    /// The lowest common location of several changes.
    private func common(_ indexes: [Int]) -> TreePath {
        var base = commit.changes[indexes[0]].path.parent ?? .root
        for index in indexes {
            while !base.contains(commit.changes[index].path) || base == commit.changes[index].path {
                base = base.parent ?? .root
            }
        }
        return base
    }
}
