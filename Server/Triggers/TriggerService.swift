import HearthConcurrency
import HearthDocuments
import HearthEvents
import HearthHost
import HearthModel
import HearthTreeStorage
import Synchronization

/// The triggers of a server: which there are, which of their events wait in which database, and what became of the others.
///
/// A database that has events is opened when the server starts, and again whenever something of it is sent or stored; in
/// between it may be closed.
package final class TriggerService: Sendable {
    package struct Configuration: Sendable {
        /// Of `hearth.json` and of administrators.
        package var definitions: [TriggerDefinition] = []
        /// The region that events name.
        package var location = "us-central1"
        package var log = Log()

        package init() {}
    }

    struct OpenDatabase {
        weak var database: Database?
        let events: DatabaseEvents
        /// What reads its events, by trigger, while there is a route.
        var sources: [String: WeakSource] = [:]
    }

    struct WeakSource {
        weak var source: DocumentEventSource?
    }

    struct State {
        var definitions: [String: TriggerDefinition] = [:]
        /// Those that are open, and those that were and have events or dead letters.
        var databases: [DatabaseName: OpenDatabase] = [:]
        var directory: TriggerDirectory?
        var isStopped = false
        private var forgetsAt = 64

        /// Forgets databases that are closed and have nothing: now and then, so that opening many costs each the same.
        mutating func forgetClosed() {
            if databases.count < forgetsAt { return }
            databases = databases.filter { $0.value.database != nil || $0.value.events.ledger.hasAny }
            forgetsAt = max(64, databases.count * 2)
        }

        /// The present definitions for later commits of all databases, of which many have the same.
        func refresh() {
            var made: [[String]: DatabaseEvents.Triggers] = [:]
            for (name, open) in databases {
                let those = definitions.values.filter { $0.isFor(name) }
                let key = those.map(\.name)
                let triggers = made[key] ?? DatabaseEvents.Triggers(those)
                made[key] = triggers
                open.events.change(triggers)
            }
        }

        /// The present definitions for later commits of a database.
        func refresh(_ name: DatabaseName) {
            databases[name]?.events.change(DatabaseEvents.Triggers(definitions.values.filter { $0.isFor(name) }))
        }
    }

    let state: Mutex<State>
    let sender: EventSender
    /// Tests whose endpoints have not answered yet.
    let tests = Atomic(0)
    let dispatcher: EventDispatcher
    let trees: TreeTriggers
    let journal: TriggerJournal
    let location: String
    let log: Log
    let clock: any Clock
    /// Has changes of definitions made one after the other; the number of the last one.
    private let changing = Mutex<UInt64>(0)
    private let opener: DatabaseOpener
    private let work = LifecycleThreads(threadsMax: 1, name: "hearth-trigger-work")

    /// How many events of a trigger that is gone are deleted by one transaction.
    private static let forgottenMax = 2000
    /// Triggers of a server.
    package static let countMax = 500

    /// - Throws: RESOURCE_EXHAUSTED or UNAVAILABLE when the system provides no threads.
    package init(_ configuration: Configuration, clock: any Clock = SystemClock()) throws(Status) {
        var state = State()
        for definition in configuration.definitions { state.definitions[definition.name] = definition }
        self.state = Mutex(state)
        self.clock = clock
        location = configuration.location
        log = configuration.log
        journal = TriggerJournal(log: configuration.log, clock: clock)
        sender = EventSender(clock: clock)
        dispatcher = EventDispatcher(sender: sender, observer: journal, clock: clock)
        opener = DatabaseOpener(log: configuration.log, clock: clock)
        trees = TreeTriggers(
            configuration.definitions, dispatcher: dispatcher, opener: opener, location: configuration.location,
            log: configuration.log, clock: clock)
        for definition in configuration.definitions {
            dispatcher.set(definition.name, Self.trigger(definition))
            journal.begin(definition.id)
        }
        journal.notify(missing: { [weak self] trigger, revision in self?.missing(trigger, revision) })
        opener.attach(self)
        if !configuration.definitions.isEmpty { try dispatcher.start() }
    }

    private static func trigger(_ definition: TriggerDefinition) -> EventDispatcher.Trigger {
        EventDispatcher.Trigger(target: definition.target, terms: definition.terms, revision: definition.revision)
    }

    /// Opens, one after the other and in the background, the databases in which an earlier run of the process may have left
    /// events. To be called once, when databases can be opened.
    package func start(_ directory: TriggerDirectory) {
        let isNeeded = state.withLock { state in
            state.directory = directory
            return !state.definitions.isEmpty
        }
        opener.start(directory, opensAll: isNeeded)
    }

    /// Tries again to open databases that couldn't be opened. To be called about once a second.
    package func poll() { opener.poll() }

    /// Waits until the events and dead letters that an earlier run has left are known: before, there seem to be none. Must
    /// not run on an event loop.
    func waitUntilOpened() { opener.waitUntilOpened() }

    /// Runs work for administrators, which may wait for disks: one after the other, on a thread of their own.
    func background(_ job: @escaping @Sendable () -> Void) { work.run(job) }

    /// Sends nothing new, and ends what administrators have begun. To be called before everything else that takes a part
    /// of the time of a stop; `stop` follows.
    package func beginStop() {
        state.withLock { $0.isStopped = true }
        opener.drain()
        dispatcher.startDraining()
    }

    /// What is sent and not answered in time is sent again after the next start. Databases can still be opened meanwhile, to
    /// store what was answered.
    /// - Parameter graceSeconds: how long requests under way may take.
    package func stop(graceSeconds: Double = 0) {
        beginStop()
        if graceSeconds > 0 { dispatcher.drain(seconds: graceSeconds) }
        opener.stop()
        work.stop()
        dispatcher.stop()
        sender.close()
    }

    /// - Throws: UNAVAILABLE when the server is being stopped.
    func checkRunning() throws(Status) {
        if state.withLock({ $0.isStopped }) { throw .unavailable("The server is being stopped.") }
    }

    // MARK: Databases

    /// Must be called with each database that is opened, before it is used.
    /// - Throws: what the store throws.
    package func opened(_ database: Database) throws(Status) {
        let name = database.name
        let (definitions, former) = state.withLock { state in
            (state.definitions, state.databases[name]?.events.ledger)
        }
        let snapshot = try database.store.snapshot()
        defer { snapshot.close() }
        let triggers = DatabaseEvents.Triggers(definitions.values.filter { $0.isFor(name) })
        let events = try DatabaseEvents(
            triggers, in: snapshot, former: former, serial: { definitions[$0]?.serial ?? 0 }
        ) { [weak self] _, trigger in
            self?.notify(trigger, name)
        }
        database.setRecorder(events)
        state.withLock { state in
            state.forgetClosed()
            // Routes live on while a database is closed.
            let sources = state.databases[name]?.sources ?? [:]
            state.databases[name] = OpenDatabase(database: database, events: events, sources: sources)
            // Triggers may have changed meanwhile.
            state.refresh(name)
        }
        for trigger in events.ledger.ids {
            // One that is for other databases now keeps what it has of this one.
            if isRemoved(trigger) {
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

    /// Whether a trigger that had events in databases of Cloud Firestore is none any more. One of the other product is another
    /// trigger.
    private func isRemoved(_ id: TriggerID) -> Bool {
        let definition = definition(id.name)
        return definition?.id != id || definition?.type.product != .firestore
    }

    /// Deletes what removed triggers have left because it could not be deleted, such as on a full disk.
    package func forgetRemoved() {
        for (database, events) in openDatabases {
            for id in events.ledger.ids where isRemoved(id) { forget(id, database, events) }
        }
        trees.forgetRemoved()
    }

    /// Whether a trigger was not removed.
    func exists(_ id: TriggerID) -> Bool { state.withLock { $0.definitions[id.name]?.id == id } }

    func notify(_ id: TriggerID, _ name: DatabaseName, isEarlier: Bool = false) {
        let route = EventDispatcher.RouteID(trigger: id.name, database: name.string, serial: id.serial)
        dispatcher.notify(route, isEarlier: isEarlier) { [weak self] in self?.source(id, name) }
    }

    /// Reads the events of a trigger in a database, which need not be open all the time.
    private func source(_ id: TriggerID, _ name: DatabaseName) -> DocumentEventSource? {
        state.withLock { state -> DocumentEventSource? in
            guard let definition = state.definitions[id.name], definition.id == id, state.databases[name] != nil
            else { return nil }
            let source = DocumentEventSource(definition, location: location, clock: clock) { [weak self] in
                self?.open(name) ?? .gone
            }
            state.databases[name]?.sources[id.name] = WeakSource(source: source)
            return source
        }
    }

    /// The database if it is open; otherwise it is opened in the background, and its routes are notified.
    private func open(_ name: DatabaseName) -> DocumentEventSource.Opening {
        let opening = state.withLock { state -> DocumentEventSource.Opening in
            guard let known = state.databases[name] else { return .gone }
            guard let database = known.database, database.closedStatus == nil else { return .opening }
            return .open(DocumentEventSource.Open(database: database, events: known.events))
        }
        if case .opening = opening { opener.open(.database(name)) }
        return opening
    }

    /// The functions emulator of Firebase's tools knows a function only until it is loaded anew. One that was registered
    /// again meanwhile stays.
    private func missing(_ trigger: String, _ revision: UInt64) {
        guard let definition = definition(trigger), definition.source == .emulator, definition.revision == revision
        else { return }
        background { [weak self] in _ = self?.remove(trigger, revision: revision) }
    }

    /// Deletes the events of a trigger that is gone, a part at a time.
    private func forget(_ id: TriggerID, _ database: Database, _ events: DatabaseEvents, _ deleted: Int = 0) {
        let progress = SharedValue(Mutex((events: 0, isDone: false)))
        events.edit(
            database,
            { transaction throws(Status) in
                let step = try events.ledger.forget(id, in: transaction, limit: Self.forgottenMax)
                progress.value.withLock { $0 = step }
            },
            completion: { [weak self, weak database] result in
                guard case .success = result, let self, let database else { return }
                let step = progress.value.withLock { $0 }
                let count = deleted + step.events
                if !step.isDone { return forget(id, database, events, count) }
                if count > 0 {
                    log.warning(
                        "events of a trigger that is gone were dropped", ("trigger", .string(id.name)),
                        ("database", .string(database.name.string)), ("events", .integer(count)))
                }
            })
    }

    // MARK: Definitions

    package var definitions: [TriggerDefinition] {
        state.withLock { $0.definitions.values.sorted { UTF8Order.compare($0.name, $1.name) < 0 } }
    }

    package func definition(_ name: String) -> TriggerDefinition? { state.withLock { $0.definitions[name] } }

    /// How many events of a trigger are not settled, in all databases.
    package func pending(_ trigger: String) -> Int {
        guard let id = definition(trigger)?.id else { return 0 }
        return state.withLock { state in state.databases.values.reduce(0) { $0 + $1.events.pending(id) } }
            + trees.pending(id)
    }

    package func deadLetterCount(_ trigger: String) -> Int {
        guard let id = definition(trigger)?.id else { return 0 }
        return state.withLock { state in
            state.databases.values.reduce(0) { $0 + $1.events.ledger.deadLetterCount(id) }
        } + trees.deadLetterCount(id)
    }

    /// Takes a trigger, or another definition of one. Its pattern holds for later commits. A definition for the other
    /// product makes another trigger, which has nothing of the former one.
    /// - Throws: RESOURCE_EXHAUSTED beyond `countMax`, or when the system provides no thread.
    package func set(_ new: TriggerDefinition) throws(Status) {
        try changing.withLock { last throws(Status) in
            let former = definition(new.name)
            if former == nil, state.withLock({ $0.definitions.count }) >= Self.countMax {
                throw .resourceExhausted("A server has at most \(Self.countMax) triggers.")
            }
            try dispatcher.start()
            last += 1
            var definition = new
            definition.revision = last
            definition.serial = last
            if let former {
                if former.type.product == new.type.product {
                    definition.serial = former.serial
                } else {
                    end(former.id)
                }
            }
            begin(definition)
        }
    }

    private func begin(_ definition: TriggerDefinition) {
        let sources = state.withLock { state in
            state.definitions[definition.name] = definition
            return state.databases.values.compactMap { $0.sources[definition.name]?.source }
        }
        for source in sources { source.change(definition) }
        trees.set(definition)
        journal.begin(definition.id)
        dispatcher.set(definition.name, Self.trigger(definition))
        refresh()
        if !definition.terms.isPaused { notifyAll(definition.id) }
    }

    /// What waits of a trigger that may have been paused.
    private func notifyAll(_ id: TriggerID) {
        let names = state.withLock { state in
            state.databases.filter { $0.value.events.pending(id) > 0 }.map(\.key)
        }
        for name in names { notify(id, name) }
        trees.notifyAll(id)
        openTrees(trees.closed(with: id))
    }

    /// Opens namespaces that are closed, which has their events delivered, or dropped when the trigger is gone.
    private func openTrees(_ names: [String]) { for name in names { opener.open(.namespace(name)) } }

    /// Has the events of a trigger that wait for another attempt sent now, as when its function was mended.
    /// - Returns: how many events are not settled.
    /// - Throws: NOT_FOUND for an unknown one, FAILED_PRECONDITION for one that is paused, UNAVAILABLE when the server is being
    ///   stopped.
    func retry(_ name: String) throws(Status) -> Int {
        if try existing(name).terms.isPaused { throw .failedPrecondition("The trigger \"\(name)\" is paused.") }
        dispatcher.retry(name)
        return pending(name)
    }

    /// Ends a trigger, and drops its events and dead letters.
    /// - Parameter revision: only if this is still its definition.
    /// - Returns: false when there was none.
    package func remove(_ name: String, revision: UInt64? = nil) -> Bool {
        changing.withLock { _ in
            guard let definition = definition(name), revision ?? definition.revision == definition.revision else {
                return false
            }
            end(definition.id)
            return true
        }
    }

    private func end(_ id: TriggerID) {
        state.withLock { state in
            state.definitions[id.name] = nil
            for database in state.databases.keys { state.databases[database]?.sources[id.name] = nil }
        }
        dispatcher.remove(id.name)
        journal.end(id)
        // Before its events are deleted: it gets no others.
        refresh()
        for (database, events) in openDatabases { forget(id, database, events) }
        openThose { $0.ledger.hasAny(of: id) }
        let closed = trees.closed(with: id)
        trees.remove(id)
        openTrees(closed)
    }

    /// Opens databases that are closed, which drops what they have of triggers that are gone.
    private func openThose(_ isWanted: @escaping @Sendable (DatabaseEvents) -> Bool) {
        let names = state.withLock { state in
            state.databases.filter { $0.value.database == nil && isWanted($0.value.events) }.map(\.key)
        }
        for name in names { opener.open(.database(name)) }
    }

    private var openDatabases: [(Database, DatabaseEvents)] {
        state.withLock { state in
            state.databases.values.compactMap { open in open.database.map { ($0, open.events) } }
        }
    }

    /// The present definitions for later commits of all databases.
    private func refresh() { state.withLock { $0.refresh() } }
}

extension TriggerService: DatabaseOpenerOwner {
    func wantsOpen(_ item: DatabaseOpener.Item) -> Bool {
        switch item {
        case .database(let name):
            state.withLock { state in
                state.databases[name] == nil
                    && state.definitions.values.contains { $0.type.product == .firestore }
            }
        case .namespace(let name):
            !trees.isKnown(name)
                && state.withLock { $0.definitions.values.contains { $0.isFor(namespace: name) } }
        case .all: false
        }
    }

    func isGone(_ name: DatabaseName) {
        state.withLock { state in
            let isOpen = state.databases[name]?.database.map { $0.closedStatus == nil } ?? false
            if !isOpen { state.databases[name] = nil }
        }
    }
}

/// Lets closures share a value that can't be copied.
final class SharedValue<Value: ~Copyable & Sendable>: Sendable {
    let value: Value

    init(_ value: consuming Value) { self.value = value }
}
