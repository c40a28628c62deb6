import HearthTree

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
