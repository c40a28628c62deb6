import HearthConcurrency
import HearthEvents
import HearthHost
import HearthModel
import HearthTreeStorage
import Synchronization

/// The triggers of a server in namespaces of the Realtime Database: the part of `TriggerService` that is for them.
final class TreeTriggers: Sendable {
    private struct OpenTree: KnownEvents {
        weak var owner: (any AnyObject & Sendable)?
        weak var tree: TreeDatabase?
        let events: TreeEvents
        var sources: [String: WeakSource] = [:]

        var isOpen: Bool { owner != nil }
        var ledger: TriggerLedger { events.ledger }
    }

    private struct State {
        /// Those of the Realtime Database.
        private(set) var definitions: [String: TriggerDefinition] = [:]
        private var scopes = TriggerScopes([TriggerDefinition](), TreeEvents.Triggers.init)
        var trees: [String: OpenTree] = [:]
        private var forgetsAt = 64

        mutating func define(_ new: some Sequence<TriggerDefinition>) {
            definitions = [:]
            for definition in new where definition.type.product == .database {
                definitions[definition.name] = definition
            }
            scopes = TriggerScopes(definitions.values, TreeEvents.Triggers.init)
        }

        mutating func forgetClosed() { trees.forgetClosed(at: &forgetsAt) }

        /// The present definitions for later writes of all namespaces.
        mutating func refresh() { for name in trees.keys { refresh(name) } }

        /// The present definitions for later writes of a namespace.
        mutating func refresh(_ name: String) {
            trees[name]?.events.change(scopes.made { $0.isFor(namespace: name) })
        }
    }

    private let state: Mutex<State>
    private let dispatcher: EventDispatcher
    private let opener: DatabaseOpener
    private let location: String
    private let log: Log
    private let clock: any Clock

    init(
        _ definitions: [TriggerDefinition], dispatcher: EventDispatcher, opener: DatabaseOpener, location: String,
        log: Log, clock: any Clock
    ) {
        var state = State()
        state.define(definitions)
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
        ) { [weak self] trigger in self?.notify(trigger, name) }
        // Before others can edit the tree, so that each of their transactions is followed by `ended`; nothing is recorded yet.
        tree.setRecorder(events)
        let definitions = state.withLock { state in
            state.forgetClosed()
            // Routes live on while a namespace is closed.
            let sources = state.trees[name]?.sources ?? [:]
            state.trees[name] = OpenTree(owner: owner, tree: tree, events: events, sources: sources)
            // Within the lock: a definition that comes now finds the tree.
            state.refresh(name)
            return state.definitions
        }
        // So that they are not counted again when nothing of the namespace changes.
        if events.ledger.countsAreDue { tree.edit({ _ throws(Status) in }, completion: { _ in }) }
        let ids = events.ledger.ids
        removal(tree, events).run(ids.filter { definitions[$0.name]?.id != $0 })
        for id in ids where definitions[id.name]?.id == id && events.pending(id) > 0 { notify(id, name) }
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
            state.trees[name]?.sources[id.name] = WeakSource(definition: source.definition)
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
        let definitions = state.withLock { $0.definitions }
        for (tree, events) in openTrees {
            removal(tree, events).run(events.ledger.ids.filter { definitions[$0.name]?.id != $0 })
        }
    }

    /// Deletes what triggers that are gone have left in namespaces that are open.
    func forget(_ ids: [TriggerID]) {
        // Also where no event is known of: the first one may be under way.
        for (tree, events) in openTrees { removal(tree, events).run(ids) }
    }

    private func removal(_ tree: TreeDatabase, _ events: TreeEvents) -> EventRemoval {
        EventRemoval(ledger: events.ledger, database: tree.name, log: log) { [weak tree] body, completion in
            tree?.edit(body, completion: completion)
        }
    }

    private var openTrees: [(TreeDatabase, TreeEvents)] {
        state.withLock { state in
            state.trees.values.compactMap { open in open.tree.map { ($0, open.events) } }
        }
    }

    // MARK: Definitions

    /// How many events of a trigger are not settled.
    func pending(_ id: TriggerID) -> Int { state.withLock { $0.trees.pending(id) } }

    func deadLetterCount(_ id: TriggerID) -> Int { state.withLock { $0.trees.deadLetterCount(id) } }

    /// When the oldest event was committed that is not settled.
    func oldestPending(_ id: TriggerID) -> Int64? { state.withLock { $0.trees.oldest(id) } }

    /// Of the namespaces whose events are known.
    var ledgers: [TriggerLedger] { state.withLock { $0.trees.values.map { $0.events.ledger } } }

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

    /// The namespaces that are closed and have something of triggers.
    func closed(with ids: Set<TriggerID>) -> [String] { state.withLock { $0.trees.closed(with: ids) } }

    /// What waits of triggers that may have been paused.
    func notifyAll(_ ids: Set<TriggerID>) {
        for (name, id) in state.withLock({ $0.trees.waiting(for: ids) }) { notify(id, name) }
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

    /// Takes definitions; `refresh` has them hold for later writes.
    /// - Parameters:
    ///   - definitions: of both products.
    ///   - begun: those that are new, or others than before.
    func define(
        _ definitions: [String: TriggerDefinition], ended: [TriggerID], begun: [String: TriggerDefinition]
    ) {
        let sources = state.withLock { state in
            state.define(definitions.values)
            state.trees.removeSources(of: ended)
            return state.trees.sources(of: begun)
        }
        for (source, definition) in sources { source.change(definition) }
    }

    func refresh() { state.withLock { $0.refresh() } }
}
