internal import Foundation
internal import HearthModel
internal import HearthSync

extension Query {
    // MARK: By values

    /// Starts the result at the given values, inclusive.
    /// - Parameter fieldValues: the values of the first `order(by:)` clauses, in their order. More values than clauses
    ///   end the program.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func start(at fieldValues: [Any]) -> Query {
        withStart(true) { () throws(Status) in try values(fieldValues) }
    }

    /// Starts the result after the given values, exclusive.
    /// - Parameter fieldValues: the values of the first `order(by:)` clauses, in their order. More values than clauses
    ///   end the program.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func start(after fieldValues: [Any]) -> Query {
        withStart(false) { () throws(Status) in try values(fieldValues) }
    }

    /// Ends the result at the given values, inclusive.
    /// - Parameter fieldValues: the values of the first `order(by:)` clauses, in their order. More values than clauses
    ///   end the program.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func end(at fieldValues: [Any]) -> Query { withEnd(true) { () throws(Status) in try values(fieldValues) } }

    /// Ends the result before the given values, exclusive.
    /// - Parameter fieldValues: the values of the first `order(by:)` clauses, in their order. More values than clauses
    ///   end the program.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func end(before fieldValues: [Any]) -> Query {
        withEnd(false) { () throws(Status) in try values(fieldValues) }
    }

    // MARK: By documents

    /// Starts the result at a document, inclusive.
    /// - Parameter document: a snapshot of the same `Firestore` instance, of a document that exists and has all fields
    ///   of the order. Any other ends the program.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func start(atDocument document: DocumentSnapshot) -> Query {
        withStart(true) { () throws(Status) in try values(of: document) }
    }

    /// Starts the result after a document, exclusive.
    /// - Parameter document: a snapshot of the same `Firestore` instance, of a document that exists and has all fields
    ///   of the order. Any other ends the program.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func start(afterDocument document: DocumentSnapshot) -> Query {
        withStart(false) { () throws(Status) in try values(of: document) }
    }

    /// Ends the result at a document, inclusive.
    /// - Parameter document: a snapshot of the same `Firestore` instance, of a document that exists and has all fields
    ///   of the order. Any other ends the program.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func end(atDocument document: DocumentSnapshot) -> Query {
        withEnd(true) { () throws(Status) in try values(of: document) }
    }

    /// Ends the result before a document, exclusive.
    /// - Parameter document: a snapshot of the same `Firestore` instance, of a document that exists and has all fields
    ///   of the order. Any other ends the program.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func end(beforeDocument document: DocumentSnapshot) -> Query {
        withEnd(false) { () throws(Status) in try values(of: document) }
    }

    private func withStart(_ isInclusive: Bool, _ values: () throws(Status) -> [Value]) -> Query {
        let bound = ClientQuery.Bound(values: orTrap(values), isInclusive: isInclusive)
        return with { $0.start = bound }
    }

    private func withEnd(_ isInclusive: Bool, _ values: () throws(Status) -> [Value]) -> Query {
        let bound = ClientQuery.Bound(values: orTrap(values), isInclusive: isInclusive)
        return with { $0.end = bound }
    }

    // MARK: Checks

    func values(_ fieldValues: [Any]) throws(Status) -> [Value] {
        if fieldValues.count > model.orders.count {
            throw .invalidArgument(
                "Invalid query. You are trying to start or end a query using more values than were specified in the order "
                    + "by.")
        }
        var values: [Value] = []
        for (order, value) in zip(model.orders, fieldValues) {
            values.append(
                order.field.isDocumentName
                    ? try KeyOperand(self).cursor(value) : try firestore.reader.queryValue(value))
        }
        return values
    }

    func values(of snapshot: DocumentSnapshot) throws(Status) -> [Value] {
        if snapshot.firestore !== firestore {
            throw .invalidArgument("Provided document snapshot is from a different Firestore instance.")
        }
        guard let document = snapshot.document else {
            throw .invalidArgument(
                "Invalid query. You are trying to start or end a query using a document that doesn't exist.")
        }
        var values: [Value] = []
        for order in model.normalizedOrders {
            if order.field.isDocumentName {
                values.append(.reference(ResourceName(database: firestore.databaseName, path: document.key).string))
                continue
            }
            guard let value = document.fields[path: order.field] else {
                throw .invalidArgument(
                    "Invalid query. You are trying to start or end a query using a document for which the field "
                        + "'\(order.field.string)' (used as the order by) does not exist.")
            }
            if PendingServerTimestamp(value) != nil {
                throw .invalidArgument(
                    "Invalid query. You are trying to start or end a query using a document for which the field "
                        + "'\(order.field.string)' is an uncommitted server timestamp. (Since the value of this field is "
                        + "unknown, you cannot start/end a query with it.)")
            }
            values.append(value)
        }
        return values
    }
}
