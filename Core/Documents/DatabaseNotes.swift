import HearthModel
import HearthWire

/// Small records about a database that are not documents. They are stored in the `meta` keyspace in the wire form of
/// fields, under `note/` and their name.
extension Database {
    static func noteKey(_ name: String) -> [UInt8] { Array("note/\(name)".utf8) }

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
}
