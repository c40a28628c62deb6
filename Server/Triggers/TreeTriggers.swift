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
        var trees: [String: OpenTree] = [:]
    }

    private let state: Mutex<State>
    private let dispatcher: EventDispatcher
    private let location: String
    private let log: Log
    private let clock: any Clock

    /// How many events of a trigger that is gone are deleted by one transaction.
    private static let forgottenMax = 2000

    init(
        _ definitions: [TriggerDefinition], dispatcher: EventDispatcher, location: String, log: Log, clock: any Clock
    ) {
        var state = State()
        for definition in definitions where definition.type.product == .database {
            state.definitions[definition.name] = definition
        }
        self.state = Mutex(state)
        self.dispatcher = dispatcher
        self.location = location
        self.log = log
        self.clock = clock
    }

    // MARK: Namespaces

    func opened(_ tree: TreeDatabase, of owner: any AnyObject & Sendable) throws(Status) {
        let name = tree.name
        let view = try tree.view()
        defer { view.close() }
        let events = try TreeEvents(
            TreeEvents.Triggers([]), namespace: name, before: view, clock: clock
        ) { [weak self] _, trigger in self?.notify(trigger, name) }
        let definitions = state.withLock { state in
            state.trees = state.trees.filter { $0.value.owner != nil }
            state.trees[name] = OpenTree(owner: owner, tree: tree, events: events)
            // Within the lock: a definition that comes now finds the tree.
            let definitions = state.definitions.values.filter { $0.isFor(namespace: name) }
            events.change(TreeEvents.Triggers(definitions))
            return state.definitions
        }
        tree.setRecorder(events)
        for trigger in events.names {
            if definitions[trigger] == nil {
                forget(trigger, through: view.version, tree, events)
            } else if events.pending(trigger) > 0 {
                notify(trigger, name)
            }
        }
    }

    private func notify(_ trigger: String, _ name: String) {
        dispatcher.notify(EventDispatcher.RouteID(trigger: trigger, database: name)) { [weak self] in
            self?.source(trigger, name)
        }
    }

    /// Reads the events of a trigger in a namespace that is open.
    private func source(_ trigger: String, _ name: String) -> TreeEventSource? {
        state.withLock { state in
            guard let definition = state.definitions[trigger], let open = state.trees[name], let owner = open.owner,
                let tree = open.tree
            else { return nil }
            let source = TreeEventSource(
                definition, tree: tree, of: owner, events: open.events, location: location, clock: clock)
            state.trees[name]?.sources[trigger] = WeakSource(source: source)
            return source
        }
    }

    /// Deletes the events of a trigger that is gone, a part at a time.
    private func forget(
        _ trigger: String, through boundary: Int64, _ tree: TreeDatabase, _ events: TreeEvents, _ deleted: Int = 0
    ) {
        let step = SharedStep()
        tree.edit(
            { transaction throws(Status) in
                let (count, isDone) = try events.forget(
                    trigger, through: boundary, in: transaction, limit: Self.forgottenMax)
                step.value.withLock { $0 = (count, isDone) }
            },
            completion: { [weak self, weak tree] result in
                // Otherwise the next start goes on.
                guard case .success = result, let self, let tree else { return }
                let (count, isDone) = step.value.withLock { $0 }
                if !isDone { return forget(trigger, through: boundary, tree, events, deleted + count) }
                if deleted + count > 0 {
                    log.warning(
                        "events of a trigger that is gone were dropped", ("trigger", .string(trigger)),
                        ("database", .string(tree.name)), ("events", .integer(deleted + count)))
                }
            })
    }

    // MARK: Definitions

    /// How many events of a trigger are not settled, in the namespaces that are open.
    func pending(_ trigger: String) -> Int {
        state.withLock { state in
            state.trees.values.reduce(0) { $0 + ($1.owner == nil ? 0 : $1.events.pending(trigger)) }
        }
    }

    /// Takes a trigger, or another definition of one.
    func set(_ definition: TriggerDefinition) {
        // One of the same name may have been for the Realtime Database.
        guard definition.type.product == .database else { return remove(definition.name) }
        let sources = state.withLock { state in
            state.definitions[definition.name] = definition
            refresh(state)
            return state.trees.values.compactMap { $0.sources[definition.name]?.source }
        }
        for source in sources { source.change(definition) }
    }

    /// Ends a trigger, and drops its events.
    func remove(_ trigger: String) {
        let trees = state.withLock { state -> [(TreeDatabase, TreeEvents)] in
            if state.definitions.removeValue(forKey: trigger) == nil { return [] }
            refresh(state)
            return state.trees.values.compactMap { open in open.tree.map { ($0, open.events) } }
        }
        // Also where no event is known of: the first one may be under way.
        for (tree, events) in trees { forget(trigger, through: events.boundary, tree, events) }
    }

    /// The present definitions for later writes.
    private func refresh(_ state: State) {
        for (name, open) in state.trees {
            let definitions = state.definitions.values.filter { $0.isFor(namespace: name) }
            open.events.change(TreeEvents.Triggers(Array(definitions)))
        }
    }
}

/// Lets two closures share what a transaction has done.
private final class SharedStep: Sendable {
    let value = Mutex<(events: Int, isDone: Bool)>((0, false))
}
