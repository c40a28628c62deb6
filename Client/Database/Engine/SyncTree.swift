import HearthModel
import HearthTree

/// The views of all locations over the server's data and the pending writes: see `DatabaseEngine` for the
/// invariant.
///
/// Each operation changes the data first and then refreshes the affected views, those of lower locations before
/// those above. A complete view stays complete until a failed write shows that it never was.
final class SyncTree {
    let root = SyncPoint(.root)
    var server = ServerCache()
    var writes = WriteTree()
    /// Nil for a tree without a server, `.info`.
    let connection: (any DatabaseConnection)?
    let disk: Disk?
    private let outputs: OutputQueue
    private var viewsByObserver: [ObserverID: View] = [:]
    /// Single observers that have received their event.
    private var spent: [ObserverID] = []
    /// Views whose queries have a listen of their own.
    var viewsByTag: [Int: View] = [:]
    var lastTag = 0
    /// Whether requested listens have been sent, with the hash of the known data.
    var isConnected = false
    /// The location whose whole data the last message contained: the answer to a listen directly follows its data.
    var lastWholeLocation: TreePath?
    /// Counts sent listens and writes.
    var sendings: Int64 = 0

    init(connection: (any DatabaseConnection)?, disk: Disk?, outputs: OutputQueue) {
        self.connection = connection
        self.disk = disk
        self.outputs = outputs
    }

    // MARK: Observers

    func add(_ observer: EngineObserver, to query: TreeQuery, at path: TreePath) {
        let view = useView(query, at: path)
        view.add(observer)
        viewsByObserver[observer.id] = view
        for event in view.initialEvents(for: observer) { raise(event, to: observer) }
        provision(at: path, for: view)
    }

    /// The view of a query, with the known data.
    private func useView(_ query: TreeQuery, at path: TreePath) -> View {
        let point = root.makePoint(at: path)
        if let view = point.view(query) { return view }
        let view = point.makeView(query)
        let seeded = seed(view)
        refresh(view, .everything)
        if !seeded.isEmpty {
            resettle(changesAt: seeded) { _ in true }
            refresh(changesAt: seeded)
        }
        return view
    }

    func remove(_ id: ObserverID) {
        guard let view = viewsByObserver.removeValue(forKey: id) else { return }
        view.remove(id)?.isSpent = true
        removeIfUseless(view)
    }

    /// - Parameter isWanted: selects the query's observers to remove.
    func removeAll(_ query: TreeQuery, at path: TreePath, where isWanted: (EngineObserver) -> Bool) {
        guard let view = root.point(at: path)?.view(query) else { return }
        for observer in view.allObservers where isWanted(observer) { remove(observer.id) }
    }

    func keepSynced(_ isKept: Bool, _ query: TreeQuery, at path: TreePath) {
        if isKept {
            let view = useView(query, at: path)
            view.isKeptSynced = true
            provision(at: path, for: view)
        } else if let view = root.point(at: path)?.view(query) {
            view.isKeptSynced = false
            removeIfUseless(view)
        }
    }

    private func removeIfUseless(_ view: View) {
        guard !view.isUsed, let point = root.point(at: view.path) else { return }
        point.remove(view)
        disk?.stopUsing(view.query, at: view.path)
        provision(at: view.path, without: view)
        root.prune(atOrAbove: view.path)
    }

    /// Removes the observers of a listen that the server has rejected or revoked: those of one query, or of all
    /// queries at a location with a listen for all data. The connection does not have the listen any more.
    func cancel(_ query: TreeQuery?, at path: TreePath, _ failure: WireFailure) {
        guard let point = root.point(at: path) else { return }
        if query == nil { point.isListening = false }
        for view in query.map({ point.view($0).map { [$0] } ?? [] }) ?? point.views {
            if let tag = view.tag {
                viewsByTag[tag] = nil
                view.tag = nil
            }
            for observer in view.allObservers {
                viewsByObserver[observer.id] = nil
                if !observer.isSpent { outputs.append { observer.onCancel(failure) } }
                observer.isSpent = true
                view.remove(observer.id)
            }
            view.isKeptSynced = false
            point.remove(view)
            disk?.stopUsing(view.query, at: path)
        }
        provision(at: path, isLost: query == nil)
        root.prune(atOrAbove: path)
    }

    /// Called at the end of an operation.
    func removeSpent() {
        while let id = spent.popLast() { remove(id) }
    }

    func perform(_ body: () -> Void) { outputs.perform(body) }

    // MARK: Refreshing

    /// Updates the views after changes at some paths.
    /// - Parameters:
    ///   - isRevert: whether a write failed, so that data derived from it may become unknown again.
    ///   - cause: the last changed write; 0 for the server's data. Data that a later write replaced is the same as
    ///       before.
    /// - Returns: whether any view changed.
    @discardableResult
    func refresh(changesAt paths: [TreePath], isRevert: Bool = false, cause: Int64 = .max) -> Bool {
        var isChanged = false
        root.visit(changesAt: paths.map { $0.keys[...] }) { point, touch in
            for view in point.views where self.refresh(view, touch, isRevert: isRevert, cause: cause) {
                isChanged = true
            }
        }
        return isChanged
    }

    @discardableResult
    func refresh(_ view: View, _ touch: SyncPoint.Touch, isRevert: Bool = false, cause: Int64 = .max) -> Bool {
        let look = writes.look(at: view.path, over: server.completeNode(at: view.path))
        if look.start > cause, view.isComplete, view.isMadeOfWhole { return false }
        let change: (isChanged: Bool, events: [EngineEvent])
        if case .below(let locations) = touch, let (node, keys) = narrowContent(of: view, look, locations, cause) {
            change = view.update(to: node, isComplete: view.isComplete, keys: keys)
        } else {
            let content = content(of: view, look)
            if view.isComplete, !content.isComplete, !isRevert { return false }
            view.isMadeOfWhole = content.isWhole
            change = view.update(to: content.node, isComplete: content.isComplete)
        }
        view.forEachObserver(of: change.events) { raise($0, to: $1) }
        return change.isChanged
    }

    private func raise(_ event: EngineEvent, to observer: EngineObserver) {
        if observer.isSpent { return }
        if observer.isSingle {
            observer.isSpent = true
            spent.append(observer.id)
        }
        outputs.append { observer.onEvent(event) }
    }

    /// The data that the query of a view chooses from, computed again.
    func content(of view: View, _ look: WriteOverlay) -> (node: Node, isComplete: Bool, isWhole: Bool) {
        if server.isComplete(at: view.path), view.tag == nil {
            view.window = nil
            view.isWindowComplete = false
        }
        if let whole = look.result { return (whole, true, true) }
        // Only some children are known: those of the window, those that are complete, and those that are written.
        var keys = Set((view.window ?? .empty).children.map(\.key)).union(writes.keys(below: view.path))
        if !view.isWindowComplete { keys.formUnion(server.completeChildren(at: view.path)) }
        let known = keys.map { ($0, self.look(at: $0, in: view, look).result ?? .empty) }
        return (Node(children: known), view.isWindowComplete, false)
    }

    /// A child of a view's location: the data known without writes, and the writes.
    private func look(at key: TreeKey, in view: View, _ look: WriteOverlay) -> WriteOverlay {
        var child = look.child(key)
        if child.base != nil { return child }
        if let base = view.window?.child(key), !base.isEmpty {
            child.base = base
        } else if !view.isWindowComplete {
            child.base = server.completeNode(at: child.path)
        }
        return child
    }

    /// The new content of a view after changes at some paths below its location, with the children that differ; nil
    /// when there may be other differences.
    private func narrowContent(
        of view: View, _ look: WriteOverlay, _ locations: [ArraySlice<TreeKey>], _ cause: Int64
    ) -> (node: Node, keys: [TreeKey])? {
        let isWhole = look.base != nil
        guard view.isMadeOfWhole == isWhole, view.isComplete == (isWhole || view.isWindowComplete) else { return nil }
        if !isWhole {
            return children(of: view.known, locations, cause) { self.look(at: $0, in: view, look) }
        }
        return own(of: view.known, locations, look, cause)
    }

    /// A node after changes at some paths in it; nil when it is unchanged. Unchanged children are not read.
    private func reworked(
        _ node: Node, _ locations: [ArraySlice<TreeKey>], _ look: WriteOverlay, _ cause: Int64
    ) -> Node? {
        if look.start > cause { return nil }
        let isAll = locations.contains { $0.isEmpty || $0.first == .priority }
        guard !isAll, look.base != nil, let change = own(of: node, locations, look, cause) else {
            let new = look.result ?? .empty
            return new == node ? nil : new
        }
        return change.keys.isEmpty && change.node.priority == node.priority ? nil : change.node
    }

    /// A completely known node with its changed children; nil when other data may have changed, too.
    private func own(
        of node: Node, _ locations: [ArraySlice<TreeKey>], _ look: WriteOverlay, _ cause: Int64
    ) -> (node: Node, keys: [TreeKey])? {
        guard let base = look.base, let priority = look.priority else { return nil }
        let isLeaf = base.isLeaf || node.isLeaf
        if isLeaf, look.hasRemovals { return nil }
        let (new, keys) = children(of: node, locations, cause) { look.child($0) }
        // A leaf loses its value with its first child.
        if isLeaf, new.childCount == 0 { return nil }
        return (new.with(priority: priority), keys)
    }

    private func children(
        of node: Node, _ locations: [ArraySlice<TreeKey>], _ cause: Int64, look: (TreeKey) -> WriteOverlay
    ) -> (node: Node, keys: [TreeKey]) {
        var new = node
        var keys: [TreeKey] = []
        for (key, locations) in SyncPoint.split(locations) {
            guard let child = reworked(node.child(key), locations, look(key), cause) else { continue }
            new = new.setting(key, to: child)
            keys.append(key)
        }
        return (new, keys)
    }

    // MARK: Writes

    /// - Returns: whether any view changed.
    @discardableResult
    func add(_ write: PendingWrite) -> Bool {
        var write = write
        sendings += 1
        write.mark = sendings
        write.settled = settled(write)
        writes.add(write)
        return write.isVisible && refresh(changesAt: write.changes.map(\.path))
    }

    /// The server has answered a write.
    /// - Returns: whether any view changed.
    @discardableResult
    func answer(_ id: Int64, isAccepted: Bool) -> Bool {
        if isAccepted, let write = writes.writes[id] { keep(write) }
        return isAccepted ? remove([id], isRevert: false) : refuse([id])
    }

    /// - Parameter ids: the writes to revert.
    /// - Returns: whether any view changed.
    @discardableResult
    func refuse(_ ids: [Int64]) -> Bool { remove(ids, isRevert: true) }

    private func remove(_ ids: [Int64], isRevert: Bool) -> Bool {
        let removed = ids.compactMap { writes.remove($0) }
        guard let first = removed.map(\.id).min(), let last = removed.map(\.id).max() else { return false }
        let locations = removed.flatMap { $0.changes.map(\.path) }
        // Later writes were computed from the data that they had written.
        let isResettled = isRevert && (shiftSums(removed) || resettle(changesAt: locations, after: first))
        if isResettled { return refresh(changesAt: locations, isRevert: isRevert) }
        let visible = removed.filter(\.isVisible).flatMap { $0.changes.map(\.path) }
        if visible.isEmpty { return false }
        return refresh(changesAt: visible, isRevert: isRevert, cause: last)
    }

    /// Stores accepted writes on disk at locations without listens. They do not become server data in memory,
    /// because without a listen later changes by others would not arrive.
    private func keep(_ write: PendingWrite) {
        guard let disk else { return }
        for (change, original) in zip(write.settled, write.changes) {
            if change.isPriority || original.node.hasIncrement { continue }
            keepWhole(change.node, at: change.path, on: disk)
        }
    }

    /// Stores the data of a location unless it has a listen; locations below with a listen keep the server's data.
    func keepWhole(_ node: Node, at path: TreePath, on disk: Disk) {
        var node = node
        for point in listeningPoints(for: path) {
            if point.path.contains(path) { return }
            node = node.setting(point.path.relative(to: path), to: server.node(at: point.path))
        }
        disk.keepWhole(node, at: path)
    }

    /// The known data of a location, with writes applied.
    /// - Parameters:
    ///   - excluded: writes to ignore.
    ///   - end: the first of the later writes, which are ignored, too.
    /// - Returns: nil when not all of it is known.
    func known(at path: TreePath, excluding excluded: Set<Int64> = [], before end: Int64 = .max) -> Node? {
        let base = server.completeNode(at: path) ?? windowedNode(at: path)
        return writes.applied(
            at: path, to: base, WriteTree.Selection(includesHidden: true, excluded: excluded, end: end))
    }

    /// The same for requests whose base the server checks: unknown data counts as absent.
    func assumed(at path: TreePath, excluding excluded: Set<Int64> = [], before end: Int64 = .max) -> Node {
        let base = server.completeNode(at: path) ?? windowedNode(at: path) ?? .empty
        let selection = WriteTree.Selection(includesHidden: true, excluded: excluded, end: end)
        return writes.applied(at: path, to: base, selection) ?? .empty
    }

    /// The data of a location in a child of some filtered query's window.
    func windowedNode(at path: TreePath) -> Node? {
        for point in root.points(atOrAbove: path) where point.path.count < path.count {
            for view in point.views where view.isWindowComplete {
                if let child = view.window?.child(path.keys[point.path.count]), !child.isEmpty {
                    return child.node(at: TreePath(keys: Array(path.keys[(point.path.count + 1)...])))
                }
            }
        }
        return nil
    }
}
