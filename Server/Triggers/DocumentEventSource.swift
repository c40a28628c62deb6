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

    package typealias Opening = SourceOpening<Open>

    private let opening: SourceAccess<Open>
    let definition: SourceDefinition
    private let location: String
    private let clock: any Clock
    private let states = Mutex(DocumentStates())

    /// - Parameters:
    ///   - open: the database if it is open; otherwise has it opened.
    ///   - location: the region that events name.
    package init(
        _ definition: TriggerDefinition, location: String, clock: any Clock = SystemClock(),
        open: @escaping @Sendable () -> Opening
    ) {
        self.clock = clock
        self.location = location
        self.definition = SourceDefinition(definition, clock: clock)
        opening = SourceAccess(open)
    }

    /// Of a database that stays open.
    package convenience init(
        _ definition: TriggerDefinition, database: Database, events: DatabaseEvents, location: String,
        clock: any Clock = SystemClock()
    ) {
        let open = Open(database: database, events: events)
        self.init(definition, location: location, clock: clock) { .open(open) }
    }

    package func access() -> EventAccess {
        opening.begin { definition.note(newest: $0.database.newestCommit, $0.database.elapsed) }
    }

    package func release() { opening.end() }

    /// - Returns: nil without a queue.
    private func opened() throws(Status) -> (database: Database, events: DatabaseEvents, queue: EventQueue)? {
        let open = try opening.opened()
        guard let queue = open.events.ledger.queue(of: definition.value.id) else { return nil }
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
    ) throws(Status) -> EventRequest? {
        let states = if let kept = record.states { kept } else { try self.states(of: event, in: snapshot) }
        let definition = definition.value
        // The type may have changed since the commit.
        if let kind = states.kind, !definition.type.wants(kind) { return nil }
        return try DocumentEventRequest.make(
            event, states, author: record.author, of: database, for: definition, location: location)
    }

    private func states(of event: Delivery.Event, in snapshot: any Snapshot) throws(Status) -> QueuedEvent.States {
        try states.withLock { states throws(Status) -> QueuedEvent.States in
            let (before, after) = try states.states(of: event, in: snapshot)
            return QueuedEvent.States(before: before, after: after)
        }
    }

    package func expiredVersion() -> Int64 { definition.expiredVersion() }

    package func settle(
        _ settled: [Delivery.Settled], completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) -> Int {
        let definition = definition.value
        let settlement: EventSettlement
        let (database, events): (Database, DatabaseEvents)
        do throws(Status) {
            guard let open = try opened() else {
                // A trigger without a queue has nothing to remove.
                completion(.success(()))
                return settled.count
            }
            (database, events) = (open.database, open.events)
            settlement = try EventSettlement(settled, of: definition, at: clock.now().microseconds) {
                event throws(Status) in try record(ofDead: event, database, open.queue)
            }
        } catch {
            // Tried again: no event is lost in silence.
            completion(.failure(error))
            return 1
        }
        events.edit(
            database,
            { transaction throws(Status) in
                try events.ledger.settle(settlement, of: definition.id, in: transaction)
            }, completion: completion)
        return settlement.events.count
    }

    /// What is kept of an event that is given up: with its states, if they can be read.
    /// - Returns: nil when the queue doesn't have it any more.
    private func record(
        ofDead event: Delivery.Event, _ database: Database, _ queue: EventQueue
    ) throws(Status) -> [UInt8]? {
        try reading(database) { snapshot throws(Status) -> [UInt8]? in
            let bytes: [UInt8]
            do throws(Status) {
                guard let stored = try queue.record(of: event, in: snapshot) else { return nil }
                bytes = stored
            } catch {
                // Without its record it is at least known that there was an event.
                guard error.code == .dataLoss else { throw error }
                bytes = QueuedEvent(author: EventAuthor.unknown.stored).bytes
            }
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
