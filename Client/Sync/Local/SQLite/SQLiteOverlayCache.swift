import HearthModel
import HearthCache
import HearthWire

/// The effect of one user's local writes on documents, in `overlays`.
final class SQLiteOverlayCache: OverlayCache {
    private unowned let persistence: SQLitePersistence
    private let user: ClientUser
    private var database: CacheDatabase { persistence.database }

    init(_ persistence: SQLitePersistence, _ user: ClientUser) {
        self.persistence = persistence
        self.user = user
    }

    private var userID: Int64? { get throws(Status) { try persistence.names.user(user) } }

    func overlay(of key: ResourcePath) throws(Status) -> Overlay? {
        guard let userID = try userID else { return nil }
        return try overlay(of: key, userID)
    }

    func overlays(of keys: Set<ResourcePath>) throws(Status) -> [ResourcePath: Overlay] {
        guard let userID = try userID else { return [:] }
        // Usually few writes are pending. Then a lookup of many keys reads all overlays, which costs less.
        if try count(userID) < keys.count / 4 { return try all(userID).filter { keys.contains($0.key) } }
        var overlays: [ResourcePath: Overlay] = [:]
        for key in keys { overlays[key] = try overlay(of: key, userID) }
        return overlays
    }

    private func count(_ userID: Int64) throws(Status) -> Int {
        try database.first("SELECT count(*) FROM overlays WHERE user_id = ?", .integer(userID)) {
            Int($0.integer(0))
        } ?? 0
    }

    private func all(_ userID: Int64) throws(Status) -> [ResourcePath: Overlay] {
        var overlays: [ResourcePath: Overlay] = [:]
        try database.rows("SELECT largest_batch_id, mutation FROM overlays WHERE user_id = ?", .integer(userID)) {
            row throws(Status) in
            if let overlay = overlay(row) { overlays[overlay.mutation.key] = overlay }
            return true
        }
        return overlays
    }

    private func overlay(of key: ResourcePath, _ userID: Int64) throws(Status) -> Overlay? {
        try database.first(
            """
            SELECT largest_batch_id, mutation FROM overlays
            WHERE document_id = (SELECT id FROM documents WHERE key = ?) AND user_id = ?
            """, .bytes(CacheKey.encode(key)), .integer(userID)
        ) { row in overlay(row) } ?? nil
    }

    func save(_ overlays: [ResourcePath: Mutation], largestBatchID: Int) throws(Status) {
        let userID = try persistence.names.addUser(user)
        for (key, mutation) in overlays {
            let document = try persistence.names.addDocument(key, sequenceNumber: persistence.useSequenceNumber())
            let collection = try persistence.names.addCollection(key.parent)
            try database.run(
                """
                INSERT INTO overlays (user_id, document_id, collection_id, group_id, largest_batch_id, mutation)
                VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
                largest_batch_id = excluded.largest_batch_id, mutation = excluded.mutation
                """, .integer(userID), .integer(document), .integer(collection.id), .integer(collection.groupID),
                .integer(largestBatchID), .bytes(persistence.mutationSerializer.message(mutation).protobuf()))
        }
    }

    func remove(keys: Set<ResourcePath>, batchID: Int) throws(Status) {
        guard let userID = try userID else { return }
        for key in keys {
            try database.run(
                """
                DELETE FROM overlays WHERE document_id = (SELECT id FROM documents WHERE key = ?) AND user_id = ?
                AND largest_batch_id = ?
                """, .bytes(CacheKey.encode(key)), .integer(userID), .integer(batchID))
        }
    }

    func overlays(
        inCollection path: ResourcePath, above batchID: Int
    ) throws(Status) -> [ResourcePath: Overlay] {
        guard let userID = try userID, let collection = try persistence.names.collection(path) else { return [:] }
        var overlays: [ResourcePath: Overlay] = [:]
        try database.rows(
            """
            SELECT o.largest_batch_id, o.mutation FROM overlays o
            WHERE o.user_id = ? AND o.collection_id = ? AND o.largest_batch_id > ?
            """, .integer(userID), .integer(collection.id), .integer(batchID)
        ) { row throws(Status) in
            if let overlay = overlay(row) { overlays[overlay.mutation.key] = overlay }
            return true
        }
        return overlays
    }

    func overlays(
        inGroup collectionID: String, above batchID: Int, count: Int
    ) throws(Status) -> [(key: ResourcePath, overlay: Overlay)] {
        guard let userID = try userID, let groupID = try persistence.names.group(collectionID) else { return [] }
        var overlays: [(key: ResourcePath, overlay: Overlay)] = []
        try database.rows(
            """
            SELECT o.largest_batch_id, o.mutation FROM overlays o JOIN documents d ON d.id = o.document_id
            WHERE o.user_id = ? AND o.group_id = ? AND o.largest_batch_id > ? ORDER BY o.largest_batch_id, d.key
            """, .integer(userID), .integer(groupID), .integer(batchID)
        ) { row throws(Status) in
            if overlays.count >= count, let last = overlays.last, last.overlay.largestBatchID != Int(row.integer(0)) {
                return false
            }
            if let overlay = overlay(row) { overlays.append((overlay.mutation.key, overlay)) }
            return true
        }
        return overlays
    }

    /// nil when it cannot be read. Its batch cannot be read either, and fails when it is the first of the queue.
    private func overlay(_ row: CacheRow) -> Overlay? {
        do throws(Status) {
            return Overlay(
                largestBatchID: Int(row.integer(0)),
                mutation: try persistence.mutationSerializer.mutation(WriteMessage(protobuf: row.raw(1))))
        } catch {
            return nil
        }
    }
}
