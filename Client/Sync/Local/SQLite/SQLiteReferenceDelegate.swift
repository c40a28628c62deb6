import HearthModel

/// Records when a document was last used: the transaction's number, in its sentinel.
final class SQLiteReferenceDelegate: ReferenceDelegate {
    private unowned let persistence: SQLitePersistence
    var localViewReferences: (any LocalViewReferences)?

    init(_ persistence: SQLitePersistence) { self.persistence = persistence }

    func addReference(_ key: ResourcePath) throws(Status) { try touch(key) }
    func removeReference(_ key: ResourcePath) throws(Status) { try touch(key) }
    func removeMutationReference(_ key: ResourcePath) throws(Status) { try touch(key) }
    func limboDocumentTouched(_ key: ResourcePath) throws(Status) { try touch(key) }

    /// A target without listeners remains until the collector removes it.
    func removeTarget(_ data: TargetData) throws(Status) {
        var data = data
        data.sequenceNumber = persistence.useSequenceNumber()
        try persistence.targetCache.update(data)
    }

    /// A key without a row needs no update: nothing of it can be collected. It gets its sentinel together with its row.
    private func touch(_ key: ResourcePath) throws(Status) {
        try persistence.database.run(
            """
            UPDATE sentinels SET sequence_number = ? WHERE document_id = (SELECT id FROM documents WHERE key = ?)
            """, .integer(persistence.useSequenceNumber()), .bytes(CacheKey.encode(key)))
    }

    func touch(_ document: Int64) throws(Status) {
        let number = persistence.useSequenceNumber()
        // A sentinel that this transaction has already updated is not written again.
        try persistence.database.run(
            "UPDATE sentinels SET sequence_number = ? WHERE document_id = ? AND sequence_number <> ?",
            .integer(number), .integer(document), .integer(number))
    }
}
