import HearthEngine
import HearthModel
import HearthWire

/// Small records about a database that are not documents. They are stored in the `meta` keyspace in the wire form of
/// fields, under `note/` and their name.
extension Database {
    static func noteKey(_ name: String) -> [UInt8] { Array("note/\(name)".utf8) }

    /// With what the names of long-running operations begin. Such a record has a field `operation`, which is a
    /// google.longrunning.Operation in protobuf.
    package static let operationNotes = "operation/"

    /// - Throws: UNAVAILABLE when the store can't be read.
    package func note(_ name: String) throws(Status) -> MapValue? {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        return try snapshot.get(.meta, Self.noteKey(name)).map { bytes throws(Status) in try FieldsCodec.decode(bytes) }
    }

    /// Changes a record in one step that no other change can interrupt.
    /// - Parameters:
    ///   - recovery: whether point-in-time recovery is on from then on; nil leaves it.
    ///   - change: gets the present record and returns the new one; called on the writer's thread. May throw.
    ///   - completion: called with the new record, when it is durable.
    package func changeNote(
        _ name: String, recovery: Bool? = nil,
        _ change: @escaping @Sendable (MapValue?) throws(Status) -> MapValue,
        completion: @escaping @Sendable (Result<MapValue, Status>) -> Void
    ) {
        let key = Self.noteKey(name)
        let earliest = earliestOfEveryVersion(now: clock.now().microseconds)
        pipeline.perform(
            { transaction throws(Status) in
                let present = try transaction.get(.meta, key).map { bytes throws(Status) in
                    try FieldsCodec.decode(bytes)
                }
                try transaction.put(.meta, key, FieldsCodec.encode(try change(present)))
                if let recovery { try PointInTimeRecovery.set(recovery, earliest: earliest, in: transaction) }
            },
            completion: { [self] result in
                do throws(Status) {
                    try result.get()
                    if recovery != nil { try followRecovery() }
                    completion(.success(try note(name) ?? MapValue()))
                } catch {
                    completion(.failure(error))
                }
            })
    }

    /// On the writer's thread, so that of two changes the later one is followed last.
    private func followRecovery() throws(Status) {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        recoverySince.store(try PointInTimeRecovery.since(in: snapshot), ordering: .relaxed)
        keepHistory()
    }

    /// The records whose names begin with `prefix`, in the order of their names.
    /// - Parameters:
    ///   - last: a name; the records behind it are returned.
    ///   - sizeBytesMax: the record that exceeds it is the last one.
    /// - Throws: UNAVAILABLE when the store can't be read.
    package func notes(
        _ prefix: String, after last: String? = nil, limit: Int, sizeBytesMax: Int = .max
    ) throws(Status) -> [(name: String, fields: MapValue)] {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        var found: [(name: String, fields: MapValue)] = []
        var sizeBytes = 0
        try Notes(snapshot).forEach(prefix, after: last) { name, fields, bytes in
            found.append((name, fields))
            sizeBytes += bytes
            return found.count < limit && sizeBytes < sizeBytesMax
        }
        return found
    }

    /// Changes records in one step that no other change can interrupt.
    /// - Parameters:
    ///   - body: called on the writer's thread; changes nothing when it throws.
    ///   - completion: called when the changes are durable.
    package func changeNotes(
        _ body: @escaping @Sendable (NoteChanges) throws(Status) -> Void,
        completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        pipeline.perform(
            { transaction throws(Status) in try body(NoteChanges(transaction)) }, completion: completion)
    }
}

/// The records of a state.
private struct Notes {
    let snapshot: any Snapshot

    init(_ snapshot: any Snapshot) { self.snapshot = snapshot }

    /// - Parameters:
    ///   - last: a name; the records behind it are visited.
    ///   - body: gets the record and the bytes of its fields; returns false to end.
    func forEach(
        _ prefix: String, after last: String? = nil, _ body: (String, MapValue, Int) throws(Status) -> Bool
    ) throws(Status) {
        var range = KeyRange(prefix: Database.noteKey(prefix))
        if let last { range.lower = Database.noteKey(last) + [0] }
        let cursor = try snapshot.scan(
            .meta, range, reverse: false, values: true, dropping: Database.noteKey("").count)
        defer { cursor.close() }
        while try cursor.next() {
            let name = String(decoding: cursor.key, as: UTF8.self)
            let value = cursor.value
            guard try body(name, try FieldsCodec.decode(value), value.count) else { return }
        }
    }
}

/// The records of a database while some of them are changed.
package struct NoteChanges {
    private let transaction: any StoreTransaction

    fileprivate init(_ transaction: any StoreTransaction) { self.transaction = transaction }

    package func note(_ name: String) throws(Status) -> MapValue? {
        try transaction.get(.meta, Database.noteKey(name)).map { bytes throws(Status) in
            try FieldsCodec.decode(bytes)
        }
    }

    /// - Parameter fields: nil deletes the record.
    package func set(_ name: String, _ fields: MapValue?) throws(Status) {
        let key = Database.noteKey(name)
        guard let fields else { return try transaction.delete(.meta, key) }
        try transaction.put(.meta, key, FieldsCodec.encode(fields))
    }

    /// The number of records whose names begin with `prefix`; counting stops at `limit`.
    package func count(_ prefix: String, limit: Int) throws(Status) -> Int {
        try transaction.count(.meta, KeyRange(prefix: Database.noteKey(prefix)), limit: limit)
    }

    /// The first record, in the order of names, for which a condition holds.
    package func first(
        _ prefix: String, where condition: (String, MapValue) throws(Status) -> Bool
    ) throws(Status) -> String? {
        var found: String?
        try Notes(transaction).forEach(prefix) { name, fields, _ throws(Status) in
            if try condition(name, fields) { found = name }
            return found == nil
        }
        return found
    }
}
