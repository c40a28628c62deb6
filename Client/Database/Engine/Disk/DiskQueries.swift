import HearthModel
import HearthCache
import HearthTree

/// Which places and queries the cache has data of. All of them are in memory, too.
///
/// A place as a whole has no query. Its data is in the server's tree; a query's window has a space of its own, by the query's
/// number.
final class DiskQueries {
    final class Query {
        let id: Int64
        let path: TreePath
        let query: TreeQuery?
        fileprivate(set) var isComplete: Bool
        /// Grows from use to use.
        fileprivate(set) var lastUse: Int64
        /// Views, in this run.
        fileprivate(set) var users = 0

        init(id: Int64, path: TreePath, query: TreeQuery?, isComplete: Bool, lastUse: Int64) {
            self.id = id
            self.path = path
            self.query = query
            self.isComplete = isComplete
            self.lastUse = lastUse
        }
    }

    /// The last use of a query that is in use, on disk.
    private static let inUse = Int64.max

    private let database: CacheDatabase
    private var byPlace = PathTrie<[TreeQuery?: Query]>()
    private var lastID: Int64 = 0
    private var clock: Int64 = 0

    init(database: CacheDatabase) { self.database = database }

    func load() throws(Status) {
        try database.rows("SELECT id, path, query, is_complete, last_use FROM queries") { row throws(Status) in
            let query = try self.query(row.bytes(2))
            let loaded = Query(
                id: row.integer(0), path: TreePath(row.string(1)), query: query, isComplete: row.integer(3) != 0,
                lastUse: row.integer(4))
            self.keep(loaded)
            self.lastID = max(self.lastID, loaded.id)
            if loaded.lastUse != Self.inUse { self.clock = max(self.clock, loaded.lastUse) }
            return true
        }
        // What was in use when the last run was killed is newer than all that wasn't.
        for query in all where query.lastUse == Self.inUse { query.lastUse = clock + 1 }
        clock += 1
        // What never came to its end.
        for query in all where !query.isComplete {
            try database.run("DELETE FROM leaves WHERE space = ?", .integer(query.id))
            try remove(query)
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

    subscript(query: TreeQuery?, path: TreePath) -> Query? { byPlace[path]?[query] }

    private var all: [Query] {
        var all: [Query] = []
        byPlace.forEach { all += $1.values }
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
        byPlace.update(at: own.path) { trie in
            if trie.value == nil { trie.value = [:] }
            trie.value?[own.query] = own
        }
    }

    func use(_ query: TreeQuery?, at path: TreePath) throws(Status) {
        let own = try make(query, at: path)
        own.users += 1
        if own.users == 1 { try save(own) }
    }

    /// - Returns: the query when it has never become complete and nobody uses it any more: it is worth nothing.
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

    /// The whole places at and below one, of which everything is known now.
    func completeUsed(below path: TreePath) throws(Status) {
        var waiting: [Query] = []
        byPlace.subtrie(at: path)?.forEach { _, queries in
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
        byPlace.update(at: own.path) { trie in
            trie.value?[own.query] = nil
            if trie.value?.isEmpty == true { trie.value = nil }
        }
        try database.run("DELETE FROM queries WHERE id = ?", .integer(own.id))
    }

    // MARK: Looking

    /// A place at or above one whose data is there as a whole: the one in use, if there is any, or the lowest.
    func completePlace(onTheWayTo path: TreePath) -> Query? {
        let way = wholePlaces(onTheWayTo: path).filter(\.isComplete)
        return way.first { $0.users > 0 } ?? way.last
    }

    private func wholePlaces(onTheWayTo path: TreePath) -> [Query] {
        var found: [Query] = []
        var trie = byPlace
        for depth in 0...path.count {
            if let whole = trie.value?[nil] { found.append(whole) }
            guard depth < path.count, let next = trie.children[path.keys[depth]] else { break }
            trie = next
        }
        return found
    }

    /// The highest places strictly below one whose data is there.
    func completePlaces(below path: TreePath) -> [TreePath] { places(below: path) { $0.isComplete } }

    /// The highest places strictly below one whose data is there or comes in.
    func keptPlaces(below path: TreePath) -> [TreePath] { places(below: path) { $0.isComplete || $0.users > 0 } }

    /// Whether data of a place is there or comes in, by itself or with what is above it.
    func isKept(at path: TreePath) -> Bool {
        wholePlaces(onTheWayTo: path).contains { $0.isComplete || $0.users > 0 }
    }

    private func places(below path: TreePath, where isWanted: (Query) -> Bool) -> [TreePath] {
        var found: [TreePath] = []
        byPlace.subtrie(at: path)?.forEach(below: path) { place, queries in
            guard place != path, let whole = queries[nil], isWanted(whole) else { return }
            if let last = found.last, last.contains(place) { return }
            found.append(place)
        }
        return found
    }

    /// Queries without users, the one used longest ago first.
    var unused: [Query] { all.filter { $0.users == 0 }.sorted { $0.lastUse < $1.lastUse } }
}
