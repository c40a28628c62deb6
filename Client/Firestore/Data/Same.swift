internal import HearthModel
internal import HearthSync

/// Equality of the engine's values as snapshots and queries have it: an integer never equals a double.
enum Same {
    static func documents(_ left: ClientDocument?, _ right: ClientDocument?) -> Bool {
        guard let left, let right else { return left == nil && right == nil }
        return left.key == right.key && left.kind == right.kind && left.version == right.version
            && left.state == right.state && left.fields == right.fields
    }

    static func views(_ left: ViewSnapshot, _ right: ViewSnapshot) -> Bool {
        sets(left.documents, right.documents) && sets(left.oldDocuments, right.oldDocuments)
            && left.changes.count == right.changes.count
            && zip(left.changes, right.changes).allSatisfy { $0.kind == $1.kind && documents($0.document, $1.document) }
            && left.mutatedKeys == right.mutatedKeys && left.isFromCache == right.isFromCache
            && left.syncStateChanged == right.syncStateChanged
            && left.excludesMetadataChanges == right.excludesMetadataChanges
            && left.hasCachedResults == right.hasCachedResults
    }

    private static func sets(_ left: DocumentSet, _ right: DocumentSet) -> Bool {
        left.count == right.count && zip(left.documents, right.documents).allSatisfy { documents($0, $1) }
    }

    /// Limits count as equal only with equal types, and the explicit orders count, not the implied ones.
    static func queries(_ left: ClientQuery, _ right: ClientQuery) -> Bool {
        left.path == right.path && left.collectionGroup == right.collectionGroup
            && left.orders == right.orders && left.limit == right.limit
            && (left.limit == nil || left.limitType == right.limitType)
            && filters(left.filters, right.filters) && bounds(left.start, right.start) && bounds(left.end, right.end)
    }

    private static func bounds(_ left: ClientQuery.Bound?, _ right: ClientQuery.Bound?) -> Bool {
        guard let left, let right else { return left == nil && right == nil }
        return left.isInclusive == right.isInclusive && left.values == right.values
    }

    private static func filters(_ left: [ModelFilter], _ right: [ModelFilter]) -> Bool {
        left.count == right.count && zip(left, right).allSatisfy { filters($0, $1) }
    }

    private static func filters(_ left: ModelFilter, _ right: ModelFilter) -> Bool {
        switch (left, right) {
        case (.and(let left), .and(let right)), (.or(let left), .or(let right)): filters(left, right)
        case (.field(let path, let op, let value), .field(let other, let otherOp, let otherValue)):
            path == other && op == otherOp && value == otherValue
        case (.unary(let path, let op), .unary(let other, let otherOp)): path == other && op == otherOp
        default: false
        }
    }
}
