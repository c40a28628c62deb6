internal import Foundation
internal import HearthModel

/// One aggregation over the documents of a query: a count, a sum or an average.
public final class AggregateField: Sendable, Hashable {
    let `operator`: Aggregation.Operator

    private init(_ operator: Aggregation.Operator) { self.operator = `operator` }

    /// The number of documents.
    /// - Returns: the aggregation, for `Query.aggregate(_:)`.
    @discardableResult
    public class func count() -> AggregateField { AggregateField(.count(upTo: nil)) }

    /// The sum of the field's numbers; 0 when there are none.
    /// - Parameter field: the field's path with dots. A path that is not valid ends the program.
    /// - Returns: the aggregation, for `Query.aggregate(_:)`.
    @discardableResult
    public class func sum(_ field: String) -> AggregateField {
        AggregateField(.sum(orTrap { () throws(Status) in try FieldPath.parse(field) }))
    }

    /// The sum of the field's numbers; 0 when there are none.
    /// - Parameter path: the field's path.
    /// - Returns: the aggregation, for `Query.aggregate(_:)`.
    @discardableResult
    public class func sum(_ path: FieldPath) -> AggregateField { AggregateField(.sum(path.model)) }

    /// The average of the field's numbers; null when there are none.
    /// - Parameter field: the field's path with dots. A path that is not valid ends the program.
    /// - Returns: the aggregation, for `Query.aggregate(_:)`.
    @discardableResult
    public class func average(_ field: String) -> AggregateField {
        AggregateField(.average(orTrap { () throws(Status) in try FieldPath.parse(field) }))
    }

    /// The average of the field's numbers; null when there are none.
    /// - Parameter path: the field's path.
    /// - Returns: the aggregation, for `Query.aggregate(_:)`.
    @discardableResult
    public class func average(_ path: FieldPath) -> AggregateField { AggregateField(.average(path.model)) }

    /// The name of the aggregation in requests and answers. Equal aggregations have equal names.
    var alias: String {
        switch `operator` {
        case .count: "count"
        case .sum(let path): "sum_\(path.string)"
        case .average(let path): "avg_\(path.string)"
        }
    }

    var path: ModelFieldPath? {
        switch `operator` {
        case .count: nil
        case .sum(let path), .average(let path): path
        }
    }

    public static func == (left: AggregateField, right: AggregateField) -> Bool { left.alias == right.alias }

    public func hash(into hasher: inout Hasher) { hasher.combine(alias) }
}
