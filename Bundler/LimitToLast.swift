import HearthModel
import HearthWire

extension StructuredQueryMessage {
    /// The query whose first results are this query's last ones, in reverse order: directions and cursors are reversed.
    /// A server runs it for a limit to the last results.
    /// - Returns: the reversed query.
    /// - Throws: `INVALID_ARGUMENT` without an order, which defines the last result.
    package func reversed() throws(Status) -> StructuredQueryMessage {
        if orderBy.isEmpty { throw .invalidArgument("A limit to the last results needs at least one order.") }
        var turned = self
        for index in turned.orderBy.indices {
            turned.orderBy[index].direction = orderBy[index].direction == .descending ? .ascending : .descending
        }
        turned.startAt = endAt.map { CursorMessage(values: $0.values, before: !$0.before) }
        turned.endAt = startAt.map { CursorMessage(values: $0.values, before: !$0.before) }
        return turned
    }
}
