import HearthEngine
import HearthModel

/// How one query is answered: a branch for each part of its result, merged in the query's order.
struct QueryPlan: Sendable {
    /// Ranges of one index, or of the documents themselves, whose suffixes after `prefix` have the form `components…
    /// name`.
    struct Source: Sendable {
        var keyspace: Keyspace
        var prefix: [UInt8]
        /// Suffixes that are scanned, ascending and disjoint.
        var ranges: [KeyRange]
        /// As explain shows it, for instance `(a ASC, __name__ ASC)`.
        var properties: String
        var isGroupScope: Bool
    }

    /// A component of the order key, as far as a branch knows it before it has read a document.
    enum OrderPart: Sendable {
        /// The same for all documents of the branch: an equality filter fixes it.
        case constant([UInt8])
        /// The next component of the suffix.
        case scanned
        case name

        var isTheSameForAll: Bool {
            if case .constant = self { return false }
            return true
        }
    }

    /// Values that are allowed in one component of the suffixes.
    struct ComponentFilter: Sendable {
        var component: Int
        var ranges: ValueRanges
    }

    struct Branch: Sendable {
        /// Joined on equal suffixes when there are several.
        var sources: [Source]
        /// Walks downwards; suffixes appear complemented in order keys.
        var reverse: Bool
        /// The components before the name in the suffixes: for each, whether it is complemented in the index.
        var complemented: [Bool]
        /// The known parts of the order key, from its start. When not all are known, the documents are sorted within
        /// equal parts.
        var parts: [OrderPart]
        /// The part of the name that all documents of the branch share, put before the suffix's name in order keys.
        var namePrefix: [UInt8]
        /// Put before a suffix's name to make a document key, or a path key when `nameIsPath`.
        var keyPrefix: [UInt8]
        var nameIsPath: Bool
        /// Whether names are complemented in the index.
        var nameComplemented = false
        /// Allowed names, relative to the query's prefix, where the ranges do not decide that.
        var names: ValueRanges?
        /// Filters on components that the ranges do not decide.
        var components: [ComponentFilter] = []
        /// Filters that the sources do not decide.
        var residual: [NormalizedQuery.Predicate]
        /// Filters of which a document must pass one, besides `residual`; none when it is empty.
        var alternatives: [NormalizedQuery.Conjunction] = []
        /// Suffixes may contain documents of deeper collections or of other ids; only those of the scope count.
        var checksScope = false
        /// Every suffix in the ranges of the source, when there is one, is a result of the branch, and there are no
        /// others.
        var isExact: Bool

        /// Whether both walk over the same entries in the same order, and differ only in their filters.
        func scansTheSame(as other: Branch) -> Bool {
            guard sources.count == 1, other.sources.count == 1, !residual.isEmpty, !other.residual.isEmpty,
                components.isEmpty, other.components.isEmpty, names == nil, other.names == nil,
                parts.allSatisfy(\.isTheSameForAll), other.parts.allSatisfy(\.isTheSameForAll)
            else { return false }
            let (own, its) = (sources[0], other.sources[0])
            return own.keyspace == its.keyspace && own.prefix == its.prefix && own.ranges == its.ranges
                && reverse == other.reverse && complemented == other.complemented && parts.count == other.parts.count
                && namePrefix == other.namePrefix && keyPrefix == other.keyPrefix && nameIsPath == other.nameIsPath
                && nameComplemented == other.nameComplemented && checksScope == other.checksScope
        }

        func isFullyOrdered(_ orders: [Query.Order]) -> Bool { parts.count == orders.count }
    }

    var branches: [Branch]
    /// No document can come from two branches.
    var isDisjoint: Bool

    /// Whether the work is proportional to the documents returned, so that it may run on an event loop in slices.
    func isLight(_ query: NormalizedQuery) -> Bool {
        branches.count <= 1
            && branches.allSatisfy {
                $0.sources.count == 1 && $0.isExact && $0.isFullyOrdered(query.orders)
            } && query.query.findNearest == nil && query.query.offset <= 1000
    }

    /// The indexes that are read, each once, in the order of the branches.
    func indexesUsed(_ query: NormalizedQuery) -> [QueryExecution.IndexUse] {
        // A group's root collection is read by collection indexes, but the query is one of group scope.
        var isGroup = false
        if case .collectionGroup = query.query.scope { isGroup = true }
        var used: [QueryExecution.IndexUse] = []
        for source in branches.flatMap(\.sources) where !used.contains(where: { $0.properties == source.properties }) {
            used.append(
                QueryExecution.IndexUse(properties: source.properties, isGroupScope: isGroup || source.isGroupScope))
        }
        guard let search = query.query.findNearest else { return used }
        // A vector search is shown with the index that serves it in production: the filters, the name, the vector.
        let vector = "\(search.field) VECTOR<\(search.vector.count)>"
        return used.map { use in
            QueryExecution.IndexUse(
                properties: use.properties.dropLast() + ", \(vector))", isGroupScope: use.isGroupScope)
        }
    }
}
