import HearthModel
import HearthCache

/// Collection parents, and the client-side indexes of one user.
final class SQLiteIndexManager: IndexManager {
    private unowned let persistence: SQLitePersistence
    private let user: ClientUser
    private var database: CacheDatabase { persistence.database }
    private var definitions: IndexDefinitions { persistence.indexDefinitions }
    private var entries: SQLiteIndexEntries { SQLiteIndexEntries(persistence: persistence) }

    init(_ persistence: SQLitePersistence, _ user: ClientUser) {
        self.persistence = persistence
        self.user = user
    }

    // MARK: Collection parents

    func addParent(ofCollection path: ResourcePath) throws(Status) {
        precondition(path.isCollection, "the path must be a collection's")
        _ = try persistence.names.addCollection(path)
    }

    func parents(ofCollectionID id: String) throws(Status) -> [ResourcePath] {
        try persistence.names.collections(inGroup: id).map(\.parent)
    }

    // MARK: Definitions

    func add(_ index: FieldIndex) throws(Status) {
        let id = try definitions.add(index)
        try save(id, sequenceNumber: index.sequenceNumber, index.offset)
    }

    func delete(_ index: FieldIndex) throws(Status) { try definitions.delete(index.id) }

    func deleteAll() throws(Status) { try definitions.deleteAll() }

    var indexes: [FieldIndex] { get throws(Status) { try withStates(definitions.all) } }

    func indexes(ofGroup collectionID: String) throws(Status) -> [FieldIndex] {
        try withStates(definitions.inGroup(collectionID))
    }

    func createIndexes(for target: ClientTarget) throws(Status) {
        for subTarget in IndexSubTarget.all(of: target) ?? [] {
            if try match(subTarget, of: target)?.coverage == .full { continue }
            guard let segments = subTarget.fullIndexSegments else { continue }
            try add(FieldIndex(collectionGroup: group(of: target), segments: segments))
        }
    }

    // MARK: States

    private func withStates(_ definitions: [FieldIndex]) throws(Status) -> [FieldIndex] {
        guard let userID = try persistence.names.user(user) else { return definitions }
        var indexes = definitions
        for position in indexes.indices {
            try database.rows(
                """
                SELECT sequence_number, read_time, key, largest_batch_id FROM index_states
                WHERE user_id = ? AND index_id = ?
                """, .integer(userID), .integer(indexes[position].id)
            ) { row throws(Status) in
                indexes[position].sequenceNumber = try persistence.database.counter(row.integer(0))
                indexes[position].offset = IndexOffset(
                    readTime: row.time(1), key: try CacheKey.decode(row.bytes(2), in: database),
                    largestBatchID: Int(row.integer(3)))
                return false
            }
        }
        return indexes
    }

    private func save(_ id: Int, sequenceNumber: Int64, _ offset: IndexOffset) throws(Status) {
        try database.run(
            """
            INSERT OR REPLACE INTO index_states (user_id, index_id, sequence_number, read_time, key, largest_batch_id)
            VALUES (?, ?, ?, ?, ?, ?)
            """, .integer(try persistence.names.addUser(user)), .integer(id), .integer(sequenceNumber),
            .time(offset.readTime), .bytes(CacheKey.encode(offset.key)), .integer(offset.largestBatchID))
    }

    func nextGroupToUpdate() throws(Status) -> String? {
        try indexes.min { left, right in
            if left.sequenceNumber != right.sequenceNumber { return left.sequenceNumber < right.sequenceNumber }
            return UTF8Order.compare(left.collectionGroup, right.collectionGroup) < 0
        }?.collectionGroup
    }

    func updateGroup(_ collectionID: String, offset: IndexOffset) throws(Status) {
        let next = (try indexes.map(\.sequenceNumber).max() ?? 0) + 1
        for index in try definitions.inGroup(collectionID) { try save(index.id, sequenceNumber: next, offset) }
    }

    func lowestOffset(ofGroup collectionID: String) throws(Status) -> IndexOffset {
        Self.lowest(try indexes(ofGroup: collectionID))
    }

    func lowestOffset(for target: ClientTarget) throws(Status) -> IndexOffset {
        var ids: Set<Int> = []
        for match in try matches(target) ?? [] { ids.insert(match.index.id) }
        return Self.lowest(try indexes(ofGroup: group(of: target)).filter { ids.contains($0.id) })
    }

    /// The lowest of documents and the lowest of overlays. Reading an entry twice does no harm.
    private static func lowest(_ indexes: [FieldIndex]) -> IndexOffset {
        guard var lowest = indexes.first?.offset else { return .none }
        for offset in indexes.map(\.offset) {
            let isBelow =
                offset.readTime != lowest.readTime
                ? offset.readTime < lowest.readTime : ResourcePath.compare(offset.key, lowest.key) < 0
            if isBelow { (lowest.readTime, lowest.key) = (offset.readTime, offset.key) }
            lowest.largestBatchID = min(lowest.largestBatchID, offset.largestBatchID)
        }
        return lowest
    }

    // MARK: Use

    private func group(of target: ClientTarget) -> String { target.collectionGroup ?? target.path.segments.last ?? "" }

    /// The index with the most segments; nil when none serves the sub-target.
    private func match(_ subTarget: IndexSubTarget, of target: ClientTarget) throws(Status) -> IndexMatch? {
        var best: IndexMatch?
        for index in try definitions.inGroup(group(of: target)) {
            guard let match = IndexMatch(index, subTarget) else { continue }
            if let best, best.index.segments.count >= index.segments.count {
                // Of two indexes with as many segments, the one with the target's order.
                guard best.index.segments.count == index.segments.count, match.hasFullOrder, !best.hasFullOrder else {
                    continue
                }
            }
            best = match
        }
        return best
    }

    /// One match for each sub-target; nil when one of them has none.
    private func matches(_ target: ClientTarget) throws(Status) -> [IndexMatch]? {
        if target.isDocumentTarget { return nil }
        if try definitions.inGroup(group(of: target)).isEmpty { return nil }
        guard let subTargets = IndexSubTarget.all(of: target), !subTargets.isEmpty else { return nil }
        var matches: [IndexMatch] = []
        for subTarget in subTargets {
            guard let match = try match(subTarget, of: target) else { return nil }
            matches.append(match)
        }
        return matches
    }

    func coverage(of target: ClientTarget) throws(Status) -> IndexCoverage {
        guard let matches = try matches(target) else { return .none }
        if matches.contains(where: { $0.coverage == .partial }) { return .partial }
        // Only with the full order the first entries of the index are the first of the target.
        if target.limit != nil, matches.count > 1 || !matches[0].hasFullOrder { return .partial }
        return .full
    }

    func documents(matching target: ClientTarget) throws(Status) -> [ResourcePath]? {
        guard let matches = try matches(target) else { return nil }
        let isLimited = matches.count == 1 && matches[0].hasFullOrder
        return try entries.documents(matches, target, limit: isLimited ? target.limit : nil, user)
    }

    func updateEntries(_ documents: [ResourcePath: ClientDocument]) throws(Status) {
        for (key, document) in documents {
            let indexes = try definitions.inGroup(key.collectionID)
            if !indexes.isEmpty { try entries.update(document, indexes, user) }
        }
    }
}
