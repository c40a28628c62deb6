import HearthModel
import HearthCache
import HearthWire

/// Targets, in `targets`, and the documents that the server sent for them, in `target_documents`.
final class SQLiteTargetCache: TargetCache {
    private unowned let persistence: SQLitePersistence
    private var database: CacheDatabase { persistence.database }

    init(_ persistence: SQLitePersistence) { self.persistence = persistence }

    // MARK: Globals

    var highestTargetID: Int32 { persistence.globals.highestTargetID }
    var highestSequenceNumber: Int64 { persistence.globals.highestSequenceNumber }
    var count: Int { persistence.globals.targetCount }
    var lastRemoteSnapshotVersion: Timestamp { persistence.globals.lastSnapshotVersion }

    func setLastRemoteSnapshotVersion(_ version: Timestamp) throws(Status) {
        persistence.globals.lastSnapshotVersion = version
    }

    // MARK: Targets

    func add(_ data: TargetData) throws(Status) {
        persistence.globals.targetCount += 1
        try save(data)
    }

    func update(_ data: TargetData) throws(Status) { try save(data) }

    private func save(_ data: TargetData) throws(Status) {
        let globals = persistence.globals
        persistence.globals.highestTargetID = max(globals.highestTargetID, data.targetID)
        persistence.globals.highestSequenceNumber = max(globals.highestSequenceNumber, data.sequenceNumber)
        try database.run(
            """
            INSERT OR REPLACE INTO targets (target_id, canonical_id, sequence_number, snapshot_version,
                last_limbo_free_version, resume_token, target) VALUES (?, ?, ?, ?, ?, ?, ?)
            """, .integer(data.targetID), .string(data.target.canonicalID), .integer(data.sequenceNumber),
            .time(data.snapshotVersion), .time(data.lastLimboFreeVersion), .bytes(data.resumeToken),
            .bytes(persistence.targetSerializer.message(data.target).protobuf()))
    }

    func remove(_ data: TargetData) throws(Status) {
        try removeAllKeys(of: data.targetID)
        try drop(data.targetID)
    }

    /// Does not notify the reference delegate: collecting a target is not a use of its documents.
    func drop(_ targetID: Int32) throws(Status) {
        try database.run("DELETE FROM target_documents WHERE target_id = ?", .integer(targetID))
        try database.run("DELETE FROM targets WHERE target_id = ?", .integer(targetID))
        persistence.globals.targetCount -= database.changes
    }

    func target(_ target: ClientTarget) throws(Status) -> TargetData? {
        var found: TargetData?
        // Different targets may have one canonical id.
        try database.rows(
            """
            SELECT target_id, sequence_number, snapshot_version, last_limbo_free_version, resume_token, target
            FROM targets WHERE canonical_id = ?
            """, .string(target.canonicalID)
        ) { row throws(Status) in
            let data = try self.data(row)
            if data.target == target { found = data }
            return found == nil
        }
        return found
    }

    func forEach(_ body: (TargetData) -> Void) throws(Status) {
        try database.rows(
            """
            SELECT target_id, sequence_number, snapshot_version, last_limbo_free_version, resume_token, target
            FROM targets ORDER BY target_id
            """
        ) { row throws(Status) in
            body(try data(row))
            return true
        }
    }

    private func data(_ row: CacheRow) throws(Status) -> TargetData {
        let target = try database.decoding { () throws(Status) in
            try persistence.targetSerializer.target(TargetMessage(protobuf: row.raw(5)))
        }
        return TargetData(
            target: target, targetID: Int32(truncatingIfNeeded: row.integer(0)), sequenceNumber: row.integer(1),
            snapshotVersion: row.time(2), lastLimboFreeVersion: row.time(3), resumeToken: row.bytes(4))
    }

    // MARK: Keys

    func addKeys(_ keys: Set<ResourcePath>, to targetID: Int32) throws(Status) {
        let sequenceNumber = persistence.useSequenceNumber()
        for key in keys {
            let document = try persistence.names.addDocument(key, sequenceNumber: sequenceNumber)
            try database.run(
                "INSERT OR IGNORE INTO target_documents (target_id, document_id) VALUES (?, ?)", .integer(targetID),
                .integer(document))
            try persistence.referenceDelegate.touch(document)
        }
    }

    func removeKeys(_ keys: Set<ResourcePath>, from targetID: Int32) throws(Status) {
        for key in keys {
            guard let document = try persistence.names.document(key) else { continue }
            try database.run(
                "DELETE FROM target_documents WHERE target_id = ? AND document_id = ?", .integer(targetID),
                .integer(document))
            try persistence.referenceDelegate.touch(document)
        }
    }

    func removeAllKeys(of targetID: Int32) throws(Status) {
        try database.run(
            """
            UPDATE sentinels SET sequence_number = ?
            WHERE document_id IN (SELECT document_id FROM target_documents WHERE target_id = ?)
            """, .integer(persistence.useSequenceNumber()), .integer(targetID))
        try database.run("DELETE FROM target_documents WHERE target_id = ?", .integer(targetID))
    }

    func keys(of targetID: Int32) throws(Status) -> Set<ResourcePath> {
        var keys: Set<ResourcePath> = []
        try database.rows(
            """
            SELECT d.key FROM target_documents t JOIN documents d ON d.id = t.document_id WHERE t.target_id = ?
            """, .integer(targetID)
        ) { row throws(Status) in
            keys.insert(try CacheKey.decode(row.bytes(0), in: database))
            return true
        }
        return keys
    }

    func contains(_ key: ResourcePath) throws(Status) -> Bool {
        try database.first(
            """
            SELECT 1 FROM target_documents WHERE document_id = (SELECT id FROM documents WHERE key = ?) LIMIT 1
            """, .bytes(CacheKey.encode(key))
        ) { _ in true } ?? false
    }
}
