import HearthModel

/// What of a query decides whether it can share a document with another one.
struct QueryFootprint: Sendable {
    let matcher: QueryMatcher
    /// The path of the collection that is looked at; nil for scopes of several collections.
    let collection: [UInt8]?
    private let alternatives: [Constraints]

    private var query: NormalizedQuery { matcher.query }

    init(_ matcher: QueryMatcher) {
        self.matcher = matcher
        let query = matcher.query
        if case .collection = query.query.scope { collection = query.namePrefix } else { collection = nil }
        // A conjunction that contradicts itself has no results to share.
        alternatives = query.disjunction.compactMap { Constraints($0, query: query) }
    }

    /// False only when it is certain: other places, or filters that exclude each other.
    func mayOverlap(_ other: QueryFootprint) -> Bool {
        guard placesOverlap(other) else { return false }
        return alternatives.contains { own in other.alternatives.contains { !Self.exclude(own, $0) } }
    }

    private func placesOverlap(_ other: QueryFootprint) -> Bool {
        if let collection, let others = other.collection { return collection == others }
        let prefix = query.namePrefix
        let others = other.query.namePrefix
        guard prefix.starts(with: others) || others.starts(with: prefix) else { return false }
        guard let id = collectionID, let otherID = other.collectionID else { return true }
        return UTF8Order.equal(id, otherID)
    }

    private var collectionID: String? {
        switch query.query.scope {
        case .collection(let id), .collectionGroup(let id): id
        case .anyCollection, .allDescendants: nil
        }
    }

    private static func exclude(_ lhs: Constraints, _ rhs: Constraints) -> Bool {
        lhs.fields.contains { path, ranges in ranges.intersection(rhs.ranges(path)).isEmpty }
    }
}

/// The queries that read-write transactions have run or wait to run, in the order of arrival.
///
/// One waits for those before it, of other owners, with which it may share a document. Queries of one collection are kept
/// apart from those of others, so that only what can meet is compared.
struct QueryLocks {
    typealias Owner = LockTable.Owner
    typealias Callback = LockTable.Callback

    /// Where a lock is kept.
    struct Place: Sendable {
        var collection: [UInt8]?
        var number: UInt64
    }

    private struct Lock {
        var number: UInt64
        var owner: Owner
        var footprint: QueryFootprint
        /// Nil when it has its turn.
        var grant: Callback?
    }

    /// By collection; those of several collections under nil. Each list in the order of arrival.
    private var lists: [[UInt8]?: [Lock]] = [:]
    private var lastNumber: UInt64 = 0
    private(set) var count = 0

    var isEmpty: Bool { lists.isEmpty }

    // MARK: Coming and going

    mutating func append(
        _ owner: Owner, _ footprint: QueryFootprint, _ granted: @escaping Callback
    ) -> (place: Place, hasTurn: Bool) {
        lastNumber += 1
        count += 1
        var lock = Lock(number: lastNumber, owner: owner, footprint: footprint, grant: nil)
        let hasTurn = !lists(near: footprint.collection).contains { list in list.contains { blocks($0, lock) } }
        if !hasTurn { lock.grant = granted }
        lists[footprint.collection, default: []].append(lock)
        return (Place(collection: footprint.collection, number: lock.number), hasTurn)
    }

    /// - Returns: the callbacks of those that were still waiting.
    mutating func remove(_ places: [Place]) -> [Callback] {
        var waiting: [Callback] = []
        for place in places {
            guard let index = index(of: place) else { continue }
            if let lock = lists[place.collection]?.remove(at: index), let grant = lock.grant { waiting.append(grant) }
            if lists[place.collection]?.isEmpty ?? false { lists[place.collection] = nil }
            count -= 1
        }
        return waiting
    }

    /// Gives their turns to those that nobody is before any more.
    /// - Parameter places: what was removed; only near it anything can have changed.
    mutating func grantFree(near places: [Place]) -> [(owner: Owner, call: Callback)] {
        var granted: [(owner: Owner, call: Callback)] = []
        let isGeneral = places.contains { $0.collection == nil }
        var collections = Set(isGeneral ? Array(lists.keys) : places.map(\.collection))
        if !places.isEmpty { collections.insert(nil) }
        for collection in collections {
            for index in lists[collection]?.indices ?? 0..<0 {
                guard let lock = lists[collection]?[index], let grant = lock.grant, !isBlocked(lock) else { continue }
                lists[collection]![index].grant = nil
                granted.append((lock.owner, grant))
            }
        }
        return granted
    }

    // MARK: Who is before whom

    /// The lists of locks that one of a collection can meet.
    private func lists(near collection: [UInt8]?) -> [[Lock]] {
        guard let collection else { return Array(lists.values) }
        return [lists[collection], lists[nil]].compactMap { $0 }
    }

    private func index(of place: Place) -> Int? {
        guard let list = lists[place.collection] else { return nil }
        var low = 0
        var high = list.count
        while low < high {
            let middle = (low + high) / 2
            if list[middle].number < place.number { low = middle + 1 } else { high = middle }
        }
        return low < list.count && list[low].number == place.number ? low : nil
    }

    private func lock(_ place: Place) -> Lock? {
        index(of: place).flatMap { lists[place.collection]?[$0] }
    }

    private func blocks(_ earlier: Lock, _ later: Lock) -> Bool {
        earlier.number < later.number && earlier.owner != later.owner && earlier.footprint.mayOverlap(later.footprint)
    }

    private func isBlocked(_ lock: Lock) -> Bool {
        lists(near: lock.footprint.collection).contains { list in list.contains { blocks($0, lock) } }
    }

    /// The owners that those of some locks wait for that have no turn yet.
    func owners(before places: [Place]) -> [Owner] {
        places.compactMap { lock($0) }.filter { $0.grant != nil }.flatMap { waiting in
            lists(near: waiting.footprint.collection).flatMap { list in
                list.filter { blocks($0, waiting) }.map(\.owner)
            }
        }
    }

    /// Of those the ones that have the turn.
    func holders(before places: [Place]) -> [Owner] {
        places.compactMap { lock($0) }.filter { $0.grant != nil }.flatMap { waiting in
            lists(near: waiting.footprint.collection).flatMap { list in
                list.filter { $0.grant == nil && blocks($0, waiting) }.map(\.owner)
            }
        }
    }

    /// Whether others may wait for some locks.
    func areAwaited(_ places: [Place]) -> Bool {
        places.contains { place in
            lists(near: place.collection).contains { list in
                list.contains { $0.grant != nil && $0.number > place.number }
            }
        }
    }

    /// The queries that have their turn and may look at a document.
    func held(near key: [UInt8], otherThan owner: Owner) -> [(owner: Owner, matcher: QueryMatcher)] {
        if lists.isEmpty { return [] }
        let collection = DocumentKey.collectionPrefixEnd(key).map { Array(key[..<($0 - 1)]) } ?? []
        return [lists[collection], lists[nil]].flatMap { list in
            (list ?? []).filter { $0.grant == nil && $0.owner != owner }.map { ($0.owner, $0.footprint.matcher) }
        }
    }
}
