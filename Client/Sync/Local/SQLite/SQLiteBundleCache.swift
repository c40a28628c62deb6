import HearthModel
import HearthCache
import HearthWire

/// Loaded bundles and their named queries.
final class SQLiteBundleCache: BundleCache {
    private unowned let persistence: SQLitePersistence
    private var database: CacheDatabase { persistence.database }

    init(_ persistence: SQLitePersistence) { self.persistence = persistence }

    func bundle(_ id: String) throws(Status) -> BundleRecord? {
        try database.first(
            "SELECT create_time, version, total_documents, total_bytes FROM bundles WHERE id = ?", .string(id)
        ) { row in
            BundleRecord(
                id: id, createTime: row.time(0), version: Int(row.integer(1)), totalDocuments: Int(row.integer(2)),
                totalBytes: row.integer(3))
        }
    }

    func save(_ bundle: BundleRecord) throws(Status) {
        try database.run(
            """
            INSERT OR REPLACE INTO bundles (id, create_time, version, total_documents, total_bytes)
            VALUES (?, ?, ?, ?, ?)
            """, .string(bundle.id), .time(bundle.createTime), .integer(bundle.version),
            .integer(bundle.totalDocuments),
            .integer(bundle.totalBytes))
    }

    func namedQuery(_ name: String) throws(Status) -> NamedQuery? {
        try database.first("SELECT read_time, query FROM named_queries WHERE name = ?", .string(name)) {
            row throws(Status) in
            let query = try database.decoding { () throws(Status) in
                let message = try BundledQueryMessage(protobuf: row.raw(1))
                return try persistence.targetSerializer.query(
                    parent: message.parent, message.structuredQuery ?? StructuredQueryMessage(),
                    limitType: message.limitType == .last ? .last : .first)
            }
            return NamedQuery(name: name, query: query, readTime: row.time(0))
        }
    }

    func save(_ query: NamedQuery) throws(Status) {
        // A target of a limit to the first is not reversed: it has the user's directions and bounds.
        var unreversed = query.query
        unreversed.limitType = .first
        let structured = persistence.targetSerializer.query(unreversed.target)
        let message = BundledQueryMessage(
            parent: structured.parent.string, structuredQuery: StructuredQueryMessage(structured),
            limitType: query.query.limitType == .last ? .last : .first)
        try database.run(
            "INSERT OR REPLACE INTO named_queries (name, read_time, query) VALUES (?, ?, ?)", .string(query.name),
            .time(query.readTime), .bytes(message.protobuf()))
    }
}
