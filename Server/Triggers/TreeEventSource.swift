import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthEvents
import HearthModel
import HearthTree
import HearthTreeStorage
import Synchronization

/// The events of one trigger in one namespace of the Realtime Database.
package final class TreeEventSource: EventSource {
    private let tree: TreeDatabase
    private let events: TreeEvents
    /// Kept in memory, so that nobody closes the tree meanwhile.
    private let owner: any AnyObject & Sendable
    private let location: String
    private let clock: any Clock
    private let definition: Mutex<TriggerDefinition>
    private let horizon: Mutex<HistoryHorizon>

    /// - Parameters:
    ///   - owner: what keeps the tree open while there is a reference to it.
    ///   - location: the region that events name.
    package init(
        _ definition: TriggerDefinition, tree: TreeDatabase, of owner: any AnyObject & Sendable, events: TreeEvents,
        location: String, clock: any Clock = SystemClock()
    ) {
        self.tree = tree
        self.owner = owner
        self.events = events
        self.location = location
        self.clock = clock
        self.definition = Mutex(definition)
        horizon = Mutex(HistoryHorizon(clock: clock, keptSeconds: definition.maxAgeSeconds))
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

    private var queue: EventQueue? { events.ledger.queue(of: definition.withLock { $0.id }) }

    private func reading<Result>(_ body: (any Snapshot) throws(Status) -> Result) throws(Status) -> Result {
        let view: TreeView
        do throws(Status) {
            view = try tree.view()
        } catch {
            // That is no fault of an event.
            throw .unavailable(error.message)
        }
        defer { view.close() }
        return try body(view.records)
    }

    // MARK: EventSource

    package func access() -> EventAccess { tree.isEnded ? .gone : .open }
    package func release() {}

    package func events(after event: Delivery.Event?, countMax: Int) throws(Status) -> [Delivery.Event] {
        guard let queue else { return [] }
        return try reading { records throws(Status) in
            try queue.events(after: event, countMax: countMax, in: records)
        }
    }

    package func versions(
        of key: [UInt8], from version: Int64, through event: Delivery.Event, countMax: Int
    ) throws(Status) -> [Int64] {
        guard let queue else { return [] }
        return try reading { records throws(Status) in
            try queue.versions(of: key, from: version, through: event, countMax: countMax, in: records)
        }
    }

    package func request(for event: Delivery.Event) throws(Status) -> EventRequest? {
        guard let queue else { return nil }
        let stored = try reading { records throws(Status) in
            try queue.record(of: event, in: records) == nil ? nil : try TreeEventRecords.record(of: event, in: records)
        }
        let definition = definition.withLock { $0 }
        // The type may have changed since the write.
        guard let (record, author) = stored, definition.type.wants(record.kind) else { return nil }
        return try TreeEventRequest.make(
            event, record, by: author, in: events.namespace, for: definition, location: location)
    }

    package func expiredVersion() -> Int64 { horizon.withLock { $0 }.version(newest: events.newestCommit) }

    package func settle(
        _ settled: [Delivery.Settled], completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) -> Int {
        let definition = definition.withLock { $0 }
        let settlement: EventSettlement
        do throws(Status) {
            settlement = try EventSettlement(settled, of: definition, at: clock.now().microseconds) {
                event throws(Status) in try record(ofDead: event)
            }
        } catch {
            // Tried again: no event is lost in silence.
            completion(.failure(error))
            return 1
        }
        tree.edit(
            { [events] transaction throws(Status) in
                try events.ledger.settle(settlement, of: definition.id, in: transaction)
            }, completion: completion)
        return settlement.events.count
    }

    /// - Returns: nil when the queue doesn't have the event any more.
    private func record(ofDead event: Delivery.Event) throws(Status) -> [UInt8]? {
        try reading { records throws(Status) -> [UInt8]? in
            guard let queue, try queue.record(of: event, in: records) != nil else { return nil }
            do throws(Status) {
                let (record, author) = try TreeEventRecords.record(of: event, in: records)
                return TreeDeadLetter(record: record, author: author.stored).bytes
            } catch {
                if error.code == .unavailable { throw error }
                // Without its data it shows at least what was lost.
                let fault = TreeEventRecord(kind: .updated, author: .own([]), content: .fault(error.message))
                return TreeDeadLetter(record: fault, author: EventAuthor.unknown.stored).bytes
            }
        }
    }
}

/// The request for an event of the Realtime Database.
enum TreeEventRequest {
    /// - Parameter other: the event's id, if it is not the usual one.
    /// - Throws: RESOURCE_EXHAUSTED for an event that can't be sent, with the reason.
    static func make(
        _ event: Delivery.Event, _ record: TreeEventRecord, by author: EventAuthor, in namespace: String,
        for definition: TriggerDefinition, location: String, id other: EventID? = nil
    ) throws(Status) -> EventRequest {
        let data: [UInt8]
        switch record.content {
        case .data(let stored): data = stored
        case .fault(let sentence): throw .resourceExhausted(sentence)
        }
        let path = TreePath(String(decoding: event.key, as: UTF8.self))
        let change = TreeEvent(
            namespace: namespace, path: path, time: Timestamp(microseconds: event.version), kind: record.kind,
            data: data, author: author)
        return EventRequest(
            change, id: other ?? id(event, namespace, definition.name), type: definition.type, location: location,
            form: definition.form, captures: captures(definition.pattern, EventPath(event.key)))
    }

    /// The pattern may have changed since the write.
    private static func captures(_ pattern: EventPattern, _ path: EventPath) -> [(name: String, value: String)] {
        pattern.matches(path) ? pattern.captures(path) : []
    }

    /// A tree has no incarnations: another one with the same name has later versions.
    static func id(_ event: Delivery.Event, _ namespace: String, _ trigger: String) -> EventID {
        EventID(
            version: event.version, incarnation: 0,
            subject: Array(namespace.utf8) + [UInt8(ascii: "/")] + event.key, trigger: trigger)
    }
}
