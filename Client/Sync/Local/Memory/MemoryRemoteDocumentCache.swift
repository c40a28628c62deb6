import HearthModel

final class MemoryRemoteDocumentCache: RemoteDocumentCache {
    weak var indexManager: MemoryIndexManager?
    private var collections: [ResourcePath: [ResourcePath: ClientDocument]] = [:]
    private(set) var size: Int64 = 0

    func add(_ document: ClientDocument, readTime: Timestamp) {
        precondition(document.isValid, "the cache contains no invalid documents")
        var document = document
        document.readTime = readTime
        let old = collections[document.key.parent, default: [:]].updateValue(document, forKey: document.key)
        size += Self.size(of: document) - (old.map(Self.size(of:)) ?? 0)
        if old == nil { indexManager?.addParent(ofCollection: document.key.parent) }
    }

    func remove(_ keys: [ResourcePath]) {
        for key in keys {
            guard let old = collections[key.parent]?.removeValue(forKey: key) else { continue }
            size -= Self.size(of: old)
        }
    }

    func document(_ key: ResourcePath) -> ClientDocument {
        collections[key.parent]?[key] ?? ClientDocument(key: key)
    }

    func documents(_ keys: Set<ResourcePath>) -> [ResourcePath: ClientDocument] {
        var found: [ResourcePath: ClientDocument] = [:]
        found.reserveCapacity(keys.count)
        for key in keys { found[key] = document(key) }
        return found
    }

    func documents(
        matching query: ClientQuery, after offset: IndexOffset, mutated: Set<ResourcePath>, onRead: (Int) -> Void
    ) -> [ClientDocument] {
        let matcher = ClientQueryMatcher(query)
        var found: [ClientDocument] = []
        var count = 0
        for (key, document) in collections[query.path] ?? [:] where offset.isBefore(document) {
            count += 1
            if mutated.contains(key) || matcher.matches(document) { found.append(document) }
        }
        onRead(count)
        return found
    }

    func documents(inGroup collectionID: String, after offset: IndexOffset, limit: Int) -> [ClientDocument] {
        var found: [ClientDocument] = []
        for (path, documents) in collections where UTF8Order.equal(path.segments[path.segments.count - 1], collectionID)
        {
            found += documents.values.filter { offset.isBefore($0) }
        }
        found.sort { left, right in
            left.readTime != right.readTime
                ? left.readTime < right.readTime : ResourcePath.compare(left.key, right.key) < 0
        }
        return Array(found.prefix(limit))
    }

    private static func size(of document: ClientDocument) -> Int64 {
        Int64(StorageSize.ofDocument(document.key, document.fields))
    }
}

extension IndexOffset {
    func isBefore(_ document: ClientDocument) -> Bool {
        document.readTime != readTime
            ? document.readTime > readTime : ResourcePath.compare(document.key, key) > 0
    }
}
