import HearthDocuments
import HearthEngine
import HearthModel

/// The events that one trigger is still to get of a database, stored with the data. A record is put by the transaction of the
/// commit that made the event, and deleted when the event is settled. The states of the document are not in it: they are
/// in the change feed, which is kept as long as there is a record of that commit or an earlier one.
///
///     keyspace meta
///     key:   "q" · number of the trigger (4 bytes) · version of the commit (8) · key of the document
///     value: `QueuedEvent`; or 3 (1 byte) · `EventBodies.Reference` to it
///
/// Numbers are big-endian.
package struct EventQueue: Sendable {
    private let prefix: [UInt8]
    private let bodies: EventBodies
    /// No record begins with it.
    private static let referenceFormat: UInt8 = 3
    private static let mark = EventKeys.event

    /// - Parameter number: the trigger's, which no other one has had in this database.
    package init(trigger number: UInt32) {
        prefix = [Self.mark] + withUnsafeBytes(of: number.bigEndian) { Array($0) }
        bodies = EventBodies(trigger: number)
    }

    /// The queues of all triggers.
    package static let all = KeyRange(prefix: [mark])

    private var headBytes: Int { prefix.count + 8 }

    private func key(_ version: Int64, _ document: [UInt8]) -> [UInt8] {
        var key: [UInt8] = []
        key.reserveCapacity(headBytes + document.count)
        key += prefix
        withUnsafeBytes(of: version.bigEndian) { key.append(contentsOf: $0) }
        key += document
        return key
    }

    // MARK: Writing

    package func put(_ event: Delivery.Event, _ record: [UInt8], in transaction: any StoreTransaction) throws(Status) {
        try transaction.put(.meta, key(event.version, event.key), record)
    }

    /// Puts an event whose record has a body, which is then the event's own.
    func put(
        _ event: Delivery.Event, _ body: EventBodies.Reference, in transaction: any StoreTransaction
    ) throws(Status) {
        try put(event, [Self.referenceFormat] + body.bytes, in: transaction)
    }

    private func body(of row: [UInt8]) -> EventBodies.Reference? {
        row.first == Self.referenceFormat ? EventBodies.Reference(row.dropFirst()) : nil
    }

    /// Deletes an event, with its body.
    /// - Returns: the bytes of the record, about; nil when the queue doesn't have the event.
    func remove(_ event: Delivery.Event, in transaction: any StoreTransaction) throws(Status) -> Int? {
        guard let row = try transaction.get(.meta, key(event.version, event.key)) else { return nil }
        try transaction.delete(.meta, key(event.version, event.key))
        guard let body = body(of: row) else { return row.count }
        try bodies.delete(body, in: transaction)
        return body.sizeBytes
    }

    // MARK: Reading

    /// The next events, in the order of commits and, within one, of the documents' keys.
    package func events(
        after event: Delivery.Event?, countMax: Int, in snapshot: any Snapshot
    ) throws(Status) -> [Delivery.Event] {
        var range = KeyRange(prefix: prefix)
        // The first key behind another one is that with a zero more.
        if let event { range.lower = key(event.version, event.key) + [0] }
        let cursor = try snapshot.scan(.meta, range, reverse: false, values: false)
        defer { cursor.close() }
        var events: [Delivery.Event] = []
        while events.count < countMax, try cursor.next() { events.append(try self.event(cursor.key)) }
        return events
    }

    /// What is stored with an event; nil when it is not there.
    /// - Throws: DATA_LOSS when its body is not there.
    package func record(of event: Delivery.Event, in snapshot: any Snapshot) throws(Status) -> [UInt8]? {
        guard let row = try snapshot.get(.meta, key(event.version, event.key)) else { return nil }
        guard let body = body(of: row) else { return row }
        guard let record = try bodies.read(body, in: snapshot) else {
            throw Status(.dataLoss, "The record of a trigger's event is not complete.")
        }
        return record
    }

    func contains(_ event: Delivery.Event, in snapshot: any Snapshot) throws(Status) -> Bool {
        try snapshot.read(.meta, key(event.version, event.key)) { _ throws(Status) in }
    }

    /// Calls `body` with each event's body, for the check of a store.
    func forEachBody(
        in snapshot: any Snapshot, _ body: (EventBodies.Reference) -> Void
    ) throws(Status) {
        let cursor = try snapshot.scan(.meta, KeyRange(prefix: prefix), reverse: false, values: true)
        defer { cursor.close() }
        while try cursor.next() { if let found = self.body(of: cursor.value) { body(found) } }
    }

    /// The version of the first event; nil when there is none.
    /// - Parameter version: no event is known to be older. A store passes over what was deleted lately, key by key, so
    ///   a search from the start costs what was delivered of late.
    package func first(from version: Int64 = 0, in snapshot: any Snapshot) throws(Status) -> Int64? {
        try events(after: Delivery.Event(version: version, key: []), countMax: 1, in: snapshot).first?.version
    }

    package func count(in snapshot: any Snapshot) throws(Status) -> Int {
        try snapshot.count(.meta, KeyRange(prefix: prefix), limit: .max)
    }

    private func event(_ key: [UInt8]) throws(Status) -> Delivery.Event {
        guard key.count > headBytes else { throw Status(.dataLoss, "A record of a trigger's queue is too short.") }
        let version = key.withUnsafeBytes {
            Int64(bigEndian: $0.loadUnaligned(fromByteOffset: prefix.count, as: Int64.self))
        }
        return Delivery.Event(version: version, key: Array(key[headBytes...]))
    }
}
