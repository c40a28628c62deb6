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

    struct OpenDatabase: KnownEvents {
        weak var database: Database?
        let events: DatabaseEvents
        var sources: [String: WeakSource] = [:]

        var isOpen: Bool { database != nil }
        /// Whether it is open, and not being closed.
        var isInUse: Bool { database.map { $0.closedStatus == nil } ?? false }
        var ledger: TriggerLedger { events.ledger }
    }

    struct State {
        /// Of both products.
        private(set) var definitions: [String: TriggerDefinition] = [:]
        private var scopes = TriggerScopes([TriggerDefinition](), DatabaseEvents.Triggers.init)
        var databases: [DatabaseName: OpenDatabase] = [:]
        var directory: TriggerDirectory?
        var isStopped = false
        private var forgetsAt = 64

        mutating func define(_ new: [String: TriggerDefinition]) {
            definitions = new
            scopes = TriggerScopes(
                new.values.filter { $0.type.product == .firestore }, DatabaseEvents.Triggers.init)
        }

        mutating func forgetClosed() { databases.forgetClosed(at: &forgetsAt) }

        /// The present definitions for later commits of all databases.
        mutating func refresh() { for name in databases.keys { refresh(name) } }

        /// The present definitions for later commits of a database.
        mutating func refresh(_ name: DatabaseName) {
            databases[name]?.events.change(scopes.made { $0.isFor(name) })
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
    /// For what may take long.
    private let longWork = LifecycleThreads(threadsMax: 1, name: "hearth-trigger-long")

    /// Triggers of a server.
    package static let countMax = 500

    /// - Throws: RESOURCE_EXHAUSTED or UNAVAILABLE when the system provides no threads.
    package init(_ configuration: Configuration, clock: any Clock = SystemClock()) throws(Status) {
        var state = State()
        state.define(
            Dictionary(configuration.definitions.map { ($0.name, $0) }, uniquingKeysWith: { _, last in last }))
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
        journal.notify(gone: { [weak self] trigger, revision in self?.gone(trigger, revision) })
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

    /// The same, after `waitUntilOpened`: without keeping what doesn't wait for that.
    func backgroundWhenOpened(_ job: @escaping @Sendable () -> Void) {
        longBackground { [self] in
            waitUntilOpened()
            background(job)
        }
    }

    /// Runs work for administrators that reads much: between the steps of what takes long.
    func longBackground(_ job: @escaping @Sendable () -> Void) { longWork.run(job) }

    /// Runs steps for administrators, each after those of others that wait.
    /// - Parameter completion: called once, with how much was done.
    func background(
        _ steps: any TriggerSteps, completion: @escaping @Sendable (Result<Int, Status>) -> Void
    ) {
        longBackground { [self] in
            do throws(Status) {
                if try steps.step() { return background(steps, completion: completion) }
            } catch {
                return completion(.failure(error))
            }
            completion(.success(steps.count))
        }
    }

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
        longWork.stop()
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
        let events = try DatabaseEvents(
            DatabaseEvents.Triggers([]), in: snapshot, former: former, serial: { definitions[$0]?.serial ?? 0 }
        ) { [weak self] trigger in
            self?.notify(trigger, name)
        }
        // Before others can edit the ledger, so that each of their transactions is followed by `ended`; nothing is recorded yet.
        database.setRecorder(events)
        state.withLock { state in
            state.forgetClosed()
            // Routes live on while a database is closed.
            let sources = state.databases[name]?.sources ?? [:]
            state.databases[name] = OpenDatabase(database: database, events: events, sources: sources)
            // Within the lock: a definition that comes now finds the database.
            state.refresh(name)
        }
        // So that they are not counted again when nothing of the database changes.
        if events.ledger.countsAreDue { events.edit(database, { _ throws(Status) in }, completion: { _ in }) }
        // A trigger that is for other databases now keeps what it has of this one.
        let ids = events.ledger.ids
        removal(database, events).run(ids.filter { isRemoved($0) })
        for id in ids where !isRemoved(id) && events.pending(id) > 0 { notify(id, name) }
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
            removal(database, events).run(events.ledger.ids.filter { isRemoved($0) })
        }
        trees.forgetRemoved()
    }

    /// Forgets what there was in databases that were deleted: nobody looks for the events of a trigger that is paused, and
    /// for dead letters. May wait for the disk.
    package func forgetDeleted() {
        let (directory, names) = state.withLock { state in
            (state.directory, state.databases.filter { !$0.value.isInUse && $0.value.ledger.hasAny }.map(\.key))
        }
        guard let directory else { return }
        for name in names {
            do throws(Status) {
                if try !directory.exists(name) { isGone(name) }
            } catch {
                // It may be there.
            }
        }
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
            state.databases[name]?.sources[id.name] = WeakSource(definition: source.definition)
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

    /// A function of Firebase's tools that does not exist any more. One that was registered again meanwhile stays.
    private func gone(_ trigger: String, _ revision: UInt64) {
        guard definition(trigger)?.source == .emulator else { return }
        background { [weak self] in _ = self?.remove(trigger, revision: revision) }
    }

    private func removal(_ database: Database, _ events: DatabaseEvents) -> EventRemoval {
        EventRemoval(ledger: events.ledger, database: database.name.string, log: log) {
            [weak database] body, completion in
            if let database { events.edit(database, body, completion: completion) }
        }
    }

    // MARK: Definitions

    package var definitions: [TriggerDefinition] {
        state.withLock { $0.definitions.values.sorted { UTF8Order.compare($0.name, $1.name) < 0 } }
    }

    package func definition(_ name: String) -> TriggerDefinition? { state.withLock { $0.definitions[name] } }

    /// How many events of a trigger are not settled, in all databases.
    package func pending(_ trigger: String) -> Int {
        guard let id = definition(trigger)?.id else { return 0 }
        return state.withLock { $0.databases.pending(id) } + trees.pending(id)
    }

    package func deadLetterCount(_ trigger: String) -> Int {
        guard let id = definition(trigger)?.id else { return 0 }
        return state.withLock { $0.databases.deadLetterCount(id) } + trees.deadLetterCount(id)
    }

    /// What there is of each trigger that has something. Costs each database once, and no lock is held that others wait
    /// for: a server may have hundreds of triggers and thousands of databases.
    func totals() -> [TriggerID: TriggerTotals] {
        let ledgers = state.withLock { $0.databases.values.map { $0.events.ledger } } + trees.ledgers
        var all: [TriggerID: TriggerTotals] = [:]
        for ledger in ledgers { ledger.add(to: &all) }
        return all
    }

    /// Takes a trigger, or another definition of one; see `change`.
    package func set(_ new: TriggerDefinition) throws(Status) { try change(set: [new]) }

    /// What a change of definitions does.
    private struct Change {
        var definitions: [String: TriggerDefinition]
        var ended: [TriggerID] = []
        var begun: [String: TriggerDefinition] = [:]

        mutating func remove(_ name: String) {
            if let gone = definitions.removeValue(forKey: name) { ended.append(gone.id) }
        }

        mutating func set(_ new: TriggerDefinition, number: UInt64) {
            var definition = new
            definition.revision = number
            definition.serial = number
            if let former = definitions[new.name] {
                if former.type.product == new.type.product {
                    definition.serial = former.serial
                } else {
                    ended.append(former.id)
                }
            }
            definitions[new.name] = definition
            begun[new.name] = definition
        }
    }

    /// Takes triggers, or other definitions of them, and ends others: all or nothing, and at the cost of one. A pattern
    /// holds for later commits. A definition for the other product makes another trigger, which has nothing of the former
    /// one. Of a trigger that ends the events and dead letters are dropped.
    /// - Parameters:
    ///   - new: each name once, and none that is removed.
    ///   - names: of triggers to remove, if there are such.
    /// - Throws: RESOURCE_EXHAUSTED beyond `countMax`, or when the system provides no thread.
    package func change(set new: [TriggerDefinition], remove names: [String] = []) throws(Status) {
        try changing.withLock { last throws(Status) in
            let known = state.withLock { $0.definitions }
            var change = Change(definitions: known)
            for name in names { change.remove(name) }
            for definition in new {
                last += 1
                change.set(definition, number: last)
            }
            if change.definitions.count > max(Self.countMax, known.count) {
                throw .resourceExhausted("A server has at most \(Self.countMax) triggers.")
            }
            if !new.isEmpty { try dispatcher.start() }
            apply(change)
        }
    }

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
            var change = Change(definitions: state.withLock { $0.definitions })
            guard let known = change.definitions[name], revision ?? known.revision == known.revision else {
                return false
            }
            change.remove(name)
            apply(change)
            return true
        }
    }

    private func apply(_ change: Change) {
        let sources = state.withLock { state in
            state.define(change.definitions)
            state.databases.removeSources(of: change.ended)
            return state.databases.sources(of: change.begun)
        }
        for (source, definition) in sources { source.change(definition) }
        trees.define(change.definitions, ended: change.ended, begun: change.begun)
        for id in change.ended {
            dispatcher.remove(id.name)
            journal.end(id)
        }
        for definition in change.begun.values {
            journal.begin(definition.id)
            dispatcher.set(definition.name, Self.trigger(definition))
        }
        // Before events are deleted: triggers that are gone get no others.
        state.withLock { $0.refresh() }
        trees.refresh()
        forget(change.ended)
        notifyAll(Set(change.begun.values.filter { !$0.terms.isPaused }.map(\.id)))
    }

    /// What waits of triggers that may have been paused.
    private func notifyAll(_ ids: Set<TriggerID>) {
        if ids.isEmpty { return }
        for (name, id) in state.withLock({ $0.databases.waiting(for: ids) }) { notify(id, name) }
        trees.notifyAll(ids)
    }

    /// Deletes what triggers that are gone have left. Databases that are closed are opened, which does it.
    private func forget(_ ids: [TriggerID]) {
        if ids.isEmpty { return }
        // Also where no event is known of: the first one may be under way.
        for (database, events) in openDatabases { removal(database, events).run(ids) }
        for name in state.withLock({ $0.databases.closed(with: Set(ids)) }) { opener.open(.database(name)) }
        trees.forget(ids)
        for name in trees.closed(with: Set(ids)) { opener.open(.namespace(name)) }
    }

    private var openDatabases: [(Database, DatabaseEvents)] {
        state.withLock { state in
            state.databases.values.compactMap { open in open.database.map { ($0, open.events) } }
        }
    }
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
            if state.databases[name]?.isInUse != true { state.databases[name] = nil }
        }
    }
}

/// Lets closures share a value that can't be copied.
final class SharedValue<Value: ~Copyable & Sendable>: Sendable {
    let value: Value

    init(_ value: consuming Value) { self.value = value }
}
