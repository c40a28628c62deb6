import HearthModel

/// The documents in a query's scope, decided by their keys.
struct ScopeMatcher: Sendable {
    private let scope: Query.Scope
    private let prefix: [UInt8]
    private let parentDepth: Int

    init(_ query: Query) {
        scope = query.scope
        parentDepth = query.parent.path.segments.count
        switch query.scope {
        case .collection(let id): prefix = DocumentKey.collectionPrefix(query.parent.path.appending(id))
        case .collectionGroup, .anyCollection, .allDescendants: prefix = DocumentKey.encodeSegments(query.parent.path)
        }
    }

    func contains(_ key: [UInt8]) -> Bool {
        guard key.starts(with: prefix) else { return false }
        switch scope {
        case .collection: return true
        case .allDescendants: return isBelow(key)
        case .collectionGroup(let id):
            guard isBelow(key), let path = DocumentKey.decode(key) else { return false }
            return UTF8Order.equal(path.collectionID, id)
        case .anyCollection:
            guard isBelow(key), let path = DocumentKey.decode(key) else { return false }
            return path.segments.count == parentDepth + 2
        }
    }

    /// The parent's own segments lie before its prefix's end, so a key with that prefix and a further segment is below.
    private func isBelow(_ key: [UInt8]) -> Bool {
        prefix.isEmpty || (key.count > prefix.count && key[prefix.count] != IndexValue.Tag.terminator)
    }
}
