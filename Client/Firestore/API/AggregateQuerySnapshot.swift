public import Foundation
internal import HearthModel

/// The result of an aggregate query.
public final class AggregateQuerySnapshot: Sendable, Hashable {
    /// The query that was run.
    public let query: AggregateQuery
    let values: [String: Value]
    /// Whether the result is from the cache, and whether it contains local writes. Apple's library has no such
    /// property.
    public let metadata: SnapshotMetadata

    init(query: AggregateQuery, values: [String: Value], metadata: SnapshotMetadata) {
        self.query = query
        self.values = values
        self.metadata = metadata
    }

    /// The number of documents. The program ends when the query has no `AggregateField.count()`.
    public var count: NSNumber {
        // A count is always a number: the server's answer was checked.
        self.get(AggregateField.count()) as? NSNumber ?? 0
    }

    /// The result of one aggregation. The program ends when the query does not have this aggregation.
    /// - Parameter aggregateField: one of the query's aggregations.
    /// - Returns: an `NSNumber`; `NSNull` for the average of no numbers.
    @discardableResult
    public func get(_ aggregateField: AggregateField) -> Any {
        let value = orTrap { () throws(Status) in try checkedValue(of: aggregateField) }
        return UserDataWriter(firestore: query.query.firestore, behavior: .none).value(value)
    }

    func checkedValue(of field: AggregateField) throws(Status) -> Value {
        guard let value = values[field.alias] else {
            throw .invalidArgument(
                "'\(field.alias)' was not requested in the aggregation query. All specified aggregate fields must be "
                    + "requested.")
        }
        return value
    }

    public static func == (left: AggregateQuerySnapshot, right: AggregateQuerySnapshot) -> Bool {
        left.query == right.query && left.values == right.values && left.metadata == right.metadata
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(query)
        hasher.combine(metadata)
    }
}
