import HearthModel

/// Queries by the path of their documents. A change costs nothing for the queries of other paths: a client may have
/// thousands.
struct QueriesByPath {
    /// By the path of the document or of the collection.
    private var byPath: [ResourcePath: Set<ClientQuery>] = [:]
    private var byGroup: [String: Set<ClientQuery>] = [:]

    mutating func insert(_ query: ClientQuery) {
        if let group = query.collectionGroup {
            byGroup[group, default: []].insert(query)
        } else {
            byPath[query.path, default: []].insert(query)
        }
    }

    mutating func remove(_ query: ClientQuery) {
        if let group = query.collectionGroup {
            byGroup[group]?.remove(query)
            if byGroup[group]?.isEmpty == true { byGroup[group] = nil }
        } else {
            byPath[query.path]?.remove(query)
            if byPath[query.path]?.isEmpty == true { byPath[query.path] = nil }
        }
    }

    /// Queries that may have one of these documents in their results.
    func queries(of keys: some Sequence<ResourcePath>) -> Set<ClientQuery> {
        var queries: Set<ClientQuery> = []
        var collections: Set<ResourcePath> = []
        for key in keys {
            if let found = byPath[key] { queries.formUnion(found) }
            collections.insert(key.parent)
        }
        for collection in collections {
            if let found = byPath[collection] { queries.formUnion(found) }
            if let found = collection.segments.last.flatMap({ byGroup[$0] }) { queries.formUnion(found) }
        }
        return queries
    }
}
