import HearthConcurrency
import HearthDocuments
import HearthEvents
import HearthHost
import HearthModel
import HearthTreeStorage
import Synchronization

/// The triggers of a server: which there are, which of their events wait in which database, and what became of the others.
package final class TriggerService: Sendable {
    package struct Configuration: Sendable {
        /// Of `hearth.json`.
        package var definitions: [TriggerDefinition] = []
        /// The region that events name.
        package var location = "us-central1"
        package var log = Log()

        package init() {}
    }

    private struct OpenDatabase {
        weak var database: Database?
        let events: DatabaseEvents
        /// What reads its events, by trigger, while there is a route.
        var sources: [String: WeakSource] = [:]
    }

    private struct WeakSource {
        weak var source: DocumentEventSource?
    }

    private struct State {
        var definitions: [String: TriggerDefinition] = [:]
        var databases: [DatabaseName: OpenDatabase] = [:]
    }

    private let state: Mutex<State>
    private let sender: EventSender
    private let dispatcher: EventDispatcher
    private let trees: TreeTriggers
    let journal: TriggerJournal
    private let location: String
    private let log: Log
    private let clock: any Clock

    /// How many events of a trigger that is gone are deleted by one transaction.
    private static let forgottenMax = 2000

    /// - Throws: RESOURCE_EXHAUSTED or UNAVAILABLE when the system provides no threads.
    package init(_ configuration: Configuration, clock: any Clock = SystemClock()) throws(Status) {
        var state = State()
        for definition in configuration.definitions { state.definitions[definition.name] = definition }
        self.state = Mutex(state)
        self.clock = clock
        location = configuration.location
        log = configuration.log
        journal = TriggerJournal(log: configuration.log, clock: clock)
        sender = try EventSender(clock: clock)
        dispatcher = EventDispatcher(sender: sender, observer: journal, clock: clock)
        trees = TreeTriggers(
            configuration.definitions, dispatcher: dispatcher, location: configuration.location,
            log: configuration.log, clock: clock)
        for definition in configuration.definitions { dispatcher.set(definition.name, Self.trigger(definition)) }
        try dispatcher.start()
    }

    private static func trigger(_ definition: TriggerDefinition) -> EventDispatcher.Trigger {
        EventDispatcher.Trigger(target: definition.target, terms: definition.terms)
    }

    /// What is sent and not answered is sent again after the next start.
    package func stop() {
        dispatcher.stop()
        sender.close()
    }

    // MARK: Databases

    /// Must be called with each database that is opened, before it is used.
    /// - Throws: what the store throws.
    package func opened(_ database: Database) throws(Status) {
        let name = database.name
        let definitions = state.withLock { Array($0.definitions.values) }.filter { $0.isFor(name) }
        let snapshot = try database.store.snapshot()
        defer { snapshot.close() }
        let events = try DatabaseEvents(DatabaseEvents.Triggers(definitions), in: snapshot) { [weak self] _, trigger in
            self?.notify(trigger, name)
        }
        database.setRecorder(events)
        state.withLock { state in
            state.databases = state.databases.filter { $0.value.database != nil }
            state.databases[name] = OpenDatabase(database: database, events: events)
        }
        for trigger in events.names {
            if !definitions.contains(where: { $0.name == trigger }) {
                forget(trigger, database, events)
            } else if events.pending(trigger) > 0 {
                notify(trigger, name)
            }
        }
    }

    /// The same for each tree of the Realtime Database.
    /// - Parameter owner: what keeps the tree open while there is a reference to it.
    package func opened(_ tree: TreeDatabase, of owner: any AnyObject & Sendable) throws(Status) {
        try trees.opened(tree, of: owner)
    }

    private func notify(_ trigger: String, _ name: DatabaseName) {
        dispatcher.notify(Self.route(trigger, name)) { [weak self] in self?.source(trigger, name) }
    }

    private static func route(_ trigger: String, _ name: DatabaseName) -> EventDispatcher.RouteID {
        EventDispatcher.RouteID(trigger: trigger, database: name.string)
    }

    /// Reads the events of a trigger in a database that is open.
    private func source(_ trigger: String, _ name: DatabaseName) -> DocumentEventSource? {
        state.withLock { state in
            guard let definition = state.definitions[trigger], let open = state.databases[name],
                let database = open.database
            else { return nil }
            let source = DocumentEventSource(
                definition, database: database, events: open.events, location: location, clock: clock)
            state.databases[name]?.sources[trigger] = WeakSource(source: source)
            return source
        }
    }

    /// Deletes the events of a trigger that is gone, a part at a time.
    private func forget(_ trigger: String, _ database: Database, _ events: DatabaseEvents, _ deleted: Int = 0) {
        let progress = Mutex((events: 0, isDone: false))
        let box = SharedValue(progress)
        database.perform(
            { transaction throws(Status) in
                let step = try events.forget(trigger, in: transaction, limit: Self.forgottenMax)
                box.value.withLock { $0 = step }
            },
            completion: { [weak self, weak database] result in
                guard case .success = result, let self, let database else { return }
                let step = box.value.withLock { $0 }
                if !step.isDone { return forget(trigger, database, events, deleted + step.events) }
                events.forgot(trigger)
                let count = deleted + step.events
                if count > 0 {
                    log.warning(
                        "events of a trigger that is gone were dropped", ("trigger", .string(trigger)),
                        ("database", .string(database.name.string)), ("events", .integer(count)))
                }
            })
    }

    // MARK: Definitions

    package var definitions: [TriggerDefinition] {
        state.withLock { $0.definitions.values.sorted { UTF8Order.compare($0.name, $1.name) < 0 } }
    }

    package func definition(_ name: String) -> TriggerDefinition? { state.withLock { $0.definitions[name] } }

    /// How many events of a trigger are not settled, in the databases that are open.
    package func pending(_ trigger: String) -> Int {
        state.withLock { state in state.databases.values.reduce(0) { $0 + $1.events.pending(trigger) } }
            + trees.pending(trigger)
    }

    /// Takes a trigger, or another definition of one. Its pattern holds for later commits.
    package func set(_ definition: TriggerDefinition) {
        let (former, sources) = state.withLock { state in
            (
                state.definitions.updateValue(definition, forKey: definition.name),
                state.databases.values.compactMap { $0.sources[definition.name]?.source }
            )
        }
        for source in sources { source.change(definition) }
        trees.set(definition)
        dispatcher.set(definition.name, Self.trigger(definition))
        if former == nil { journal.begin(definition.name) }
        refresh()
    }

    /// Ends a trigger, and drops its events.
    /// - Returns: false when there was none.
    package func remove(_ name: String) -> Bool {
        guard state.withLock({ $0.definitions.removeValue(forKey: name) }) != nil else { return false }
        dispatcher.remove(name)
        journal.end(name)
        refresh()
        for (database, events) in openDatabases { forget(name, database, events) }
        trees.remove(name)
        return true
    }

    private var openDatabases: [(Database, DatabaseEvents)] {
        state.withLock { state in
            state.databases.values.compactMap { open in open.database.map { ($0, open.events) } }
        }
    }

    /// The present definitions for later commits of all open databases.
    private func refresh() {
        let definitions = definitions
        for (database, events) in openDatabases {
            events.change(DatabaseEvents.Triggers(definitions.filter { $0.isFor(database.name) }))
        }
    }
}

/// Lets closures share a value that can't be copied.
private final class SharedValue<Value: ~Copyable & Sendable>: Sendable {
    let value: Value

    init(_ value: consuming Value) { self.value = value }
}
