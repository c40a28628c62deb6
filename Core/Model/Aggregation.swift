/// One figure over a query's results. Source: google.firestore.v1.StructuredAggregationQuery.Aggregation.
package struct Aggregation: Sendable {
    package enum Operator: Equatable, Sendable {
        /// - Parameter upTo: counting stops there; nil counts all.
        case count(upTo: Int64?)
        case sum(FieldPath)
        case average(FieldPath)
    }

    package var alias: String
    package var `operator`: Operator

    @inlinable package init(alias: String, operator: Operator) {
        self.alias = alias
        self.operator = `operator`
    }
}
