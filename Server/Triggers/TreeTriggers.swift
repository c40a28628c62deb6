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
        let events = try TreeEvents(
            TreeEvents.Triggers([]), namespace: name, before: view, clock: clock
        ) { [weak self] _, trigger in self?.notify(trigger, name) }
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
        tree.setRecorder(events)
        for trigger in events.names {
            if definitions[trigger] == nil {
                forget(trigger, through: view.version, tree, events)
            } else if events.pending(trigger) > 0 {
                notify(trigger, name)
            }
        }
    }

    func notify(_ trigger: String, _ name: String, isEarlier: Bool = false) {
        dispatcher.notify(EventDispatcher.RouteID(trigger: trigger, database: name), isEarlier: isEarlier) {
            [weak self] in
            self?.source(trigger, name)
        }
    }

    /// Reads the events of a trigger in a namespace, which need not be open all the time.
    private func source(_ trigger: String, _ name: String) -> TreeEventSource? {
        state.withLock { state in
            guard let definition = state.definitions[trigger], state.trees[name] != nil else { return nil }
            let source = TreeEventSource(
                definition, namespace: name, location: location, clock: clock
            ) { [weak self] in self?.open(name) ?? .gone }
            state.trees[name]?.sources[trigger] = WeakSource(source: source)
            return source
        }
    }

    /// The namespace if it is open; otherwise it is opened in the background, and its routes are notified.
    private func open(_ name: String) -> TreeEventSource.Opening {
        let opening = state.withLock { state -> TreeEventSource.Opening in
            guard let known = state.trees[name] else { return .gone }
            guard let owner = known.owner, let tree = known.tree, !tree.isEnded else { return .opening }
            return .open(TreeEventSource.Open(tree: tree, owner: owner, events: known.events))
        }
        if case .opening = opening { opener.open(.namespace(name)) }
        return opening
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

    /// How many events of a trigger are not settled.
    func pending(_ trigger: String) -> Int {
        state.withLock { state in state.trees.values.reduce(0) { $0 + $1.events.pending(trigger) } }
    }

    func deadLetterCount(_ trigger: String) -> Int {
        state.withLock { state in state.trees.values.reduce(0) { $0 + $1.events.ledger.deadLetterCount(trigger) } }
    }

    /// When the oldest event was committed that is not settled.
    func oldestPending(_ trigger: String) -> Int64? {
        state.withLock { state in state.trees.values.compactMap { $0.events.oldestPending(trigger) }.min() }
    }

    /// Whether a namespace is open, or was and has nothing.
    func isKnown(_ namespace: String) -> Bool { state.withLock { $0.trees[namespace] != nil } }

    /// The namespaces that have something of a trigger.
    /// - Parameter open: opens one that may be closed.
    func those(
        _ isWanted: (TreeEvents) -> Bool, open: (String) throws(Status) -> Void
    ) throws(Status) -> [(tree: TreeDatabase, owner: any AnyObject & Sendable, events: TreeEvents)] {
        let names = state.withLock { state in state.trees.filter { isWanted($0.value.events) }.map(\.key) }
        var found: [(tree: TreeDatabase, owner: any AnyObject & Sendable, events: TreeEvents)] = []
        for name in names.sorted(by: { UTF8Order.compare($0, $1) < 0 }) {
            try open(name)
            let tree = state.withLock { state in
                state.trees[name].flatMap { known in
                    known.owner.flatMap { owner in known.tree.map { (tree: $0, owner: owner, events: known.events) } }
                }
            }
            if let tree { found.append(tree) }
        }
        return found
    }

    /// The namespaces that are closed and have something of a trigger.
    func closed(with trigger: String) -> [String] {
        state.withLock { state in
            state.trees.filter { _, known in
                known.owner == nil
                    && (known.events.pending(trigger) > 0 || known.events.ledger.deadLetterCount(trigger) > 0)
            }.map(\.key)
        }
    }

    /// What waits of a trigger that may have been paused.
    func notifyAll(_ trigger: String) {
        let names = state.withLock { state in
            state.trees.filter { $0.value.events.pending(trigger) > 0 }.map(\.key)
        }
        for name in names { notify(trigger, name) }
    }

    /// Deletes dead letters that were kept long enough, in the namespaces that are open.
    func expireDeadLetters(before time: Int64) {
        let open = state.withLock { state in
            state.trees.values.compactMap { known -> (TreeDatabase, TreeEvents)? in
                known.events.ledger.hasAny ? known.tree.map { ($0, known.events) } : nil
            }
        }
        for (tree, events) in open {
            for trigger in events.names where events.ledger.deadLetterCount(trigger) > 0 {
                expireDeadLetters(trigger, time, tree, events)
            }
        }
    }

    private func expireDeadLetters(_ trigger: String, _ time: Int64, _ tree: TreeDatabase, _ events: TreeEvents) {
        let step = SharedStep()
        tree.edit(
            { transaction throws(Status) in
                let count = try events.deleteDeadLetters(
                    trigger, before: time, in: transaction, limit: Self.forgottenMax)
                step.value.withLock { $0 = (count, count < Self.forgottenMax) }
            },
            completion: { [weak self, weak tree] result in
                guard case .success = result, let self, let tree, !step.value.withLock({ $0.isDone }) else { return }
                expireDeadLetters(trigger, time, tree, events)
            })
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

/// Lets two closures share what a transaction has done.
private final class SharedStep: Sendable {
    let value = Mutex<(events: Int, isDone: Bool)>((0, false))
}
