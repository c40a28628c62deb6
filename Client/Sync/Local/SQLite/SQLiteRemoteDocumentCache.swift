import HearthModel
import HearthCache
import HearthWire

/// The server's documents, in `documents`. Rows of kind 0 are not documents: they only assign a number to a key.
final class SQLiteRemoteDocumentCache: RemoteDocumentCache {
    private unowned let persistence: SQLitePersistence
    private var database: CacheDatabase { persistence.database }

    init(_ persistence: SQLitePersistence) { self.persistence = persistence }

    // MARK: Writing

    func add(_ document: ClientDocument, readTime: Timestamp) throws(Status) {
        guard let kind = Self.number(document.kind) else {
            preconditionFailure("the cache contains no invalid documents")
        }
        let fields: CacheValue = document.isFound ? .bytes(FieldsCodec.encode(document.fields)) : .null
        let isCommitted = CacheValue.integer(document.hasCommittedMutations ? 1 : 0)
        let key = CacheKey.encode(document.key)
        try database.run(
            """
            UPDATE documents SET kind = ?, is_committed = ?, version = ?, create_time = ?, read_time = ?, fields = ?
            WHERE key = ?
            """, .integer(kind), isCommitted, .time(document.version), .time(document.createTime), .time(readTime),
            fields,
            .bytes(key))
        if database.changes > 0 { return }
        let collection = try persistence.names.addCollection(document.key.parent)
        try database.run(
            """
            INSERT INTO documents (collection_id, group_id, key, kind, is_committed, version, create_time, read_time, fields)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            """, .integer(collection.id), .integer(collection.groupID), .bytes(key), .integer(kind), isCommitted,
            .time(document.version), .time(document.createTime), .time(readTime), fields)
        try database.run(
            "INSERT INTO sentinels (document_id, sequence_number) VALUES (?, ?)", .integer(database.lastInsertedID),
            .integer(persistence.useSequenceNumber()))
    }

    func remove(_ keys: [ResourcePath]) throws(Status) {
        for key in keys {
            // The key has its number until the collector removes it.
            try database.run(
                "UPDATE documents SET kind = 0, fields = NULL WHERE key = ? AND kind > 0", .bytes(CacheKey.encode(key)))
        }
    }

    // MARK: Reading

    func document(_ key: ResourcePath) throws(Status) -> ClientDocument {
        let found = try database.first(
            """
            SELECT kind, is_committed, version, create_time, read_time, fields FROM documents WHERE key = ? AND kind > 0
            """, .bytes(CacheKey.encode(key))
        ) { row throws(Status) in try document(key, row, from: 0) }
        return found ?? ClientDocument(key: key)
    }

    func documents(_ keys: Set<ResourcePath>) throws(Status) -> [ResourcePath: ClientDocument] {
        var documents: [ResourcePath: ClientDocument] = [:]
        documents.reserveCapacity(keys.count)
        for key in keys { documents[key] = try document(key) }
        return documents
    }

    func documents(
        matching query: ClientQuery, after offset: IndexOffset, mutated: Set<ResourcePath>, onRead: (Int) -> Void
    ) throws(Status) -> [ClientDocument] {
        guard let collection = try persistence.names.collection(query.path) else { return [] }
        let matcher = ClientQueryMatcher(query)
        let probe = FieldsProbe(query)
        let prefixBytes = CacheKey.prefix(query.path).count
        let offsetKey = CacheKey.encode(offset.key)
        var documents: [ClientDocument] = []
        var count = 0
        func take(_ row: CacheRow) throws(Status) -> Bool {
            count += 1
            if row.time(4) == offset.readTime, UTF8Order.compare(row.bytes(6), offsetKey) <= 0 { return true }
            var mayMatch = row.integer(0) == Self.foundNumber
            if mayMatch {
                mayMatch = try database.decoding { () throws(Status) in try probe.mayMatch(row.raw(5)) }
            }
            if !mayMatch, mutated.isEmpty { return true }
            let key = try CacheKey.decode(row.raw(6), in: query.path, prefixBytes: prefixBytes, database)
            let isMutated = !mutated.isEmpty && mutated.contains(key)
            guard mayMatch || isMutated else { return true }
            let document = try document(key, row, from: 0)
            if isMutated || matcher.matches(document) { documents.append(document) }
            return true
        }
        if offset.key.isRoot {
            // In the order of the index, which is nearly that of the rows: documents that were stored together are
            // adjacent.
            try database.rows(
                """
                SELECT kind, is_committed, version, create_time, read_time, fields, key FROM documents
                INDEXED BY documents_by_collection WHERE collection_id = ? AND kind > 0 AND read_time >= ?
                """, .integer(collection.id), .time(offset.readTime), body: take)
        } else {
            // After a given document, for example at the end of an index: other documents of the same read time are
            // skipped by key.
            try database.rows(
                """
                SELECT kind, is_committed, version, create_time, read_time, fields, key FROM documents
                INDEXED BY documents_by_group
                WHERE group_id = ? AND kind > 0 AND (read_time, key) > (?, ?) AND collection_id = ?
                """, .integer(collection.groupID), .time(offset.readTime), .bytes(offsetKey), .integer(collection.id),
                body: take)
        }
        onRead(count)
        return documents
    }

    func documents(
        inGroup collectionID: String, after offset: IndexOffset, limit: Int
    ) throws(Status) -> [ClientDocument] {
        guard let groupID = try persistence.names.group(collectionID) else { return [] }
        var documents: [ClientDocument] = []
        try database.rows(
            """
            SELECT kind, is_committed, version, create_time, read_time, fields, key
            FROM documents INDEXED BY documents_by_group
            WHERE group_id = ? AND kind > 0 AND (read_time, key) > (?, ?) ORDER BY read_time, key LIMIT ?
            """, .integer(groupID), .time(offset.readTime), .bytes(CacheKey.encode(offset.key)), .integer(limit)
        ) { row throws(Status) in
            documents.append(try document(CacheKey.decode(row.bytes(6), in: database), row, from: 0))
            return true
        }
        return documents
    }

    var size: Int64 { get throws(Status) { try persistence.sizeBytes } }

    // MARK: Rows

    private static let foundNumber: Int64 = 1
    private static let missingNumber: Int64 = 2
    private static let unknownNumber: Int64 = 3

    private static func number(_ kind: ClientDocument.Kind) -> Int64? {
        switch kind {
        case .invalid: nil
        case .found: foundNumber
        case .missing: missingNumber
        case .unknown: unknownNumber
        }
    }

    /// A row's document. The columns from `first` on are kind, committed, version, create time, read time, fields.
    private func document(_ key: ResourcePath, _ row: CacheRow, from first: Int32) throws(Status) -> ClientDocument {
        let kind: ClientDocument.Kind? =
            switch row.integer(first) {
            case Self.foundNumber: .found
            case Self.missingNumber: .missing
            case Self.unknownNumber: .unknown
            default: nil
            }
        guard let kind else {
            throw database.damaged("The cache \(database.path) is damaged: a document of kind \(row.integer(first)).")
        }
        var document = ClientDocument(
            key: key, kind: kind, version: row.time(first + 2), readTime: row.time(first + 4),
            createTime: row.time(first + 3), state: row.integer(first + 1) != 0 ? .hasCommittedMutations : .synced)
        if kind == .found {
            document.fields = try database.decoding { () throws(Status) in try FieldsCodec.decode(row.raw(first + 5)) }
        }
        return document
    }
}
