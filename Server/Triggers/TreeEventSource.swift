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

    private var queue: EventQueue? { events.ledger.queue(of: definition.withLock { $0.name }) }

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
        guard let (record, author) = stored else { return nil }
        let data: [UInt8]
        switch record.content {
        case .data(let stored): data = stored
        case .fault(let sentence): throw .resourceExhausted(sentence)
        }
        let definition = definition.withLock { $0 }
        let path = TreePath(String(decoding: event.key, as: UTF8.self))
        let change = TreeEvent(
            namespace: events.namespace, path: path, time: Timestamp(microseconds: event.version), kind: record.kind,
            data: data, author: author)
        return EventRequest(
            change, id: id(of: event, definition.name), type: definition.type, location: location,
            form: definition.form, captures: Self.captures(definition.pattern, EventPath(event.key)))
    }

    /// The pattern may have changed since the write.
    private static func captures(_ pattern: EventPattern, _ path: EventPath) -> [(name: String, value: String)] {
        pattern.matches(path) ? pattern.captures(path) : []
    }

    /// A tree has no incarnations: another one with the same name has later versions.
    private func id(of event: Delivery.Event, _ trigger: String) -> EventID {
        EventID(
            version: event.version, incarnation: 0,
            subject: Array(events.namespace.utf8) + [UInt8(ascii: "/")] + event.key, trigger: trigger)
    }

    package func expiredVersion() -> Int64 { horizon.withLock { $0 }.version(newest: events.newestCommit) }

    package func settle(
        _ settled: [Delivery.Settled], completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        let name = definition.withLock { $0.name }
        tree.edit(
            { [events] transaction throws(Status) in
                try events.release(settled.map(\.event), of: name, in: transaction)
            }, completion: completion)
    }
}
