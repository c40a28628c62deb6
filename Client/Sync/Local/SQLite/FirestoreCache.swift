import HearthCache
import HearthModel
import HearthWire

/// How Firestore's cache is opened, and what is examined of its contents: see `CacheOpening`.
struct FirestoreCache: CacheContents {
    let files: CacheFiles
    let sizeBytes: Int64
    let schema: CacheSchema

    /// An examination takes about a second a gigabyte.
    static let checkedSizeBytesMax = 16 << 20
    var checkedSizeBytesMax: Int { Self.checkedSizeBytesMax }

    /// The log's length at which it is copied into the file, in pages: a small part of a small cache.
    var checkpointPages: Int {
        if sizeBytes < 0 { return 1000 }
        return Int(min(1000, max(50, sizeBytes / 25 / Int64(CacheSchema.pageSizeBytes))))
    }

    var creation: String {
        "PRAGMA page_size = \(CacheSchema.pageSizeBytes); PRAGMA auto_vacuum = INCREMENTAL"
    }

    var configuration: String {
        "PRAGMA cache_size = -16000; PRAGMA journal_size_limit = \(checkpointPages * CacheSchema.pageSizeBytes)"
    }

    /// - Parameter onWarning: see `CacheOpening.open`.
    func open(
        onWarning: (String) -> Void
    ) throws(Status) -> (database: CacheDatabase, lock: CacheLock, damage: CacheDamage?) {
        var damage: CacheDamage?
        let opened = try CacheOpening(file: files.file, contents: self).open(lost: onWarning) { reason, path in
            let (count, isComplete) = pendingWrites(in: path)
            let found = CacheDamage(
                reason: reason.message, path: files.database, movedTo: path, pendingWritesRead: count,
                isCountComplete: isComplete)
            damage = found
            return found.message
        }
        return (opened.database, opened.lock, damage)
    }

    func prepare(_ database: CacheDatabase) throws(Status) {
        try identify(database)
        database.observeLog()
    }

    /// Reads what the pages hold. A row that cannot be read would make every later use of it fail.
    func readAll(_ database: CacheDatabase) throws(Status) {
        _ = try CacheGlobals(database)
        try database.rows("SELECT sequence_number FROM index_states") { row throws(Status) in
            _ = try database.counter(row.integer(0))
            return true
        }
        try database.decoding { () throws(Status) in
            try database.rows("SELECT key, fields FROM documents") { row throws(Status) in
                _ = try CacheKey.decode(row.bytes(0), in: database)
                _ = try FieldsCodec.decode(row.raw(1))
                return true
            }
            try database.rows("SELECT base_writes, writes FROM mutations") { row throws(Status) in
                _ = try WriteList.decode(row.raw(0))
                _ = try WriteList.decode(row.raw(1))
                return true
            }
            try database.rows("SELECT mutation FROM overlays") { row throws(Status) in
                _ = try WriteMessage(protobuf: row.raw(0))
                return true
            }
            try database.rows("SELECT target FROM targets") { row throws(Status) in
                _ = try TargetMessage(protobuf: row.raw(0))
                return true
            }
            try database.rows("SELECT query FROM named_queries") { row throws(Status) in
                _ = try BundledQueryMessage(protobuf: row.raw(0))
                return true
            }
        }
    }

    /// Long names are shortened in the file's path; the file stores them in full.
    private func identify(_ database: CacheDatabase) throws(Status) {
        try database.run(
            "INSERT OR IGNORE INTO globals (id, app_name, project, database) VALUES (1, ?, ?, ?)",
            .string(files.appName), .string(files.databaseName.project), .string(files.databaseName.database))
        let names = try database.first("SELECT app_name, project, database FROM globals") { row in
            [row.string(0), row.string(1), row.string(2)]
        }
        let expected = [files.appName, files.databaseName.project, files.databaseName.database]
        guard let names, zip(names, expected).allSatisfy({ UTF8Order.equal($0, $1) }) else {
            throw .failedPrecondition(
                "The cache \(files.database) belongs to another app or database: \(names?.joined(separator: ", ") ?? "?")"
            )
        }
    }

    // MARK: Damage

    /// The writes of all users that can still be read; whatever cannot be is left out.
    private func pendingWrites(in path: String) -> (count: Int, isComplete: Bool) {
        var count = 0
        var isComplete = true
        do throws(Status) {
            // Opened for writing, because only then SQLite reads the log as well.
            let database = try CacheDatabase(path: path)
            defer { database.close() }
            try database.execute("PRAGMA query_only = ON")
            try database.rows("SELECT writes FROM mutations ORDER BY batch_id") { row throws(Status) in
                do throws(Status) {
                    count += try WriteList.decode(row.raw(0)).count
                } catch {
                    isComplete = false
                }
                return true
            }
            let applied = try database.first("SELECT journal_number FROM globals") { $0.integer(0) } ?? 0
            let serializer = MutationSerializer(database: files.databaseName)
            for record in try WriteJournal.records(path: CacheFile.journal(of: path), after: applied) {
                count += try JournaledWrite(record.contents, serializer).mutations.count
            }
            return (count, isComplete)
        } catch {
            return (count, false)
        }
    }
}

/// Writes of one batch as protobuf: `repeated google.firestore.v1.Write writes = 1`.
enum WriteList {
    private static let tag: UInt32 = 1 << 3 | 2

    static func encode(_ messages: [WriteMessage]) -> [UInt8] {
        var writer = ProtobufWriter()
        for message in messages {
            writer.varint(UInt64(tag))
            let start = writer.beginLength()
            message.append(to: &writer)
            writer.endLength(start)
        }
        return writer.bytes
    }

    static func decode(_ bytes: UnsafeRawBufferPointer) throws(Status) -> [WriteMessage] {
        var reader = ProtobufReader(bytes)
        var messages: [WriteMessage] = []
        while !reader.isAtEnd {
            let tag = try reader.readTag()
            guard tag == self.tag else {
                try reader.skip(tag)
                continue
            }
            let range = try reader.readRange()
            messages.append(try WriteMessage(protobuf: UnsafeRawBufferPointer(rebasing: bytes[range])))
        }
        return messages
    }
}
