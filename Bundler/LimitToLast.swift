import HearthModel
import HearthWire

extension StructuredQueryMessage {
    /// The query whose first results are this one's last ones, in the opposite order: directions and cursors turned
    /// round. What a server is asked for a limit to the last results.
    /// - Throws: INVALID_ARGUMENT without an order, by which there is no last one.
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
