import HearthModel
import HearthWire

/// The queries that a bundle may contain: those that a client can listen to. Builder and reader share the rules.
package enum BundleQueryCheck {
    /// Checks a query and converts it to the model's form. Cursors without values are ignored.
    /// - Parameters:
    ///   - message: the query.
    ///   - parent: the document that contains the collection, or the root of the database.
    /// - Returns: the query of the model.
    /// - Throws: `INVALID_ARGUMENT` for projections, offsets, vector searches, more or less than one collection, and
    ///   everything that the service rejects.
    package static func query(_ message: StructuredQueryMessage, parent: ResourceName) throws(Status) -> Query {
        if message.select != nil { throw .invalidArgument("A query in a bundle cannot have a projection.") }
        if message.offset != 0 { throw .invalidArgument("A query in a bundle cannot have an offset.") }
        if message.findNearest != nil { throw .invalidArgument("A query in a bundle cannot search for vectors.") }
        guard message.from.count == 1, let selector = message.from.first, !selector.collectionId.isEmpty else {
            throw .invalidArgument("A query in a bundle must name exactly one collection.")
        }
        for order in message.orderBy where order.direction.name == nil {
            throw .invalidArgument("A query has the unknown direction \(order.direction.rawValue).")
        }
        var query = try message.query(parent: parent)
        if query.start?.values.isEmpty ?? false { query.start = nil }
        if query.end?.values.isEmpty ?? false { query.end = nil }
        return query
    }
}
