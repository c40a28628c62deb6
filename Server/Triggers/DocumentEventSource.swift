import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthEvents
import HearthModel
import HearthWire
import Synchronization

/// The events of one trigger in one database of Cloud Firestore.
package final class DocumentEventSource: EventSource {
    /// A database that is open, and its events.
    package struct Open: Sendable {
        let database: Database
        let events: DatabaseEvents

        package init(database: Database, events: DatabaseEvents) {
            self.database = database
            self.events = events
        }
    }

    package enum Opening: Sendable {
        case open(Open)
        case opening
        case gone
    }

    private let open: @Sendable () -> Opening
    private let location: String
    private let clock: any Clock
    private let definition: Mutex<TriggerDefinition>
    private let horizon: Mutex<HistoryHorizon>
    private let states = Mutex(DocumentStates())
    /// While something is read.
    private let current = Mutex<Open?>(nil)
    /// The newest commit that is known, and its monotonic time.
    private let newest: Mutex<(version: Int64, nanoseconds: UInt64)>

    /// Of the dead letters that one transaction stores, about.
    private static let settledBytesMax = 4 << 20

    /// - Parameters:
    ///   - open: the database if it is open; otherwise has it opened.
    ///   - location: the region that events name.
    package init(
        _ definition: TriggerDefinition, location: String, clock: any Clock = SystemClock(),
        open: @escaping @Sendable () -> Opening
    ) {
        self.clock = clock
        horizon = Mutex(HistoryHorizon(clock: clock, keptSeconds: definition.maxAgeSeconds))
        newest = Mutex((0, clock.monotonicNanoseconds()))
        self.open = open
        self.location = location
        self.definition = Mutex(definition)
    }

    /// Of a database that stays open.
    package convenience init(
        _ definition: TriggerDefinition, database: Database, events: DatabaseEvents, location: String,
        clock: any Clock = SystemClock()
    ) {
        let open = Open(database: database, events: events)
        self.init(definition, location: location, clock: clock) { .open(open) }
    }

    /// What is sent from now on has another form.
    package func change(_ new: TriggerDefinition) {
        let former = definition.withLock { definition in
            defer { definition = new }
            return definition
        }
        if former.maxAgeSeconds == new.maxAgeSeconds { return }
        horizon.withLock { $0 = HistoryHorizon(clock: clock, keptSeconds: new.maxAgeSeconds) }
    }

    package func access() -> EventAccess {
        switch open() {
        case .gone: return .gone
        case .opening: return .opening
        case .open(let open):
            newest.withLock { $0 = open.database.newestCommit }
            current.withLock { $0 = open }
            return .open
        }
    }

    package func release() { current.withLock { $0 = nil } }

    private func opened() throws(Status) -> (database: Database, events: DatabaseEvents, queue: EventQueue)? {
        guard let open = current.withLock({ $0 }) else { throw .unavailable("The database is closed.") }
        guard let queue = open.events.queue(of: definition.withLock { $0.name }) else { return nil }
        return (open.database, open.events, queue)
    }

    private func reading<Result>(
        _ database: Database, _ body: (any Snapshot) throws(Status) -> Result
    ) throws(Status) -> Result {
        let snapshot: any Snapshot
        do throws(Status) {
            snapshot = try database.store.snapshot()
        } catch {
            // That is no fault of an event: clients may read much, or the database is being closed.
            throw .unavailable(error.message)
        }
        defer { snapshot.close() }
        return try body(snapshot)
    }

    // MARK: EventSource

    package func events(after event: Delivery.Event?, countMax: Int) throws(Status) -> [Delivery.Event] {
        guard let (database, _, queue) = try opened() else { return [] }
        return try reading(database) { snapshot throws(Status) in
            try queue.events(after: event, countMax: countMax, in: snapshot)
        }
    }

    package func request(for event: Delivery.Event) throws(Status) -> EventRequest? {
        guard let (database, _, queue) = try opened() else { return nil }
        return try reading(database) { snapshot throws(Status) -> EventRequest? in
            guard let record = try queue.record(of: event, in: snapshot) else { return nil }
            return try request(for: event, try QueuedEvent(record), database, snapshot)
        }
    }

    private func request(
        for event: Delivery.Event, _ record: QueuedEvent, _ database: Database, _ snapshot: any Snapshot
    ) throws(Status) -> EventRequest {
        let states = if let kept = record.states { kept } else { try self.states(of: event, in: snapshot) }
        let definition = definition.withLock { $0 }
        return try DocumentEventRequest.make(
            event, states, author: record.author, of: database, for: definition, location: location)
    }

    private func states(of event: Delivery.Event, in snapshot: any Snapshot) throws(Status) -> QueuedEvent.States {
        try states.withLock { states throws(Status) -> QueuedEvent.States in
            let (before, after) = try states.states(of: event, in: snapshot)
            return QueuedEvent.States(before: before, after: after)
        }
    }

    package func expiredVersion() -> Int64 {
        horizon.withLock { $0 }.version(newest: newest.withLock { $0 })
    }

    package func settle(
        _ settled: [Delivery.Settled], completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) -> Int {
        let definition = definition.withLock { $0 }
        let name = definition.name
        guard let (database, events, queue) = (try? opened()) ?? nil, let letters = events.deadLetters(of: name) else {
            // A closed database fails, and is tried again; a trigger without a queue has nothing to remove.
            completion(
                current.withLock { $0 == nil } ? .failure(.unavailable("The database is closed.")) : .success(()))
            return settled.count
        }
        let end = clock.now().microseconds
        var records: [(entry: DeadLetters.Entry, letter: DeadLetter)] = []
        var sizeBytes = 0
        var taken = 0
        while taken < settled.count, taken == 0 || sizeBytes < Self.settledBytesMax {
            let event = settled[taken].event
            taken += 1
            guard case .dead(let attempts, let failure) = settled[taken - 1].result, definition.keepsDeadLetters else {
                continue
            }
            do throws(Status) {
                guard let record = try record(ofDead: event, database, queue) else { continue }
                let letter = DeadLetter(attempts: attempts, failure: failure, record: record)
                records.append((DeadLetters.Entry(time: end, event: event), letter))
                sizeBytes += record.count
            } catch {
                // Tried again: no event is lost in silence.
                completion(.failure(error))
                return taken
            }
        }
        let settling = settled.prefix(taken).map(\.event)
        let change = SharedValue(Mutex((removed: 0, letters: 0, oldest: Int64?.none)))
        database.perform(
            { [records, events] transaction throws(Status) in
                var removed = 0
                for event in settling {
                    if try queue.record(of: event, in: transaction) == nil { continue }
                    try queue.delete(event, in: transaction)
                    removed += 1
                }
                for (entry, letter) in records { try letters.put(letter, entry, in: transaction) }
                var kept = records.count
                let excess = events.deadLetterCount(name) + records.count - DeadLetters.countMax
                if excess > 0 { kept -= try letters.deleteAll(in: transaction, limit: excess) }
                let oldest = try queue.first(from: events.oldestPending(name) ?? 0, in: transaction)
                change.value.withLock { [removed, kept] in $0 = (removed, kept, oldest) }
            },
            completion: { [events] result in
                if case .success = result {
                    let (removed, letters, oldest) = change.value.withLock { $0 }
                    events.changePending(name, by: -removed, oldest: oldest)
                    events.changeDeadLetters(name, by: letters)
                }
                completion(result)
            })
        return taken
    }

    /// What is kept of an event that is given up: with its states, if they can be read.
    /// - Returns: nil when the queue doesn't have it any more.
    private func record(
        ofDead event: Delivery.Event, _ database: Database, _ queue: EventQueue
    ) throws(Status) -> [UInt8]? {
        try reading(database) { snapshot throws(Status) -> [UInt8]? in
            guard let bytes = try queue.record(of: event, in: snapshot) else { return nil }
            do throws(Status) {
                var record = try QueuedEvent(bytes)
                if record.states == nil { record.states = try states(of: event, in: snapshot) }
                return record.bytes
            } catch {
                if error.code == .unavailable { throw error }
                // Without them it shows at least what was lost.
                return bytes
            }
        }
    }
}
