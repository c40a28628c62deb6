import HearthConcurrency
import HearthEvents
import HearthHost
import HearthModel
import HearthTreeStorage
import Synchronization

/// The triggers of a server in namespaces of the Realtime Database: the part of `TriggerService` that is for them.
final class TreeTriggers: Sendable {
    private struct OpenTree {
        weak var owner: (any AnyObject & Sendable)?
        weak var tree: TreeDatabase?
        let events: TreeEvents
        /// What reads its events, by trigger, while there is a route.
        var sources: [String: WeakSource] = [:]
    }

    private struct WeakSource {
        weak var source: TreeEventSource?
    }

    private struct State {
        /// Those of the Realtime Database.
        var definitions: [String: TriggerDefinition] = [:]
        /// Those that are open, and those that were and have events or dead letters.
        var trees: [String: OpenTree] = [:]
        private var forgetsAt = 64

        /// Forgets namespaces that are closed and have nothing: now and then, so that opening many costs each the same.
        mutating func forgetClosed() {
            if trees.count < forgetsAt { return }
            trees = trees.filter { $0.value.owner != nil || $0.value.events.ledger.hasAny }
            forgetsAt = max(64, trees.count * 2)
        }
    }

    private let state: Mutex<State>
    private let dispatcher: EventDispatcher
    private let opener: DatabaseOpener
    private let location: String
    private let log: Log
    private let clock: any Clock

    /// How many events of a trigger that is gone are deleted by one transaction.
    private static let forgottenMax = 2000

    init(
        _ definitions: [TriggerDefinition], dispatcher: EventDispatcher, opener: DatabaseOpener, location: String,
        log: Log, clock: any Clock
    ) {
        var state = State()
        for definition in definitions where definition.type.product == .database {
            state.definitions[definition.name] = definition
        }
        self.state = Mutex(state)
        self.dispatcher = dispatcher
        self.opener = opener
        self.location = location
        self.log = log
        self.clock = clock
    }

    // MARK: Namespaces

    func opened(_ tree: TreeDatabase, of owner: any AnyObject & Sendable) throws(Status) {
        let name = tree.name
        let view = try tree.view()
        defer { view.close() }
        let (known, former) = state.withLock { ($0.definitions, $0.trees[name]?.events.ledger) }
        let events = try TreeEvents(
            TreeEvents.Triggers([]), namespace: name, before: view, clock: clock, former: former,
            serial: { known[$0]?.serial ?? 0 }
        ) { [weak self] _, trigger in self?.notify(trigger, name) }
        // Before others can edit the tree, so that each of their transactions is followed by `ended`; nothing is recorded yet.
        tree.setRecorder(events)
        let definitions = state.withLock { state in
            state.forgetClosed()
            // Routes live on while a namespace is closed.
            let sources = state.trees[name]?.sources ?? [:]
            state.trees[name] = OpenTree(owner: owner, tree: tree, events: events, sources: sources)
            // Within the lock: a definition that comes now finds the tree.
            let definitions = state.definitions.values.filter { $0.isFor(namespace: name) }
            events.change(TreeEvents.Triggers(definitions))
            return state.definitions
        }
        // So that they are not counted again when nothing of the namespace changes.
        if events.ledger.countsAreDue { tree.edit({ _ throws(Status) in }, completion: { _ in }) }
        for trigger in events.ledger.ids {
            if definitions[trigger.name]?.id != trigger {
                forget(trigger, tree, events)
            } else if events.pending(trigger) > 0 {
                notify(trigger, name)
            }
        }
    }

    func notify(_ id: TriggerID, _ name: String, isEarlier: Bool = false) {
        let route = EventDispatcher.RouteID(trigger: id.name, database: name, serial: id.serial)
        dispatcher.notify(route, isEarlier: isEarlier) { [weak self] in self?.source(id, name) }
    }

    /// Reads the events of a trigger in a namespace, which need not be open all the time.
    private func source(_ id: TriggerID, _ name: String) -> TreeEventSource? {
        state.withLock { state in
            guard let definition = state.definitions[id.name], definition.id == id, state.trees[name] != nil else {
                return nil
            }
            let source = TreeEventSource(
                definition, namespace: name, location: location, clock: clock
            ) { [weak self] in self?.opening(name) ?? .gone }
            state.trees[name]?.sources[id.name] = WeakSource(source: source)
            return source
        }
    }

    /// The namespace if it is open; otherwise it is opened in the background, and its routes are notified.
    private func opening(_ name: String) -> TreeEventSource.Opening {
        let opening = state.withLock { state -> TreeEventSource.Opening in
            guard let known = state.trees[name] else { return .gone }
            guard let owner = known.owner, let tree = known.tree, !tree.isEnded else { return .opening }
            return .open(TreeEventSource.Open(tree: tree, owner: owner, events: known.events))
        }
        if case .opening = opening { opener.open(.namespace(name)) }
        return opening
    }

    /// Deletes what removed triggers have left because it could not be deleted.
    func forgetRemoved() {
        let left = state.withLock { state in
            state.trees.values.flatMap { open in
                let removed = open.events.ledger.ids.filter { state.definitions[$0.name]?.id != $0 }
                return open.tree.map { tree in removed.map { ($0, tree, open.events) } } ?? []
            }
        }
        for (id, tree, events) in left { forget(id, tree, events) }
    }

    /// Deletes the events of a trigger that is gone, a part at a time.
    private func forget(_ id: TriggerID, _ tree: TreeDatabase, _ events: TreeEvents, _ deleted: Int = 0) {
        let step = SharedValue(Mutex((events: 0, isDone: false)))
        tree.edit(
            { transaction throws(Status) in
                let result = try events.ledger.forget(id, in: transaction, limit: Self.forgottenMax)
                step.value.withLock { $0 = result }
            },
            completion: { [weak self, weak tree] result in
                // Otherwise the rest is deleted when it is opened again.
                guard case .success = result, let self, let tree else { return }
                let (count, isDone) = step.value.withLock { $0 }
                if !isDone { return forget(id, tree, events, deleted + count) }
                if deleted + count > 0 {
                    log.warning(
                        "events of a trigger that is gone were dropped", ("trigger", .string(id.name)),
                        ("database", .string(tree.name)), ("events", .integer(deleted + count)))
                }
            })
    }

    // MARK: Definitions

    /// How many events of a trigger are not settled.
    func pending(_ id: TriggerID) -> Int {
        state.withLock { state in state.trees.values.reduce(0) { $0 + $1.events.pending(id) } }
    }

    func deadLetterCount(_ id: TriggerID) -> Int {
        state.withLock { state in state.trees.values.reduce(0) { $0 + $1.events.ledger.deadLetterCount(id) } }
    }

    /// When the oldest event was committed that is not settled.
    func oldestPending(_ id: TriggerID) -> Int64? {
        state.withLock { state in state.trees.values.compactMap { $0.events.ledger.oldest(id) }.min() }
    }

    /// Whether a namespace is open, or was since the start and is not forgotten.
    func isKnown(_ namespace: String) -> Bool { state.withLock { $0.trees[namespace] != nil } }

    /// A namespace that is open.
    func open(_ name: String) -> OpenTreeEvents? {
        state.withLock { state in
            guard let known = state.trees[name], let tree = known.tree, let owner = known.owner else { return nil }
            return OpenTreeEvents(tree: tree, owner: owner, events: known.events)
        }
    }

    /// The namespaces that have dead letters of a trigger, whether they are open or not.
    func names(withDeadLettersOf id: TriggerID) -> [String] {
        state.withLock { state in
            state.trees.filter { $0.value.events.ledger.deadLetterCount(id) > 0 }.map(\.key)
        }.sorted { UTF8Order.compare($0, $1) < 0 }
    }

    /// The namespaces that are closed and have something of a trigger.
    func closed(with id: TriggerID) -> [String] {
        state.withLock { state in
            state.trees.filter { _, known in known.owner == nil && known.events.ledger.hasAny(of: id) }.map(\.key)
        }
    }

    /// What waits of a trigger that may have been paused.
    func notifyAll(_ id: TriggerID) {
        let names = state.withLock { state in state.trees.filter { $0.value.events.pending(id) > 0 }.map(\.key) }
        for name in names { notify(id, name) }
    }

    /// The namespaces that are open and have events or dead letters.
    var open: [OpenTreeEvents] {
        state.withLock { state in
            state.trees.values.compactMap { known in
                guard known.events.ledger.hasAny, let tree = known.tree, let owner = known.owner else { return nil }
                return OpenTreeEvents(tree: tree, owner: owner, events: known.events)
            }
        }
    }

    /// Takes a trigger, or another definition of one; others of Cloud Firestore are none of these.
    func set(_ definition: TriggerDefinition) {
        guard definition.type.product == .database else { return }
        let sources = state.withLock { state in
            state.definitions[definition.name] = definition
            refresh(state)
            return state.trees.values.compactMap { $0.sources[definition.name]?.source }
        }
        for source in sources { source.change(definition) }
    }

    /// Ends a trigger, and drops its events.
    func remove(_ id: TriggerID) {
        let trees = state.withLock { state -> [(TreeDatabase, TreeEvents)] in
            if state.definitions.removeValue(forKey: id.name) == nil { return [] }
            for name in state.trees.keys { state.trees[name]?.sources[id.name] = nil }
            refresh(state)
            return state.trees.values.compactMap { open in open.tree.map { ($0, open.events) } }
        }
        // Also where no event is known of: the first one may be under way.
        for (tree, events) in trees { forget(id, tree, events) }
    }

    /// The present definitions for later writes.
    private func refresh(_ state: State) {
        // Many namespaces have the same.
        var made: [[String]: TreeEvents.Triggers] = [:]
        for (name, open) in state.trees {
            let definitions = state.definitions.values.filter { $0.isFor(namespace: name) }
            let key = definitions.map(\.name)
            let triggers = made[key] ?? TreeEvents.Triggers(definitions)
            made[key] = triggers
            open.events.change(triggers)
        }
    }
}
