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
    /// A namespace that is open, and its events.
    package struct Open: Sendable {
        let tree: TreeDatabase
        /// What keeps the tree open while there is a reference to it.
        let owner: any AnyObject & Sendable
        let events: TreeEvents

        package init(tree: TreeDatabase, owner: any AnyObject & Sendable, events: TreeEvents) {
            self.tree = tree
            self.owner = owner
            self.events = events
        }
    }

    package typealias Opening = SourceOpening<Open>

    private let opening: SourceAccess<Open>
    let definition: SourceDefinition
    private let namespace: String
    private let location: String
    private let clock: any Clock

    /// - Parameters:
    ///   - open: the namespace if it is open; otherwise has it opened.
    ///   - location: the region that events name.
    package init(
        _ definition: TriggerDefinition, namespace: String, location: String, clock: any Clock = SystemClock(),
        open: @escaping @Sendable () -> Opening
    ) {
        self.namespace = namespace
        self.location = location
        self.clock = clock
        self.definition = SourceDefinition(definition, clock: clock)
        opening = SourceAccess(open)
    }

    package func access() -> EventAccess {
        opening.begin { definition.note(newest: $0.events.newestCommit, $0.events.elapsed) }
    }

    package func release() { opening.end() }

    private func queue(_ open: Open) -> EventQueue? { open.events.ledger.queue(of: definition.value.id) }

    private func reading<Result>(
        _ open: Open, _ body: (any Snapshot) throws(Status) -> Result
    ) throws(Status) -> Result {
        let view: TreeView
        do throws(Status) {
            view = try open.tree.view()
        } catch {
            // That is no fault of an event.
            throw .unavailable(error.message)
        }
        defer { view.close() }
        return try body(view.records)
    }

    // MARK: EventSource

    package func events(after event: Delivery.Event?, countMax: Int) throws(Status) -> [Delivery.Event] {
        let open = try opening.opened()
        guard let queue = queue(open) else { return [] }
        return try reading(open) { records throws(Status) in
            try queue.events(after: event, countMax: countMax, in: records)
        }
    }

    package func request(for event: Delivery.Event) throws(Status) -> EventRequest? {
        let open = try opening.opened()
        guard let queue = queue(open) else { return nil }
        let stored = try reading(open) { records throws(Status) in
            try queue.record(of: event, in: records) == nil ? nil : try TreeEventRecords.record(of: event, in: records)
        }
        let definition = definition.value
        // The type may have changed since the write.
        guard let (record, author) = stored, definition.type.wants(record.kind) else { return nil }
        return try TreeEventRequest.make(
            event, record, by: author, in: namespace, for: definition, location: location)
    }

    package func expiredVersion() -> Int64 { definition.expiredVersion() }

    package func settle(
        _ settled: [Delivery.Settled], completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) -> Int {
        let definition = definition.value
        let settlement: EventSettlement
        let open: Open
        do throws(Status) {
            let current = try opening.opened()
            open = current
            settlement = try EventSettlement(settled, of: definition, at: clock.now().microseconds) {
                event throws(Status) in try record(ofDead: event, current)
            }
        } catch {
            // Tried again: no event is lost in silence.
            completion(.failure(error))
            return 1
        }
        open.tree.edit(
            { transaction throws(Status) in
                try open.events.ledger.settle(settlement, of: definition.id, in: transaction)
            }, completion: { result in withExtendedLifetime(open) { completion(result) } })
        return settlement.events.count
    }

    /// - Returns: nil when the queue doesn't have the event any more.
    private func record(ofDead event: Delivery.Event, _ open: Open) throws(Status) -> [UInt8]? {
        try reading(open) { records throws(Status) -> [UInt8]? in
            guard let queue = queue(open), try queue.record(of: event, in: records) != nil else { return nil }
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
