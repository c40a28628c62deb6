import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthEvents
import HearthModel
import HearthTreeStorage
import Synchronization

/// The events of a database that is open, of either product, for administrators.
protocol OpenEvents: Sendable {
    var ledger: TriggerLedger { get }

    /// The time by which things become old, in microseconds since 1970.
    var elapsedMicroseconds: Int64 { get }

    /// Has a trigger's events sent.
    func notify(_ id: TriggerID, _ service: TriggerService)

    /// Changes the ledger.
    /// - Parameter completion: called when that is durable, or has failed.
    func edit(
        _ body: @escaping @Sendable (any StoreTransaction) throws(Status) -> Void,
        completion: @escaping @Sendable (Result<Void, Status>) -> Void)

    func reading<Result>(_ body: (any Snapshot) throws(Status) -> Result) throws(Status) -> Result

    /// The id of an event; empty for one that has none.
    func id(of event: Delivery.Event, _ trigger: String) -> String

    /// What administrators know the document or location by.
    func name(of event: Delivery.Event) -> String

    /// The event of a dead letter as one JSON object.
    /// - Throws: when it can't be made any more.
    func structured(
        _ event: Delivery.Event, _ letter: DeadLetter, _ definition: TriggerDefinition, location: String
    ) throws(Status) -> [UInt8]
}

extension OpenEvents {
    /// Changes the ledger, and waits for it.
    func perform<Result: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws(Status) -> Result
    ) throws(Status) -> Result {
        let answer = Awaited<Result>()
        let value = SharedValue(Mutex<Result?>(nil))
        edit(
            { transaction throws(Status) in
                let result = try body(transaction)
                value.value.withLock { $0 = result }
            },
            completion: { result in
                switch (result, value.value.withLock { $0 }) {
                case (.success, let result?): answer.set(.success(result))
                case (.success, nil): answer.set(.failure(.unavailable("The database is closed.")))
                case (.failure(let status), _): answer.set(.failure(status))
                }
            })
        return try answer.wait()
    }

    /// Deletes dead letters that were kept long enough, a part at a time, in the background.
    func expireDeadLetters(_ id: TriggerID, before time: Int64, limit: Int) {
        let ledger = ledger
        let hasMore = SharedValue(Mutex(false))
        edit(
            { transaction throws(Status) in
                let deleted = try ledger.deleteDeadLetters(id, before: time, in: transaction, limit: limit)
                hasMore.value.withLock { $0 = !deleted.isDone }
            },
            completion: { result in
                guard case .success = result, hasMore.value.withLock({ $0 }) else { return }
                expireDeadLetters(id, before: time, limit: limit)
            })
    }
}

struct OpenDocumentEvents: OpenEvents {
    let database: Database
    let events: DatabaseEvents

    var ledger: TriggerLedger { events.ledger }
    var elapsedMicroseconds: Int64 { database.elapsed.microseconds }

    func notify(_ id: TriggerID, _ service: TriggerService) { service.notify(id, database.name, isEarlier: true) }

    func edit(
        _ body: @escaping @Sendable (any StoreTransaction) throws(Status) -> Void,
        completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        events.edit(database, body, completion: completion)
    }

    func reading<Result>(_ body: (any Snapshot) throws(Status) -> Result) throws(Status) -> Result {
        let snapshot = try database.store.snapshot()
        defer { snapshot.close() }
        return try body(snapshot)
    }

    func id(of event: Delivery.Event, _ trigger: String) -> String {
        DocumentEventRequest.id(event, database, trigger)?.string ?? ""
    }

    func name(of event: Delivery.Event) -> String {
        DocumentKey.decode(event.key).map { ResourceName(database: database.name, path: $0).string } ?? ""
    }

    func structured(
        _ event: Delivery.Event, _ letter: DeadLetter, _ definition: TriggerDefinition, location: String
    ) throws(Status) -> [UInt8] {
        let record = try QueuedEvent(letter.record)
        guard let states = record.states else { throw Status(.dataLoss, "The dead letter has no states.") }
        return try DocumentEventRequest.make(
            event, states, author: record.author, of: database, for: definition.structured, location: location
        ).body
    }
}

struct OpenTreeEvents: OpenEvents {
    let tree: TreeDatabase
    /// Keeps the tree open.
    let owner: any AnyObject & Sendable
    let events: TreeEvents

    var ledger: TriggerLedger { events.ledger }
    var elapsedMicroseconds: Int64 { events.elapsed.microseconds }

    func notify(_ id: TriggerID, _ service: TriggerService) {
        service.trees.notify(id, events.namespace, isEarlier: true)
    }

    func edit(
        _ body: @escaping @Sendable (any StoreTransaction) throws(Status) -> Void,
        completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        tree.edit(body) { [owner] result in withExtendedLifetime(owner) { completion(result) } }
    }

    func reading<Result>(_ body: (any Snapshot) throws(Status) -> Result) throws(Status) -> Result {
        let view = try tree.view()
        defer { view.close() }
        return try body(view.records)
    }

    func id(of event: Delivery.Event, _ trigger: String) -> String {
        TreeEventRequest.id(event, events.namespace, trigger).string
    }

    func name(of event: Delivery.Event) -> String {
        "\(events.namespace)/\(String(decoding: event.key, as: UTF8.self))"
    }

    func structured(
        _ event: Delivery.Event, _ letter: DeadLetter, _ definition: TriggerDefinition, location: String
    ) throws(Status) -> [UInt8] {
        let stored = try TreeDeadLetter(letter.record)
        return try TreeEventRequest.make(
            event, stored.record, by: EventAuthor(stored: stored.author), in: events.namespace,
            for: definition.structured, location: location
        ).body
    }
}
