import HearthModel

/// The part of a query that decides whether it can share a document with another one.
struct QueryFootprint: Sendable {
    let matcher: QueryMatcher
    let scope: WatchScope
    /// The conditions of each alternative. A conjunction that contradicts itself has no results to share.
    let alternatives: [Constraints]

    private var query: NormalizedQuery { matcher.query }

    init(_ matcher: QueryMatcher) {
        self.matcher = matcher
        let query = matcher.query
        scope = query.query.watchScope
        alternatives = query.disjunction.compactMap { Constraints($0, query: query) }
    }

    /// The id of the collections in the scope; nil for all.
    var collectionID: [UInt8]? {
        switch query.query.scope {
        case .collection(let id), .collectionGroup(let id): Array(id.utf8)
        case .anyCollection, .allDescendants: nil
        }
    }

    /// False only when it is certain: other locations, or filters that exclude each other.
    func mayOverlap(_ other: QueryFootprint) -> Bool {
        guard locationsOverlap(other) else { return false }
        return alternatives.contains { own in other.alternatives.contains { !own.exclude($0) } }
    }

    func locationsOverlap(_ other: QueryFootprint) -> Bool {
        if case .collection = scope, case .collection = other.scope { return scope == other.scope }
        let prefix = query.namePrefix
        let others = other.query.namePrefix
        guard prefix.starts(with: others) || others.starts(with: prefix) else { return false }
        guard let id = collectionID, let otherID = other.collectionID else { return true }
        return id == otherID
    }

    // MARK: Equality

    /// Equal for queries with the same scope and the same filters: limits, cursors and directions do not count.
    var key: [UInt8] {
        var bytes: [UInt8] = []
        func append(_ part: [UInt8]) {
            IndexValue.appendBigEndian(UInt64(part.count), to: &bytes)
            bytes += part
        }
        func append(_ path: FieldPath) {
            bytes.append(UInt8(truncatingIfNeeded: path.segments.count))
            for segment in path.segments { append(Array(segment.utf8)) }
        }
        switch query.query.scope {
        case .collection: bytes.append(0)
        case .collectionGroup: bytes.append(1)
        case .anyCollection: bytes.append(2)
        case .allDescendants: bytes.append(3)
        }
        append(query.namePrefix)
        append(collectionID ?? [])
        for conjunction in query.disjunction {
            bytes.append(0)
            for predicate in conjunction {
                switch predicate {
                case .field(let path, let op, let value):
                    bytes += [1, UInt8(op.rawValue)]
                    append(path)
                    append(IndexValue.encode(value))
                case .unary(let path, let op):
                    bytes += [2, UInt8(op.rawValue)]
                    append(path)
                case .names(let ranges):
                    bytes.append(3)
                    for range in ranges.ranges {
                        bytes.append(range.upper == nil ? 4 : 5)
                        append(range.lower)
                        append(range.upper ?? [])
                    }
                }
            }
        }
        // Results have all fields of the order.
        bytes.append(6)
        for order in query.orders { append(order.field) }
        return bytes
    }
}

extension Constraints {
    /// Whether no document can satisfy both conditions.
    func exclude(_ other: Constraints) -> Bool {
        fields.contains { path, ranges in ranges.intersection(other.ranges(path)).isEmpty }
    }
}
