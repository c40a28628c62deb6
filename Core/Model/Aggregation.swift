/// One figure over a query's results. Source: google.firestore.v1.StructuredAggregationQuery.Aggregation.
@usableFromInline package struct Aggregation: Sendable {
    @usableFromInline package enum Operator: Equatable, Sendable {
        /// - Parameter upTo: counting stops there; nil counts all.
        case count(upTo: Int64?)
        case sum(FieldPath)
        case average(FieldPath)
    }

    @usableFromInline package var alias: String
    @usableFromInline package var `operator`: Operator

    @inlinable package init(alias: String, operator: Operator) {
        self.alias = alias
        self.operator = `operator`
    }
}
