import HearthModel
import HearthCache

/// The numbers of documents, collections and users in the file.
final class CacheNames {
    struct Collection {
        var id: Int64
        var groupID: Int64
    }

    private let database: CacheDatabase
    private var collections: [ResourcePath: Collection] = [:]
    /// Groups by the bytes of their names: a dictionary of strings would treat two spellings of "é" as equal.
    private var groups: [[UInt8]: Int64] = [:]
    private var users: [[UInt8]: Int64] = [:]

    /// The maximal number of collections in memory. Clients have few, but each document may have its own.
    private static let rememberedMax = 10_000

    init(_ database: CacheDatabase) { self.database = database }

    /// Called after a rollback: numbers from the transaction are not valid.
    func forget() {
        collections = [:]
        groups = [:]
        users = [:]
    }

    // MARK: Documents

    /// nil when the cache has no row for the document.
    func document(_ key: ResourcePath) throws(Status) -> Int64? {
        try database.first("SELECT id FROM documents WHERE key = ?", .bytes(CacheKey.encode(key))) { $0.integer(0) }
    }

    /// - Parameter sequenceNumber: for the sentinel of a new one.
    func addDocument(_ key: ResourcePath, sequenceNumber: Int64) throws(Status) -> Int64 {
        if let id = try document(key) { return id }
        let collection = try addCollection(key.parent)
        try database.run(
            "INSERT INTO documents (collection_id, group_id, key) VALUES (?, ?, ?)", .integer(collection.id),
            .integer(collection.groupID), .bytes(CacheKey.encode(key)))
        let id = database.lastInsertedID
        try database.run(
            "INSERT INTO sentinels (document_id, sequence_number) VALUES (?, ?)", .integer(id), .integer(sequenceNumber)
        )
        return id
    }

    // MARK: Collections

    func collection(_ path: ResourcePath) throws(Status) -> Collection? {
        if let known = collections[path] { return known }
        let found = try database.first(
            "SELECT id, group_id FROM collections WHERE key = ?", .bytes(CacheKey.encode(path))
        ) { Collection(id: $0.integer(0), groupID: $0.integer(1)) }
        if let found { remember(path, found) }
        return found
    }

    func addCollection(_ path: ResourcePath) throws(Status) -> Collection {
        if let known = try collection(path) { return known }
        let groupID = try addGroup(path.segments.last ?? "")
        try database.run(
            "INSERT INTO collections (group_id, key) VALUES (?, ?)", .integer(groupID), .bytes(CacheKey.encode(path)))
        let added = Collection(id: database.lastInsertedID, groupID: groupID)
        remember(path, added)
        return added
    }

    private func remember(_ path: ResourcePath, _ collection: Collection) {
        if collections.count >= Self.rememberedMax { collections = [:] }
        collections[path] = collection
    }

    /// The collections with an id that are in the cache.
    func collections(inGroup name: String) throws(Status) -> [ResourcePath] {
        guard let groupID = try group(name) else { return [] }
        var found: [ResourcePath] = []
        try database.rows("SELECT key FROM collections WHERE group_id = ? ORDER BY key", .integer(groupID)) {
            row throws(Status) in
            found.append(try CacheKey.decode(row.bytes(0), in: database))
            return true
        }
        return found
    }

    func group(_ name: String) throws(Status) -> Int64? {
        let bytes = Array(name.utf8)
        if let known = groups[bytes] { return known }
        let found = try database.first("SELECT id FROM collection_groups WHERE name = ?", .bytes(bytes)) {
            $0.integer(0)
        }
        if let found { groups[bytes] = found }
        return found
    }

    private func addGroup(_ name: String) throws(Status) -> Int64 {
        if let known = try group(name) { return known }
        let bytes = Array(name.utf8)
        try database.run("INSERT INTO collection_groups (name) VALUES (?)", .bytes(bytes))
        groups[bytes] = database.lastInsertedID
        return database.lastInsertedID
    }

    // MARK: Users

    /// nil when the cache has nothing of the user. The empty id means no user.
    func user(_ user: ClientUser) throws(Status) -> Int64? {
        let uid = Array((user.uid ?? "").utf8)
        if let known = users[uid] { return known }
        let found = try database.first("SELECT id FROM users WHERE uid = ?", .bytes(uid)) { $0.integer(0) }
        if let found { users[uid] = found }
        return found
    }

    func addUser(_ user: ClientUser) throws(Status) -> Int64 {
        if let known = try self.user(user) { return known }
        let uid = Array((user.uid ?? "").utf8)
        try database.run("INSERT INTO users (uid) VALUES (?)", .bytes(uid))
        users[uid] = database.lastInsertedID
        return database.lastInsertedID
    }
}
