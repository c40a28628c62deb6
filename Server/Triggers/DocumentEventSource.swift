import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthEvents
import HearthModel
import HearthWire
import Synchronization

/// The events of one trigger in one database of Cloud Firestore.
package final class DocumentEventSource: EventSource {
    private let database: Database
    private let events: DatabaseEvents
    private let location: String
    private let clock: any Clock
    private let definition: Mutex<TriggerDefinition>
    private let horizon: Mutex<HistoryHorizon>
    private let states = Mutex(DocumentStates())

    /// An event beyond this is a dead letter.
    private static let sizeBytesMax = 16 << 20

    /// - Parameter location: the region that events name.
    package init(
        _ definition: TriggerDefinition, database: Database, events: DatabaseEvents, location: String,
        clock: any Clock = SystemClock()
    ) {
        self.clock = clock
        horizon = Mutex(HistoryHorizon(clock: clock, keptSeconds: definition.maxAgeSeconds))
        self.database = database
        self.events = events
        self.location = location
        self.definition = Mutex(definition)
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

    private var queue: EventQueue? { events.queue(of: definition.withLock { $0.name }) }

    private func reading<Result>(_ body: (any Snapshot) throws(Status) -> Result) throws(Status) -> Result {
        let snapshot = try database.store.snapshot()
        defer { snapshot.close() }
        return try body(snapshot)
    }

    // MARK: EventSource

    package func events(after event: Delivery.Event?, countMax: Int) throws(Status) -> [Delivery.Event] {
        guard let queue else { return [] }
        return try reading { snapshot throws(Status) in
            try queue.events(after: event, countMax: countMax, in: snapshot)
        }
    }

    package func versions(
        of key: [UInt8], from version: Int64, through event: Delivery.Event, countMax: Int
    ) throws(Status) -> [Int64] {
        guard let queue else { return [] }
        return try reading { snapshot throws(Status) in
            try queue.versions(of: key, from: version, through: event, countMax: countMax, in: snapshot)
        }
    }

    package func request(for event: Delivery.Event) throws(Status) -> EventRequest? {
        guard let queue else { return nil }
        return try reading { snapshot throws(Status) -> EventRequest? in
            guard let record = try queue.record(of: event, in: snapshot) else { return nil }
            return try request(for: event, try QueuedEvent(record), snapshot)
        }
    }

    private func request(
        for event: Delivery.Event, _ record: QueuedEvent, _ snapshot: any Snapshot
    ) throws(Status) -> EventRequest {
        let definition = definition.withLock { $0 }
        let (before, after) =
            if let states = record.states { (states.before, states.after) } else {
                try states.withLock { states throws(Status) in try states.states(of: event, in: snapshot) }
            }
        guard let path = DocumentKey.decode(event.key) else {
            throw Status(.dataLoss, "A record of a trigger's queue has no document.")
        }
        let name = ResourceName(database: database.name, path: path).string
        let change = DocumentEvent(
            database: database.name, path: path.string, commitTime: Timestamp(microseconds: event.version),
            before: before?.encoded(name: name), after: after?.encoded(name: name),
            author: EventAuthor(stored: record.author))
        guard let change else { throw Status(.dataLoss, "A trigger waits for a commit that changed nothing.") }
        let request = try EventRequest(
            change, id: id(of: event, name), type: definition.type, location: location, form: definition.form)
        if request.body.count > Self.sizeBytesMax {
            throw .resourceExhausted("The event has \(request.body.count) bytes, of at most \(Self.sizeBytesMax).")
        }
        return request
    }

    private func id(of event: Delivery.Event, _ name: String) -> EventID {
        EventID(
            version: event.version, incarnation: database.incarnation, subject: Array(name.utf8),
            trigger: definition.withLock { $0.name })
    }

    package func expiredVersion() -> Int64 {
        horizon.withLock { $0 }.version(newest: database.newestCommit)
    }

    package func settle(
        _ settled: [Delivery.Settled], completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        let name = definition.withLock { $0.name }
        guard let queue else { return completion(.success(())) }
        let count = settled.filter { $0.result != .gone }.count
        database.perform(
            { transaction throws(Status) in
                for event in settled { try queue.delete(event.event, in: transaction) }
            },
            completion: { [events] result in
                if case .success = result { events.changePending(name, by: -count) }
                completion(result)
            })
    }
}
