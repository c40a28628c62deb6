import HearthModel

/// Validates received aggregation queries and converts them to the model.
extension StructuredAggregationQueryMessage {
    /// The query whose results are aggregated.
    /// - Throws: INVALID_ARGUMENT in the service's wording.
    package func query(parent: ResourceName) throws(Status) -> HearthModel.Query {
        guard let structuredQuery else { throw .invalidArgument("An aggregation query must have a structured query.") }
        return try structuredQuery.query(parent: parent)
    }

    /// The aggregations, each with its alias: those without one are named `field_1`, `field_2`, … in order.
    /// - Throws: INVALID_ARGUMENT in the service's wording.
    package func modelAggregations() throws(Status) -> [HearthModel.Aggregation] {
        if aggregations.isEmpty { throw .invalidArgument("Aggregations can not be empty.") }
        if aggregations.count > Limits.aggregationsMax {
            throw .invalidArgument(
                "The maximum number of aggregations allowed in an aggregation query is \(Limits.aggregationsMax). "
                    + "Received: \(aggregations.count)")
        }
        var result: [HearthModel.Aggregation] = []
        var unnamedCount = 0
        for message in aggregations {
            var alias = message.alias
            if alias.isEmpty {
                unnamedCount += 1
                alias = "field_\(unnamedCount)"
            }
            try Self.validateAlias(alias, besides: result)
            result.append(HearthModel.Aggregation(alias: alias, operator: try message.modelOperator()))
        }
        return result
    }

    private static func validateAlias(
        _ alias: String, besides others: [HearthModel.Aggregation]
    ) throws(Status) {
        if alias.utf8.count > Limits.fieldPathSizeBytesMax {
            throw .invalidArgument("An aggregation alias is longer than \(Limits.fieldPathSizeBytesMax) bytes.")
        }
        if FieldPath.isReserved(alias) { throw .invalidArgument("aggregation alias \(alias) is reserved") }
        if others.contains(where: { UTF8Order.equal($0.alias, alias) }) {
            throw .invalidArgument("Aggregation aliases contain duplicate alias: \(alias).")
        }
    }
}

extension StructuredAggregationQueryMessage.Aggregation {
    fileprivate func modelOperator() throws(Status) -> HearthModel.Aggregation.Operator {
        if let count {
            if let upTo = count.upTo, upTo <= 0 {
                throw .invalidArgument("The `up_to` value in a COUNT aggregation must be greater than zero.")
            }
            return .count(upTo: count.upTo)
        }
        if let sum { return .sum(try Self.path(sum.field)) }
        if let avg { return .average(try Self.path(avg.field)) }
        throw .invalidArgument("An aggregation must have an operator.")
    }

    private static func path(_ reference: StructuredQueryMessage.FieldReference?) throws(Status) -> FieldPath {
        let path = try FieldPath(parsing: reference?.fieldPath ?? "")
        if path.isDocumentName {
            throw .invalidArgument("Aggregations are not supported for the property: __key__")
        }
        return path
    }
}

/// The other direction, for clients.
extension StructuredAggregationQueryMessage {
    package init(_ query: HearthModel.Query, _ aggregations: [HearthModel.Aggregation]) {
        self.init(structuredQuery: StructuredQueryMessage(query), aggregations: aggregations.map { Aggregation($0) })
    }
}

extension StructuredAggregationQueryMessage.Aggregation {
    package init(_ aggregation: HearthModel.Aggregation) {
        self.init(alias: aggregation.alias)
        switch aggregation.operator {
        case .count(let upTo): count = Count(upTo: upTo)
        case .sum(let path): sum = Sum(field: StructuredQueryMessage.FieldReference(path))
        case .average(let path): avg = Avg(field: StructuredQueryMessage.FieldReference(path))
        }
    }
}
