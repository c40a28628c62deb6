import HearthModel
import HearthCache
import HearthWire

/// The definitions of all client-side indexes, which all users share. They are held in memory, because every query
/// reads them.
final class IndexDefinitions {
    private unowned let persistence: SQLitePersistence
    private var database: CacheDatabase { persistence.database }
    private var known: [FieldIndex]?

    init(_ persistence: SQLitePersistence) { self.persistence = persistence }

    /// Called after a rollback.
    func forget() { known = nil }

    var all: [FieldIndex] {
        get throws(Status) {
            if let known { return known }
            var indexes: [FieldIndex] = []
            try database.rows("SELECT id, collection_group, segments FROM indexes ORDER BY id") { row throws(Status) in
                let segments = try database.decoding { () throws(Status) in try Self.segments(row.raw(2)) }
                indexes.append(
                    FieldIndex(id: Int(row.integer(0)), collectionGroup: row.string(1), segments: segments))
                return true
            }
            known = indexes
            return indexes
        }
    }

    func inGroup(_ collectionID: String) throws(Status) -> [FieldIndex] {
        try all.filter { UTF8Order.equal($0.collectionGroup, collectionID) }
    }

    func add(_ index: FieldIndex) throws(Status) -> Int {
        try database.run(
            "INSERT INTO indexes (collection_group, segments) VALUES (?, ?)", .string(index.collectionGroup),
            .bytes(Self.bytes(index.segments)))
        known = nil
        return Int(database.lastInsertedID)
    }

    func delete(_ id: Int) throws(Status) {
        try database.run("DELETE FROM index_entries WHERE index_id = ?", .integer(id))
        try database.run("DELETE FROM index_states WHERE index_id = ?", .integer(id))
        try database.run("DELETE FROM indexes WHERE id = ?", .integer(id))
        known = nil
    }

    func deleteAll() throws(Status) {
        try database.run("DELETE FROM index_entries")
        try database.run("DELETE FROM index_states")
        try database.run("DELETE FROM indexes")
        known = nil
    }

    // MARK: Segments: the fields of a google.firestore.admin.v1.Index

    private static func bytes(_ segments: [FieldIndex.Segment]) -> [UInt8] {
        var message = IndexMessage()
        message.fields = segments.map { segment in
            var field = IndexMessage.IndexField()
            field.fieldPath = segment.path.string
            switch segment.kind {
            case .ascending: field.order = .ascending
            case .descending: field.order = .descending
            case .contains: field.arrayConfig = .contains
            }
            return field
        }
        return message.protobuf()
    }

    private static func segments(_ bytes: UnsafeRawBufferPointer) throws(Status) -> [FieldIndex.Segment] {
        var segments: [FieldIndex.Segment] = []
        for field in try IndexMessage(protobuf: bytes).fields {
            let kind: FieldIndex.Segment.Kind =
                field.arrayConfig == .contains ? .contains : field.order == .descending ? .descending : .ascending
            segments.append(FieldIndex.Segment(path: try FieldPath(parsing: field.fieldPath), kind: kind))
        }
        return segments
    }
}
