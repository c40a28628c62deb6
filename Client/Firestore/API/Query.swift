internal import Foundation
internal import HearthModel
internal import HearthSync

/// A query over documents. It is immutable: each function returns a new query.
public class Query: @unchecked Sendable, Hashable {
    // All properties are constants: `@unchecked` is needed only because the class has a subclass.

    /// The database of the query.
    public let firestore: Firestore
    let model: ClientQuery

    init(firestore: Firestore, _ model: ClientQuery) {
        self.firestore = firestore
        self.model = model
    }

    public static func == (left: Query, right: Query) -> Bool {
        left.firestore === right.firestore && left.model == right.model
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(model)
    }

    /// A copy of the query with a change.
    func with(_ change: (inout ClientQuery) -> Void) -> Query {
        var model = model
        change(&model)
        return Query(firestore: firestore, model)
    }

    // MARK: Reading

    /// Runs the query once at the server, or in the cache when the server cannot be reached.
    /// - Parameter completion: runs on `FirestoreSettings.dispatchQueue` with the result, or with an `NSError` of
    ///   `FirestoreErrorDomain`, which has the server's code, for example `permissionDenied`. Offline it receives what
    ///   the cache has, which may be empty.
    public func getDocuments(completion: @escaping (QuerySnapshot?, (any Error)?) -> Void) {
        getDocuments(source: .default, completion: completion)
    }

    /// Runs the query once at the server, or in the cache when the server cannot be reached.
    /// - Returns: the result; offline what the cache has, which may be empty: see `QuerySnapshot.metadata`.
    /// - Throws: an `NSError` of `FirestoreErrorDomain` with the server's code, for example `permissionDenied`.
    ///   `CancellationError` when the task is cancelled.
    @discardableResult
    nonisolated(nonsending) public func getDocuments() async throws -> QuerySnapshot {
        try await getDocuments(source: .default)
    }

    /// Runs the query once in a given source.
    /// - Parameters:
    ///   - source: the server, the cache, or the server with the cache when it cannot be reached.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` with the result, or with an `NSError` of
    ///     `FirestoreErrorDomain`: `unavailable` when only the server was requested and cannot be reached, otherwise
    ///     the server's code.
    public func getDocuments(source: FirestoreSource, completion: @escaping (QuerySnapshot?, (any Error)?) -> Void) {
        orTrap(validateForRun)
        OneTimeRead.documents(self, source, firestore.handler(completion))
    }

    /// Runs the query once in a given source.
    /// - Parameter source: the server, the cache, or the server with the cache when it cannot be reached.
    /// - Returns: the result; from the cache it may be empty: see `QuerySnapshot.metadata`.
    /// - Throws: an `NSError` of `FirestoreErrorDomain`: `unavailable` when only the server was requested and cannot be
    ///   reached, otherwise the server's code. `CancellationError` when the task is cancelled.
    @discardableResult
    nonisolated(nonsending) public func getDocuments(source: FirestoreSource) async throws -> QuerySnapshot {
        orTrap(validateForRun)
        return try await waiting(stoppable: { OneTimeRead.documents(self, source, $0) })
    }

    /// The checks that are possible only when the query is complete.
    func validateForRun() throws(Status) {
        if model.limit != nil, model.limitType == .last, model.orders.isEmpty {
            throw .invalidArgument("limit(toLast:) queries require specifying at least one order(by:) clause.")
        }
    }

    // MARK: Listening

    /// Listens to the result, without events for changes of only the metadata.
    /// - Parameter listener: runs on `FirestoreSettings.dispatchQueue` with each snapshot, or with an `NSError` of
    ///   `FirestoreErrorDomain`, which ends the listening. The first snapshot usually comes from the cache, also
    ///   offline, and another one from the server.
    /// - Returns: the registration. The listener runs until its `remove()` is called; it also runs when the
    ///   registration is released.
    @discardableResult
    public func addSnapshotListener(
        _ listener: @escaping (QuerySnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration & Sendable {
        addSnapshotListener(options: SnapshotListenOptions(), listener: listener)
    }

    /// Listens to the result.
    /// - Parameters:
    ///   - includeMetadataChanges: whether the listener also runs when only the metadata changed.
    ///   - listener: runs on `FirestoreSettings.dispatchQueue` with each snapshot, or with an `NSError` of
    ///     `FirestoreErrorDomain`, which ends the listening. The first snapshot usually comes from the cache, also
    ///     offline, and another one from the server.
    /// - Returns: the registration. The listener runs until its `remove()` is called; it also runs when the
    ///   registration is released.
    @discardableResult
    public func addSnapshotListener(
        includeMetadataChanges: Bool, listener: @escaping (QuerySnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration & Sendable {
        addSnapshotListener(
            options: SnapshotListenOptions().withIncludeMetadataChanges(includeMetadataChanges), listener: listener)
    }

    /// Listens to the result.
    /// - Parameters:
    ///   - options: the source, and whether the listener also runs when only the metadata changed.
    ///   - listener: runs on `FirestoreSettings.dispatchQueue` with each snapshot, or with an `NSError` of
    ///     `FirestoreErrorDomain`, which ends the listening. The first snapshot usually comes from the cache, also
    ///     offline, and another one from the server.
    /// - Returns: the registration. The listener runs until its `remove()` is called; it also runs when the
    ///   registration is released.
    @discardableResult
    public func addSnapshotListener(
        options: SnapshotListenOptions, listener: @escaping (QuerySnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration & Sendable {
        orTrap(validateForRun)
        let carried = Carried(listener)
        return SnapshotListener.listen(firestore, to: model, options) { [self] result in
            switch result {
            case .success(let view): carried.value(QuerySnapshot(query: self, view: view), nil)
            case .failure(let status): carried.value(nil, status.nsError)
            }
        }
    }

    // MARK: Aggregations

    /// The aggregation that counts the matching documents without reading them.
    public var count: AggregateQuery { aggregate([AggregateField.count()]) }

    /// Aggregations over the matching documents.
    /// - Parameter aggregateFields: 1 to 5 aggregations. An empty list ends the program; the server responds to more
    ///   than 5 with `invalidArgument`.
    /// - Returns: the aggregations, not yet computed.
    @discardableResult
    public func aggregate(_ aggregateFields: [AggregateField]) -> AggregateQuery {
        orTrap { () throws(Status) in try AggregateQuery(query: self, fields: aggregateFields) }
    }

    // MARK: Limits

    /// Limits the result to the first documents.
    /// - Parameter limit: the number of documents, greater than 0. Any other number ends the program.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func limit(to limit: Int) -> Query {
        orTrap { () throws(Status) in try limited(limit, .first) }
    }

    /// Limits the result to the last documents, in the query's order. It requires an `order(by:)`.
    /// - Parameter limit: the number of documents, greater than 0. Any other number ends the program.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func limit(toLast limit: Int) -> Query {
        orTrap { () throws(Status) in try limited(limit, .last) }
    }

    func limited(_ limit: Int, _ type: ClientQuery.LimitType) throws(Status) -> Query {
        if limit <= 0 {
            throw .invalidArgument("Invalid Query. Query limit (\(limit)) is invalid. Limit must be positive.")
        }
        return with { query in
            query.limit = limit
            query.limitType = type
        }
    }

    // MARK: Orders

    /// Sorts the result by a field in ascending order. Documents without the field are not in the result.
    /// - Parameter field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///   `FieldPath`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func order(by field: String) -> Query { order(by: field, descending: false) }

    /// Sorts the result by a field in ascending order. Documents without the field are not in the result.
    /// - Parameter path: the field's path; `FieldPath.documentID()` for the document's id.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func order(by path: FieldPath) -> Query { order(by: path, descending: false) }

    /// Sorts the result by a field. Documents without the field are not in the result.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - descending: true for descending, false for ascending order.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func order(by field: String, descending: Bool) -> Query {
        orTrap { () throws(Status) in try ordered(try FieldPath.parse(field), descending) }
    }

    /// Sorts the result by a field. Documents without the field are not in the result.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - descending: true for descending, false for ascending order.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func order(by path: FieldPath, descending: Bool) -> Query {
        orTrap { () throws(Status) in try ordered(path.model, descending) }
    }

    func ordered(_ path: ModelFieldPath, _ descending: Bool) throws(Status) -> Query {
        if model.start != nil {
            throw .invalidArgument(
                "Invalid query. You must not specify a starting point before specifying the order by.")
        }
        if model.end != nil {
            throw .invalidArgument(
                "Invalid query. You must not specify an ending point before specifying the order by.")
        }
        return with { $0.orders.append(ModelOrder(field: path, descending: descending)) }
    }
}
