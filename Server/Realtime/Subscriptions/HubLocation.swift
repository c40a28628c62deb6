import HearthModel
import HearthTree
import HearthTreeStorage

/// A place in the trie of listeners. Belongs to the writer's thread of its database.
final class HubLocation {
    let path: TreePath
    private var children: [TreeKey: HubLocation] = [:]
    /// Those who listen to the whole place, one a loop.
    private(set) var plain: [SharedListen] = []
    private(set) var windows: [TreeQuery: RealtimeSharedQuery] = [:]
    /// The same by what concerns them.
    private(set) var filed = WindowIndex()

    init(path: TreePath) {
        self.path = path
    }

    /// Whether nobody listens here or below.
    var isEmpty: Bool { plain.isEmpty && windows.isEmpty && children.isEmpty }

    /// Whether somebody listens to this very place.
    var isListened: Bool { !plain.isEmpty || !windows.isEmpty }

    var childCount: Int { children.count }

    func child(_ key: TreeKey) -> HubLocation? { children[key] }

    func forEachChild(_ body: (TreeKey, HubLocation) -> Void) {
        for (key, child) in children { body(key, child) }
    }

    /// The places below it with the way to each.
    func forEachBelow(_ body: (HubLocation) -> Void) {
        for child in children.values {
            body(child)
            child.forEachBelow(body)
        }
    }

    /// The place with a path, made if it isn't there.
    func descendant(_ path: TreePath) -> HubLocation {
        var place = self
        for (depth, key) in path.keys.enumerated() {
            if let known = place.children[key] {
                place = known
            } else {
                let made = HubLocation(path: TreePath(keys: Array(path.keys[...depth])))
                place.children[key] = made
                place = made
            }
        }
        return place
    }

    func find(_ path: TreePath) -> HubLocation? {
        var place = self
        for key in path.keys {
            guard let next = place.children[key] else { return nil }
            place = next
        }
        return place
    }

    /// Takes out the places on a way that nobody needs any more.
    func prune(_ path: TreePath) { prune(path.keys[...]) }

    private func prune(_ keys: ArraySlice<TreeKey>) {
        guard let key = keys.first, let child = children[key] else { return }
        child.prune(keys.dropFirst())
        if child.isEmpty { children[key] = nil }
    }

    /// - Parameter shared: without a query.
    func add(_ shared: SharedListen) { plain.append(shared) }

    /// The window of a query, made if there is none.
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

    /// To be called whenever a window has changed.
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

/// Which changes of a commit a place of the trie hears of.
struct HubRoute {
    let place: HubLocation
    /// Of the changes at or below the place.
    var inside: [Int] = []
    /// Of the change above it.
    var above: Int?
    /// What that change puts here, when no other does.
    var part: Node?
    /// Whether that is known to be another than before.
    var isChanged = false
    /// The place's children that the changes touch; nil when they replace the place itself, or nobody asks.
    var children: TouchedChildren?

    /// What windows are told when the place itself is replaced by a commit: what is there then, read once for all of them;
    /// nil when that and the windows are so many that they are read beside the writer.
    func replacement(_ after: TreeView) throws(Status) -> Node? {
        let node: Node
        if let part {
            node = part
        } else {
            let bytesMax = Limits.realtimeCompareBytesMax
            if try after.sizeEstimate(at: place.path, upTo: bytesMax) > bytesMax { return nil }
            node = try after.node(at: place.path)
        }
        return node.childCount * place.windows.count > Self.replacedMax ? nil : node
    }

    /// Children that are looked at for all windows of a place that is replaced.
    private static let replacedMax = 20_000
}

/// Makes what listeners without a query hear of a commit; those who hear the same get one object.
final class HubPushes {
    private let commit: TreeCommit
    private var made: [[Int]: RealtimePush] = [:]

    init(_ commit: TreeCommit) {
        self.commit = commit
    }

    func plain(for route: HubRoute) -> RealtimeEvent.Change? {
        if route.place.plain.isEmpty { return nil }
        if let above = route.above {
            let change = commit.changes[above]
            let part = route.part ?? change.node.node(at: route.place.path.relative(to: change.path))
            return .push(RealtimePush(.put(route.place.path, part)))
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

    /// The place above all of several changes.
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
