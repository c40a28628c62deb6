import HearthTree

/// A child that differs between two states of a view; empty where it is absent.
struct ChildChange {
    let key: TreeKey
    let old: Node
    let new: Node
}

/// A query at a location with its observers and the data that they see.
final class View {
    let path: TreePath
    let query: TreeQuery
    /// The order in which the views of a location were created.
    let number: Int64
    private var observers = AscendingList<EngineObserver>()
    /// The observers by the kinds of events that they want.
    private var interested = EngineEvent.Kind.allCases.map { _ in AscendingList<EngineObserver>() }
    var isKeptSynced = false

    /// The known data that the query chooses from.
    private(set) var known = Node.empty
    /// The visible data: ordered and filtered.
    private(set) var shown = Node.empty
    /// Whether this data is complete: only then there are value events, before only child events for known
    /// children.
    private(set) var isComplete = false
    /// Created when an observer wants child events.
    private var order: ViewOrder?
    /// Created when children change and the query has a limit.
    private var limited: LimitWindow?

    // State of the sync tree.

    /// The server's data for this query, while it has a listen of its own or the covering listen has no data yet.
    var window: Node?
    var isWindowComplete = false
    /// While this query has a listen of its own.
    var tag: Int?
    /// Whether that listen is answered on the present connection.
    var isAnswered = false
    /// When it was sent, in the common order of listens and writes.
    var mark: Int64 = 0
    /// Whether `known` was made from all data of the location, not from some children.
    var isMadeOfWhole = false

    init(_ query: TreeQuery, at path: TreePath, number: Int64 = 0) {
        self.query = query
        self.path = path
        self.number = number
    }

    var isUsed: Bool { !observers.isEmpty || isKeptSynced }

    // MARK: Observers

    /// In the order of registration.
    var allObservers: [EngineObserver] {
        var all: [EngineObserver] = []
        observers.forEach { all.append($1) }
        return all
    }

    func add(_ observer: EngineObserver) {
        observers.append(Int64(observer.id.number), observer)
        for kind in EngineEvent.Kind.allCases where observer.kinds.contains(kind.asSet) {
            interested[kind.rawValue].append(Int64(observer.id.number), observer)
        }
    }

    @discardableResult
    func remove(_ id: ObserverID) -> EngineObserver? {
        for kind in EngineEvent.Kind.allCases { interested[kind.rawValue].remove(Int64(id.number)) }
        return observers.remove(Int64(id.number))
    }

    /// - Parameter events: the events of one change.
    func forEachObserver(of events: [EngineEvent], _ body: (EngineEvent, EngineObserver) -> Void) {
        var isListed = false
        for event in events {
            interested[event.kind.rawValue].forEach { _, observer in
                if observer.kinds.contains(.inListOrder) { isListed = true } else { body(event, observer) }
            }
        }
        if !isListed { return }
        for event in inListOrder(events) {
            interested[event.kind.rawValue].forEach { _, observer in
                if observer.kinds.contains(.inListOrder) { body(event, observer) }
            }
        }
    }

    /// The children that get a new position, one after the other. A sibling before one of them has its final position
    /// then, because it did not move or came earlier.
    private func inListOrder(_ events: [EngineEvent]) -> [EngineEvent] {
        let isPlaced: (EngineEvent) -> Bool = { $0.kind == .childAdded || $0.kind == .childMoved }
        guard let start = events.firstIndex(where: isPlaced), let end = events.lastIndex(where: isPlaced),
            events[start].kind != events[end].kind
        else { return events }
        var events = events
        events[start...end].sort { left, right in
            guard let leftKey = left.path.last, let rightKey = right.path.last else { return false }
            return query.compare((leftKey, left.node), (rightKey, right.node)) < 0
        }
        return events
    }

    // MARK: Changes

    /// - Parameters:
    ///   - node: the new data that the query chooses from.
    ///   - keys: the children that differ; nil when any may differ.
    /// - Returns: whether there is a change, and its events.
    func update(
        to node: Node, isComplete isNowComplete: Bool, keys: [TreeKey]? = nil
    ) -> (isChanged: Bool, events: [EngineEvent]) {
        let old = shown
        let wasComplete = isComplete
        isComplete = isNowComplete
        let changes = keys.map { show(node, $0) } ?? show(node)
        let isOwnChanged = old.priority != shown.priority || old.value != shown.value || old.isEmpty != shown.isEmpty
        let isChanged = !changes.isEmpty || isOwnChanged || wasComplete != isNowComplete
        if !isChanged { return (false, []) }
        var events: [EngineEvent] = []
        let wantsChildren = EngineEvent.Kind.allCases.contains { $0 != .value && !interested[$0.rawValue].isEmpty }
        if !wantsChildren {
            order = nil
        } else {
            if order == nil {
                order = ViewOrder(query.index, shown)
            } else {
                order?.update(to: shown, changes)
            }
            events = childEvents(changes)
        }
        if isNowComplete { events.append(valueEvent) }
        return (true, events)
    }

    private func show(_ node: Node) -> [ChildChange] {
        let old = shown
        known = node
        shown = query.result(of: node)
        limited = nil
        return Self.changes(from: old, to: shown)
    }

    /// - Parameter keys: the children that differ.
    private func show(_ node: Node, _ keys: [TreeKey]) -> [ChildChange] {
        let (oldKnown, oldShown) = (known, shown)
        known = node
        var moved: Set<TreeKey> = []
        if query.isUnfiltered {
            shown = node
        } else if let limit = query.limit {
            if limited == nil { limited = LimitWindow(query, limit: limit, of: oldKnown) }
            for key in keys { limited?.change(key, from: oldKnown.child(key), to: node.child(key), &moved) }
            moved.subtract(keys)
            for key in keys + moved { show(key, if: limited?.contains(key, node.child(key)) == true) }
        } else {
            for key in keys { show(key, if: query.contains(key, node.child(key))) }
        }
        return (keys + moved).compactMap { key in
            let change = ChildChange(key: key, old: oldShown.child(key), new: shown.child(key))
            if change.old.isEmpty, change.new.isEmpty { return nil }
            // A child that only moved is unchanged, if it was visible before and is now.
            return moved.contains(key) && change.old.isEmpty == change.new.isEmpty ? nil : change
        }
    }

    private func show(_ key: TreeKey, if isSeen: Bool) {
        shown = shown.setting(key, to: isSeen ? known.child(key) : .empty)
    }

    private static func changes(from old: Node, to new: Node) -> [ChildChange] {
        var changes: [ChildChange] = []
        var left = old.children.makeIterator()
        var right = new.children.makeIterator()
        var before = left.next()
        var after = right.next()
        while before != nil || after != nil {
            let order =
                if let before, let after { TreeKey.compare(before.key, after.key) } else { before == nil ? 1 : -1 }
            if order < 0, let (key, node) = before {
                changes.append(ChildChange(key: key, old: node, new: .empty))
            } else if order > 0, let (key, node) = after {
                changes.append(ChildChange(key: key, old: .empty, new: node))
            } else if let before, let after, before.node != after.node {
                changes.append(ChildChange(key: before.key, old: before.node, new: after.node))
            }
            if order <= 0 { before = left.next() }
            if order >= 0 { after = right.next() }
        }
        return changes
    }

    // MARK: Events

    private var valueEvent: EngineEvent {
        EngineEvent(kind: .value, path: path, node: shown, previousKey: nil, query: query)
    }

    private func childEvents(_ changes: [ChildChange]) -> [EngineEvent] {
        let byOld = sorted(changes.filter { !$0.old.isEmpty && $0.new.isEmpty }, by: \.old)
        let byNew = sorted(changes.filter { !$0.new.isEmpty }, by: \.new)
        let kept = byNew.filter { !$0.old.isEmpty }
        var events = byOld.map { event(.childRemoved, $0.key, $0.old) }
        events += byNew.lazy.filter(\.old.isEmpty).map { self.event(.childAdded, $0.key, $0.new) }
        events += kept.lazy.filter { change in
            let values = (self.query.indexValue(of: change.old), self.query.indexValue(of: change.new))
            return TreeIndexValue.compare(values.0, values.1) != 0
        }.map { self.event(.childMoved, $0.key, $0.new) }
        events += kept.map { event(.childChanged, $0.key, $0.new) }
        return events
    }

    private func sorted(_ changes: [ChildChange], by node: KeyPath<ChildChange, Node>) -> [ChildChange] {
        changes.sorted { query.compare(($0.key, $0[keyPath: node]), ($1.key, $1[keyPath: node])) < 0 }
    }

    private func event(_ kind: EngineEvent.Kind, _ key: TreeKey, _ node: Node) -> EngineEvent {
        let previous = kind == .childRemoved ? nil : order?.key(before: key, node)
        return EngineEvent(
            kind: kind, path: path.child(key), node: node, previousKey: previous, query: TreeQuery())
    }

    /// The events of a new observer for the existing data.
    func initialEvents(for observer: EngineObserver) -> [EngineEvent] {
        var events: [EngineEvent] = []
        if !observer.kinds.isDisjoint(with: .child), order == nil { order = ViewOrder(query.index, shown) }
        if observer.kinds.contains(.childAdded) {
            var previous: TreeKey?
            for (key, node) in query.orderedChildren(of: shown) {
                events.append(
                    EngineEvent(
                        kind: .childAdded, path: path.child(key), node: node, previousKey: previous,
                        query: TreeQuery()))
                previous = key
            }
        }
        if isComplete, observer.kinds.contains(.value) { events.append(valueEvent) }
        return events
    }
}
