import HearthModel
import HearthCache

/// The entries of client-side indexes, in `index_entries`.
///
///     [array element] value … value key
///
/// Values have the form of `ClientIndexValue`, the key that of `CacheKey`. The value of a descending segment and the
/// key after it are inverted. The array element is always ascending.
struct SQLiteIndexEntries {
    let persistence: SQLitePersistence
    private var database: CacheDatabase { persistence.database }

    init(persistence: SQLitePersistence) { self.persistence = persistence }

    // MARK: Writing

    /// The entries of a document; none when the document is missing or lacks a field of the index.
    static func entries(of document: ClientDocument, in index: FieldIndex) -> Set<[UInt8]> {
        guard document.isFound else { return [] }
        var tail: [UInt8] = []
        for segment in index.directionalSegments {
            guard let value = document.fields[path: segment.path] else { return [] }
            let bytes = ClientIndexValue(value).bytes
            tail += segment.kind == .descending ? ClientIndexValue.inverted(bytes) : bytes
        }
        let key = CacheKey.encode(document.key)
        tail += index.isKeyDescending ? ClientIndexValue.inverted(key) : key
        guard let array = index.arraySegment else { return [tail] }
        guard case .array(let elements)? = document.fields[path: array.path] else { return [] }
        return Set(elements.map { ClientIndexValue($0).bytes + tail })
    }

    /// Writes new entries and deletes obsolete ones.
    func update(_ document: ClientDocument, _ indexes: [FieldIndex], _ user: ClientUser) throws(Status) {
        let userID = try persistence.names.addUser(user)
        var id = try persistence.names.document(document.key)
        for index in indexes {
            let new = Self.entries(of: document, in: index)
            var old: Set<[UInt8]> = []
            if let id {
                try database.rows(
                    "SELECT entry FROM index_entries WHERE document_id = ? AND user_id = ? AND index_id = ?",
                    .integer(id), .integer(userID), .integer(index.id)
                ) { row in
                    old.insert(row.bytes(0))
                    return true
                }
            }
            for entry in old where !new.contains(entry) {
                try database.run(
                    "DELETE FROM index_entries WHERE index_id = ? AND user_id = ? AND entry = ?", .integer(index.id),
                    .integer(userID), .bytes(entry))
            }
            for entry in new where !old.contains(entry) {
                if id == nil {
                    id = try persistence.names.addDocument(
                        document.key, sequenceNumber: persistence.useSequenceNumber())
                }
                try database.run(
                    "INSERT INTO index_entries (index_id, user_id, entry, document_id) VALUES (?, ?, ?, ?)",
                    .integer(index.id), .integer(userID), .bytes(entry), .integer(id ?? 0))
            }
        }
    }

    // MARK: Reading

    /// The documents of all matches, without duplicates.
    /// - Parameter limit: the first entries of each range are sufficient, because the index has the target's order.
    func documents(
        _ matches: [IndexMatch], _ target: ClientTarget, limit: Int?, _ user: ClientUser
    ) throws(Status) -> [ResourcePath] {
        guard let userID = try persistence.names.user(user) else { return [] }
        var scope = Scope(userID: userID, keyPrefix: CacheKey.prefix(target.path), limit: limit)
        if target.collectionGroup == nil {
            guard let collection = try persistence.names.collection(target.path) else { return [] }
            scope.collectionID = collection.id
        }
        if let found = try documents(matches, scope) { return found }
        // Truncated values do not have the target's order.
        scope.limit = nil
        return try documents(matches, scope) ?? []
    }

    private struct Scope {
        var userID: Int64
        /// nil for a collection group.
        var collectionID: Int64?
        var keyPrefix: [UInt8]
        var limit: Int?
    }

    /// nil when there is a limit and the order is not certain.
    private func documents(_ matches: [IndexMatch], _ scope: Scope) throws(Status) -> [ResourcePath]? {
        var documents: [ResourcePath] = []
        var seen: Set<Int64> = []
        for match in matches {
            for range in match.ranges {
                var count = 0
                var isCertain = true
                try scan(match.index.id, range, scope) { row throws(Status) in
                    if scope.limit != nil, row.integer(2) >= ClientIndexValue.sizeBytesMax {
                        isCertain = false
                        return false
                    }
                    let key = row.raw(1)
                    guard key.starts(with: scope.keyPrefix) else { return true }
                    count += 1
                    if seen.insert(row.integer(0)).inserted {
                        documents.append(try CacheKey.decode([UInt8](key), in: database))
                    }
                    return count < scope.limit ?? .max
                }
                if !isCertain { return nil }
            }
        }
        return documents
    }

    private func scan(
        _ index: Int, _ range: IndexMatch.Range, _ scope: Scope, _ body: (CacheRow) throws(Status) -> Bool
    ) throws(Status) {
        if let limit = scope.limit, limit <= 0 { return }
        let collection = CacheValue.integer(scope.collectionID ?? -1)
        if let upper = range.upper {
            try database.rows(
                """
                SELECT d.id, d.key, length(e.entry) FROM index_entries e CROSS JOIN documents d ON d.id = e.document_id
                WHERE e.index_id = ?1 AND e.user_id = ?2 AND e.entry >= ?3 AND e.entry < ?5
                AND (?4 < 0 OR d.collection_id = ?4) ORDER BY e.entry
                """, .integer(index), .integer(scope.userID), .bytes(range.lower), collection, .bytes(upper), body: body
            )
        } else {
            try database.rows(
                """
                SELECT d.id, d.key, length(e.entry) FROM index_entries e CROSS JOIN documents d ON d.id = e.document_id
                WHERE e.index_id = ?1 AND e.user_id = ?2 AND e.entry >= ?3
                AND (?4 < 0 OR d.collection_id = ?4) ORDER BY e.entry
                """, .integer(index), .integer(scope.userID), .bytes(range.lower), collection, body: body)
        }
    }
}
