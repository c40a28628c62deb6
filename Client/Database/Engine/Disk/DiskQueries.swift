import HearthModel
import HearthCache
import HearthTree

/// The locations and queries that the cache has data of. All of them are in memory, too.
///
/// A whole location has no query. Its data is in the server's tree; the window of a query has a space of its own,
/// identified by the query's number.
final class DiskQueries {
    final class Query {
        let id: Int64
        let path: TreePath
        let query: TreeQuery?
        fileprivate(set) var isComplete: Bool
        /// Increases with each use.
        fileprivate(set) var lastUse: Int64
        /// Views that use it in this run.
        fileprivate(set) var users = 0

        init(id: Int64, path: TreePath, query: TreeQuery?, isComplete: Bool, lastUse: Int64) {
            self.id = id
            self.path = path
            self.query = query
            self.isComplete = isComplete
            self.lastUse = lastUse
        }
    }

    /// The last use on disk of a query that is in use.
    private static let inUse = Int64.max

    private let database: CacheDatabase
    private var byLocation = PathTrie<[TreeQuery?: Query]>()
    private var lastID: Int64 = 0
    private var clock: Int64 = 0

    init(database: CacheDatabase) { self.database = database }

    func load() throws(Status) {
        try database.rows("SELECT id, path, query, is_complete, last_use FROM queries") { row throws(Status) in
            let query = try self.query(row.bytes(2))
            let lastUse = try Self.lastUse(row.integer(4), in: database)
            let loaded = Query(
                id: try database.counter(row.integer(0)), path: TreePath(row.string(1)), query: query,
                isComplete: row.integer(3) != 0, lastUse: lastUse)
            self.keep(loaded)
            self.lastID = max(self.lastID, loaded.id)
            if loaded.lastUse != Self.inUse { self.clock = max(self.clock, loaded.lastUse) }
            return true
        }
        // Queries in use when the last run was killed are newer than all others.
        for query in all where query.lastUse == Self.inUse { query.lastUse = clock + 1 }
        clock += 1
        // Queries that never became complete.
        for query in all where !query.isComplete {
            try database.run("DELETE FROM leaves WHERE space = ?", .integer(query.id))
            try remove(query)
        }
    }

    private static func lastUse(_ number: Int64, in database: CacheDatabase) throws(Status) -> Int64 {
        number == inUse ? number : try database.counter(number)
    }

    /// - Throws: DATA_LOSS when a number is none that can be counted on from.
    static func checkNumbers(in database: CacheDatabase) throws(Status) {
        try database.rows("SELECT id, last_use FROM queries") { row throws(Status) in
            _ = try database.counter(row.integer(0))
            _ = try lastUse(row.integer(1), in: database)
            return true
        }
    }

    private func query(_ string: [UInt8]) throws(Status) -> TreeQuery? {
        if string.isEmpty { return nil }
        do {
            return try TreeQuery(wire: TreeJSON.value(string))
        } catch {
            throw database.damaged("The cache \(database.path) has a query that cannot be read: \(error)")
        }
    }

    subscript(query: TreeQuery?, path: TreePath) -> Query? { byLocation[path]?[query] }

    private var all: [Query] {
        var all: [Query] = []
        byLocation.forEach { all += $1.values }
        return all
    }

    // MARK: Use

    func make(_ query: TreeQuery?, at path: TreePath) throws(Status) -> Query {
        clock += 1
        if let own = self[query, path] {
            own.lastUse = clock
            try save(own)
            return own
        }
        lastID += 1
        let own = Query(id: lastID, path: path, query: query, isComplete: false, lastUse: clock)
        keep(own)
        try save(own)
        return own
    }

    private func keep(_ own: Query) {
        byLocation.update(at: own.path) { trie in
            if trie.value == nil { trie.value = [:] }
            trie.value?[own.query] = own
        }
    }

    func use(_ query: TreeQuery?, at path: TreePath) throws(Status) {
        let own = try make(query, at: path)
        own.users += 1
        if own.users == 1 { try save(own) }
    }

    /// - Returns: the query if it never became complete and has no users: its data is useless.
    func stopUsing(_ query: TreeQuery?, at path: TreePath) throws(Status) -> Query? {
        guard let own = self[query, path] else { return nil }
        own.users = max(0, own.users - 1)
        if own.users > 0 { return nil }
        clock += 1
        own.lastUse = clock
        try save(own)
        return own.isComplete ? nil : own
    }

    func complete(_ own: Query) throws(Status) {
        if own.isComplete { return }
        own.isComplete = true
        try save(own)
    }

    /// The whole locations at and below a location, which are completely known now.
    func completeUsed(below path: TreePath) throws(Status) {
        var waiting: [Query] = []
        byLocation.subtrie(at: path)?.forEach { _, queries in
            if let own = queries[nil], !own.isComplete { waiting.append(own) }
        }
        for own in waiting { try complete(own) }
    }

    private func save(_ own: Query) throws(Status) {
        var string: [UInt8] = []
        if let query = own.query { TreeJSON.append(query.wire, to: &string) }
        try database.run(
            "INSERT OR REPLACE INTO queries (id, path, query, is_complete, last_use) VALUES (?, ?, ?, ?, ?)",
            .integer(own.id), .string(own.path.string), .bytes(string), .integer(own.isComplete ? 1 : 0),
            .integer(own.users > 0 ? Self.inUse : own.lastUse))
    }

    func remove(_ own: Query) throws(Status) {
        byLocation.update(at: own.path) { trie in
            trie.value?[own.query] = nil
            if trie.value?.isEmpty == true { trie.value = nil }
        }
        try database.run("DELETE FROM queries WHERE id = ?", .integer(own.id))
    }

    // MARK: Looking

    /// A location at or above the path with complete data: the one in use, if there is any, or the lowest.
    func completeLocation(atOrAbove path: TreePath) -> Query? {
        let candidates = wholeLocations(atOrAbove: path).filter(\.isComplete)
        return candidates.first { $0.users > 0 } ?? candidates.last
    }

    private func wholeLocations(atOrAbove path: TreePath) -> [Query] {
        var found: [Query] = []
        var trie = byLocation
        for depth in 0...path.count {
            if let whole = trie.value?[nil] { found.append(whole) }
            guard depth < path.count, let next = trie.children[path.keys[depth]] else { break }
            trie = next
        }
        return found
    }

    /// The highest locations strictly below a location with complete data.
    func completeLocations(below path: TreePath) -> [TreePath] { locations(below: path) { $0.isComplete } }

    /// The highest locations strictly below a location with complete or incoming data.
    func storedLocations(below path: TreePath) -> [TreePath] {
        locations(below: path) { $0.isComplete || $0.users > 0 }
    }

    /// Whether a location has complete or incoming data, directly or by a location above it.
    func isKept(at path: TreePath) -> Bool {
        wholeLocations(atOrAbove: path).contains { $0.isComplete || $0.users > 0 }
    }

    private func locations(below path: TreePath, where isWanted: (Query) -> Bool) -> [TreePath] {
        var found: [TreePath] = []
        byLocation.subtrie(at: path)?.forEach(below: path) { location, queries in
            guard location != path, let whole = queries[nil], isWanted(whole) else { return }
            if let last = found.last, last.contains(location) { return }
            found.append(location)
        }
        return found
    }

    /// Queries without users, the least recently used first.
    var unused: [Query] { all.filter { $0.users == 0 }.sorted { $0.lastUse < $1.lastUse } }
}
