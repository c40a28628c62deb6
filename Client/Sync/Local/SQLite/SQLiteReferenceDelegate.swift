import HearthModel

/// Notes when a document was last of use: the transaction's number, in its sentinel.
final class SQLiteReferenceDelegate: ReferenceDelegate {
    private unowned let persistence: SQLitePersistence
    var localViewReferences: (any LocalViewReferences)?

    init(_ persistence: SQLitePersistence) { self.persistence = persistence }

    func addReference(_ key: ResourcePath) throws(Status) { try touch(key) }
    func removeReference(_ key: ResourcePath) throws(Status) { try touch(key) }
    func removeMutationReference(_ key: ResourcePath) throws(Status) { try touch(key) }
    func limboDocumentTouched(_ key: ResourcePath) throws(Status) { try touch(key) }

    /// A target that nobody listens to stays until the collector takes it.
    func removeTarget(_ data: TargetData) throws(Status) {
        var data = data
        data.sequenceNumber = persistence.useSequenceNumber()
        try persistence.targetCache.update(data)
    }

    /// A key that the cache doesn't know has nothing that could be collected; it gets its sentinel with its number.
    private func touch(_ key: ResourcePath) throws(Status) {
        try persistence.database.run(
            """
            UPDATE sentinels SET sequence_number = ? WHERE document_id = (SELECT id FROM documents WHERE key = ?)
            """, .integer(persistence.useSequenceNumber()), .bytes(CacheKey.encode(key)))
    }

    func touch(_ document: Int64) throws(Status) {
        let number = persistence.useSequenceNumber()
        // What got its number just now has it already.
        try persistence.database.run(
            "UPDATE sentinels SET sequence_number = ? WHERE document_id = ? AND sequence_number <> ?",
            .integer(number), .integer(document), .integer(number))
    }
}
