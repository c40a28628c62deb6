import HearthModel
import HearthTree

/// The views of all places over the server's data and the pending writes: see `DatabaseEngine` for the invariant.
///
/// Each operation changes the data first and then refreshes the views that it concerns, those of lower places before those
/// above. A view that is complete stays so until a refused write shows that it never was.
final class SyncTree {
    let root = SyncPoint(.root)
    var server = ServerCache()
    var writes = WriteTree()
    /// Nil for a tree that nobody sends anything to, `.info`.
    let connection: (any DatabaseConnection)?
    let disk: Disk?
    private let outputs: OutputQueue
    private var viewsByObserver: [ObserverID: View] = [:]
    /// Single observers that got what they wanted.
    private var spent: [ObserverID] = []
    /// Views whose queries are listened to alone.
    var viewsByTag: [Int: View] = [:]
    var lastTag = 0
    /// Whether listens that were asked for have been sent, with the hash of what is known.
    var isConnected = false
    /// The place of which the last message brought all: the answer to a listen comes right behind its data.
    var lastWholePlace: TreePath?
    /// Counts what is sent: listens and writes.
    var sendings: Int64 = 0

    init(connection: (any DatabaseConnection)?, disk: Disk?, outputs: OutputQueue) {
        self.connection = connection
        self.disk = disk
        self.outputs = outputs
    }

    // MARK: Observers

    func add(_ observer: EngineObserver, to query: TreeQuery, at path: TreePath) {
        let view = useView(query, at: path)
        view.observers.append(observer)
        viewsByObserver[observer.id] = view
        for event in view.initialEvents(for: observer) { raise(event, to: observer) }
        provision(at: path)
    }

    /// The view of a query, with what is known of it.
    private func useView(_ query: TreeQuery, at path: TreePath) -> View {
        let point = root.makePoint(at: path)
        if let view = point.view(query) { return view }
        let view = View(query, at: path)
        point.add(view)
        let seeded = seed(view)
        refresh(view, .everything, isRevert: false)
        if !seeded.isEmpty {
            resettle(changesAt: seeded) { _ in true }
            refresh(changesAt: seeded)
        }
        return view
    }

    func remove(_ id: ObserverID) {
        guard let view = viewsByObserver.removeValue(forKey: id) else { return }
        view.observers.removeAll { observer in
            if observer.id == id { observer.isSpent = true }
            return observer.id == id
        }
        removeIfUseless(view)
    }

    /// - Parameter isWanted: which observers of the query go.
    func removeAll(_ query: TreeQuery, at path: TreePath, where isWanted: (EngineObserver) -> Bool) {
        guard let view = root.point(at: path)?.view(query) else { return }
        for observer in view.observers where isWanted(observer) { remove(observer.id) }
    }

    func keepSynced(_ isKept: Bool, _ query: TreeQuery, at path: TreePath) {
        if isKept {
            useView(query, at: path).isKeptSynced = true
            provision(at: path)
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
        root.prune(onTheWayTo: view.path)
    }

    /// Removes the observers of a listen that the server has refused or taken away: those of one query, or of all queries at a
    /// place that was listened to as a whole. The connection doesn't have the listen any more.
    func cancel(_ query: TreeQuery?, at path: TreePath, _ failure: WireFailure) {
        guard let point = root.point(at: path) else { return }
        if query == nil { point.isListening = false }
        for view in point.views where query == nil || view.query == query {
            if let tag = view.tag {
                viewsByTag[tag] = nil
                view.tag = nil
            }
            for observer in view.observers {
                viewsByObserver[observer.id] = nil
                if !observer.isSpent { outputs.append { observer.onCancel(failure) } }
                observer.isSpent = true
            }
            view.observers = []
            view.isKeptSynced = false
            point.remove(view)
            disk?.stopUsing(view.query, at: path)
        }
        provision(at: path, isLost: query == nil)
        root.prune(onTheWayTo: path)
    }

    /// At the end of an operation.
    func removeSpent() {
        while let id = spent.popLast() { remove(id) }
    }

    func perform(_ body: () -> Void) { outputs.perform(body) }

    // MARK: Refreshing

    /// Brings the views up to date with what changed at some places.
    /// - Parameter isRevert: whether a write was refused, so that what was seen because of it may become unknown again.
    /// - Returns: whether anybody sees anything else.
    @discardableResult
    func refresh(changesAt paths: [TreePath], isRevert: Bool = false) -> Bool {
        var isChanged = false
        root.visit(changesAt: paths.map { $0.keys[...] }) { point, touch in
            for view in point.views where self.refresh(view, touch, isRevert: isRevert) { isChanged = true }
        }
        return isChanged
    }

    @discardableResult
    func refresh(_ view: View, _ touch: SyncPoint.Touch, isRevert: Bool) -> Bool {
        let change: (isChanged: Bool, events: [EngineEvent])
        if case .children(let keys) = touch, let node = narrowContent(of: view, keys) {
            change = view.update(to: node, isComplete: true, keys: keys)
        } else {
            let (node, isComplete) = content(of: view)
            if view.isComplete, !isComplete, !isRevert { return false }
            change = view.update(to: node, isComplete: isComplete)
        }
        for event in change.events {
            for observer in view.observers where observer.kinds.contains(event.kind.asSet) {
                raise(event, to: observer)
            }
        }
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

    private func content(of view: View) -> (node: Node, isComplete: Bool) {
        let base = server.completeNode(at: view.path)
        view.isMadeOfWhole = base != nil
        if base != nil, view.tag == nil {
            view.window = nil
            view.isWindowComplete = false
        }
        if let whole = writes.applied(at: view.path, to: base) { return (view.query.result(of: whole), true) }
        // Only some children are known: those of the window, or those that are complete by themselves.
        view.isMadeOfWhole = false
        var known: [TreeKey: Node] = [:]
        for (key, child) in (view.window ?? .empty).children { known[key] = child }
        if !view.isWindowComplete {
            for key in server.completeChildren(at: view.path) { known[key] = server.node(at: view.path.child(key)) }
        }
        for (key, child) in known { known[key] = writes.applied(at: view.path.child(key), to: child) }
        for key in writes.keys(below: view.path) where known[key] == nil {
            known[key] = writes.applied(at: view.path.child(key), to: nil)
        }
        let node = Node(children: known.map { ($0.key, $0.value) })
        return (view.query.result(of: node), view.isWindowComplete)
    }

    /// The new content when only some children of a complete place changed, and neither a limit nor the place's own priority
    /// makes others matter; else nil.
    private func narrowContent(of view: View, _ keys: [TreeKey]) -> Node? {
        guard view.isMadeOfWhole, view.isComplete, view.query.limit == nil, !writes.touches(view.path),
            let base = server.completeNode(at: view.path), base.childCount > 0, base.priority == nil,
            view.shown.priority == nil, view.shown.childCount > 0 || !view.query.isUnfiltered
        else { return nil }
        var node = view.shown
        for key in keys {
            let child = writes.applied(at: view.path.child(key), to: base.child(key)) ?? .empty
            let isSeen = !child.isEmpty && view.query.contains(key, child)
            node = node.setting(key, to: isSeen ? child : .empty)
        }
        return node
    }

    // MARK: Writes

    /// - Returns: whether anybody sees anything else.
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
    /// - Returns: whether anybody sees anything else.
    @discardableResult
    func answer(_ id: Int64, isAccepted: Bool) -> Bool {
        if isAccepted, let write = writes.writes[id] { keep(write) }
        guard let write = writes.remove(id) else { return false }
        let places = write.changes.map(\.path)
        // Those after it found what it had written.
        if !isAccepted { resettle(changesAt: places) { $0.id > id } }
        return refresh(changesAt: places, isRevert: !isAccepted)
    }

    /// What the server has taken is worth keeping on disk where nobody listens. It isn't taken for server data in memory: what
    /// others wrote after it, nobody would tell.
    private func keep(_ write: PendingWrite) {
        guard let disk else { return }
        for (change, original) in zip(write.settled, write.changes) {
            if change.isPriority || original.node.hasIncrement { continue }
            keepWhole(change.node, at: change.path, on: disk)
        }
    }

    /// Keeps the data of a place unless it is listened to; places below it that are keep what the server told.
    func keepWhole(_ node: Node, at path: TreePath, on disk: Disk) {
        var node = node
        for point in listeningPoints(for: path) {
            if point.path.contains(path) { return }
            node = node.setting(point.path.relative(to: path), to: server.node(at: point.path))
        }
        disk.keepWhole(node, at: path)
    }

    /// What is known of a place, with writes on top.
    /// - Parameters:
    ///   - excluded: writes that don't count.
    ///   - end: the first of the later writes, which don't count either.
    /// - Returns: nil when not all of it is known.
    func known(at path: TreePath, excluding excluded: Set<Int64> = [], before end: Int64 = .max) -> Node? {
        let base = server.completeNode(at: path) ?? windowedNode(at: path)
        return writes.applied(
            at: path, to: base, WriteTree.Selection(includesHidden: true, excluded: excluded, end: end))
    }

    /// The same for what asks the server whether it is right: what isn't known isn't there.
    func assumed(at path: TreePath, excluding excluded: Set<Int64> = []) -> Node {
        let base = server.completeNode(at: path) ?? windowedNode(at: path) ?? .empty
        let selection = WriteTree.Selection(includesHidden: true, excluded: excluded, end: .max)
        return writes.applied(at: path, to: base, selection) ?? .empty
    }

    /// The data of a place that lies in a child of some filtered query's window.
    func windowedNode(at path: TreePath) -> Node? {
        for point in root.points(onTheWayTo: path) where point.path.count < path.count {
            for view in point.views where view.isWindowComplete {
                if let child = view.window?.child(path.keys[point.path.count]), !child.isEmpty {
                    return child.node(at: TreePath(keys: Array(path.keys[(point.path.count + 1)...])))
                }
            }
        }
        return nil
    }
}
