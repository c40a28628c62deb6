import HearthModel
import HearthCache
import HearthWire

/// The batches of one user, in `mutations`. The documents that they affect are in `document_mutations`.
final class SQLiteMutationQueue: MutationQueue {
    private unowned let persistence: SQLitePersistence
    private let user: ClientUser
    private var database: CacheDatabase { persistence.database }

    init(_ persistence: SQLitePersistence, _ user: ClientUser) {
        self.persistence = persistence
        self.user = user
    }

    /// nil as long as the user has written nothing.
    private var userID: Int64? { get throws(Status) { try persistence.names.user(user) } }

    // MARK: The Write stream

    var stream: StreamResumption {
        get throws(Status) {
            guard let userID = try userID else { return StreamResumption() }
            return try database.first(
                "SELECT last_stream_id, last_stream_token FROM users WHERE id = ?", .integer(userID)
            ) { StreamResumption(id: String(decoding: $0.bytes(0), as: UTF8.self), token: $0.bytes(1)) }
                ?? StreamResumption()
        }
    }

    func setStream(_ stream: StreamResumption) throws(Status) {
        try database.run(
            "UPDATE users SET last_stream_id = ?, last_stream_token = ? WHERE id = ?", .bytes(Array(stream.id.utf8)),
            .bytes(stream.token), .integer(try persistence.names.addUser(user)))
    }

    func setStreamToken(_ token: [UInt8]) throws(Status) {
        try database.run(
            "UPDATE users SET last_stream_token = ? WHERE id = ?", .bytes(token),
            .integer(try persistence.names.addUser(user)))
    }

    // MARK: Writing

    func add(localWriteTime: Timestamp, base: [Mutation], mutations: [Mutation]) throws(Status) -> MutationBatch {
        precondition(!mutations.isEmpty, "a batch has at least one mutation")
        let userID = try persistence.names.addUser(user)
        persistence.globals.highestBatchID += 1
        let batch = MutationBatch(
            id: persistence.globals.highestBatchID, localWriteTime: localWriteTime, baseMutations: base,
            mutations: mutations)
        try database.run(
            "INSERT INTO mutations (batch_id, user_id, local_write_time, base_writes, writes) VALUES (?, ?, ?, ?, ?)",
            .integer(batch.id), .integer(userID), .time(localWriteTime), .bytes(encode(base)), .bytes(encode(mutations))
        )
        for key in batch.keys {
            let document = try persistence.names.addDocument(
                key, sequenceNumber: persistence.useSequenceNumber())
            try database.run(
                "INSERT INTO document_mutations (document_id, user_id, batch_id) VALUES (?, ?, ?)", .integer(document),
                .integer(userID), .integer(batch.id))
        }
        return batch
    }

    func remove(_ batch: MutationBatch) throws(Status) {
        guard let userID = try userID else { throw missing(batch.id) }
        let first = try database.first(
            "SELECT batch_id FROM mutations WHERE user_id = ? ORDER BY batch_id LIMIT 1", .integer(userID)
        ) { Int($0.integer(0)) }
        guard first == batch.id else { throw missing(batch.id) }
        try database.run("DELETE FROM mutations WHERE batch_id = ?", .integer(batch.id))
        for key in batch.keys {
            guard let document = try persistence.names.document(key) else { continue }
            try database.run(
                "DELETE FROM document_mutations WHERE document_id = ? AND user_id = ? AND batch_id = ?",
                .integer(document), .integer(userID), .integer(batch.id))
            try persistence.referenceDelegate.removeMutationReference(key)
        }
    }

    private func missing(_ id: Int) -> Status {
        .internalError("Batch \(id) is not the first of the queue of mutations.")
    }

    // MARK: Reading

    var isEmpty: Bool { get throws(Status) { try highestUnacknowledgedBatchID == MutationBatch.unknownID } }

    var highestUnacknowledgedBatchID: Int {
        get throws(Status) {
            guard let userID = try userID else { return MutationBatch.unknownID }
            return try database.first(
                "SELECT batch_id FROM mutations WHERE user_id = ? ORDER BY batch_id DESC LIMIT 1", .integer(userID)
            ) { Int($0.integer(0)) } ?? MutationBatch.unknownID
        }
    }

    var count: Int {
        get throws(Status) {
            guard let userID = try userID else { return 0 }
            return try database.first("SELECT count(*) FROM mutations WHERE user_id = ?", .integer(userID)) {
                Int($0.integer(0))
            } ?? 0
        }
    }

    func batch(_ id: Int) throws(Status) -> MutationBatch? {
        guard let userID = try userID else { return nil }
        return try database.first(
            """
            SELECT batch_id, local_write_time, base_writes, writes FROM mutations WHERE batch_id = ? AND user_id = ?
            """, .integer(id), .integer(userID)
        ) { row throws(Status) in try batch(row) }
    }

    func nextBatch(after id: Int) throws(Status) -> MutationBatch? {
        guard let userID = try userID else { return nil }
        return try database.first(
            """
            SELECT batch_id, local_write_time, base_writes, writes FROM mutations
            WHERE user_id = ? AND batch_id > ? ORDER BY batch_id LIMIT 1
            """, .integer(userID), .integer(id)
        ) { row throws(Status) in try batch(row) }
    }

    var allBatches: [MutationBatch] {
        get throws(Status) {
            guard let userID = try userID else { return [] }
            var batches: [MutationBatch] = []
            try database.rows(
                """
                SELECT batch_id, local_write_time, base_writes, writes FROM mutations WHERE user_id = ?
                ORDER BY batch_id
                """, .integer(userID)
            ) { row throws(Status) in
                batches.append(try batch(row))
                return true
            }
            return batches
        }
    }

    func batches(affecting keys: Set<ResourcePath>) throws(Status) -> [MutationBatch] {
        guard let userID = try userID else { return [] }
        var ids: Set<Int64> = []
        for key in keys {
            try database.rows(
                """
                SELECT batch_id FROM document_mutations
                WHERE document_id = (SELECT id FROM documents WHERE key = ?) AND user_id = ?
                """, .bytes(CacheKey.encode(key)), .integer(userID)
            ) { row in
                ids.insert(row.integer(0))
                return true
            }
        }
        var batches: [MutationBatch] = []
        for id in ids.sorted() {
            guard let batch = try batch(Int(id)) else {
                throw database.damaged("The cache \(database.path) is damaged: batch \(id) of mutations is missing.")
            }
            batches.append(batch)
        }
        return batches
    }

    func contains(_ key: ResourcePath) throws(Status) -> Bool {
        guard let userID = try userID else { return false }
        return try database.first(
            """
            SELECT 1 FROM document_mutations
            WHERE document_id = (SELECT id FROM documents WHERE key = ?) AND user_id = ? LIMIT 1
            """, .bytes(CacheKey.encode(key)), .integer(userID)
        ) { _ in true } ?? false
    }

    // MARK: Rows

    private func encode(_ mutations: [Mutation]) -> [UInt8] {
        WriteList.encode(mutations.map { persistence.mutationSerializer.message($0) })
    }

    /// A batch that cannot be read loses only its own writes: they fail when the batch is the first of the queue.
    private func batch(_ row: CacheRow) throws(Status) -> MutationBatch {
        let id = Int(row.integer(0))
        let time = row.time(1)
        let damage: Status
        do throws(Status) {
            return MutationBatch(
                id: id, localWriteTime: time, baseMutations: try mutations(row.raw(2)),
                mutations: try mutations(row.raw(3)))
        } catch {
            damage = Status(.dataLoss, "The write cannot be read from the cache any more: \(error.message)")
        }
        return MutationBatch(id: id, localWriteTime: time, damage: damage, keys: try keys(of: id))
    }

    private func keys(of id: Int) throws(Status) -> Set<ResourcePath> {
        var keys: Set<ResourcePath> = []
        try database.rows(
            "SELECT d.key FROM document_mutations m JOIN documents d ON d.id = m.document_id WHERE m.batch_id = ?",
            .integer(id)
        ) { row throws(Status) in
            keys.insert(try CacheKey.decode(row.bytes(0), in: database))
            return true
        }
        return keys
    }

    private func mutations(_ bytes: UnsafeRawBufferPointer) throws(Status) -> [Mutation] {
        var mutations: [Mutation] = []
        for message in try WriteList.decode(bytes) {
            mutations.append(try persistence.mutationSerializer.mutation(message))
        }
        return mutations
    }
}
