internal import Foundation
internal import HearthModel
internal import HearthSync

/// A query. Each call gives a new one; none of them changes.
public class Query: @unchecked Sendable, Hashable {
    // All constants: `@unchecked` only because the class has a subclass.
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

    /// The same query with a change.
    func with(_ change: (inout ClientQuery) -> Void) -> Query {
        var model = model
        change(&model)
        return Query(firestore: firestore, model)
    }

    // MARK: Reading

    public func getDocuments(completion: @escaping (QuerySnapshot?, (any Error)?) -> Void) {
        getDocuments(source: .default, completion: completion)
    }

    @discardableResult
    nonisolated(nonsending) public func getDocuments() async throws -> QuerySnapshot {
        try await getDocuments(source: .default)
    }

    public func getDocuments(source: FirestoreSource, completion: @escaping (QuerySnapshot?, (any Error)?) -> Void) {
        orTrap(validateForRun)
        OneTimeRead.documents(self, source, firestore.handler(completion))
    }

    @discardableResult
    nonisolated(nonsending) public func getDocuments(source: FirestoreSource) async throws -> QuerySnapshot {
        orTrap(validateForRun)
        return try await waiting(stoppable: { OneTimeRead.documents(self, source, $0) })
    }

    /// What can be judged only when nothing more is added.
    func validateForRun() throws(Status) {
        if model.limit != nil, model.limitType == .last, model.orders.isEmpty {
            throw .invalidArgument("limit(toLast:) queries require specifying at least one order(by:) clause.")
        }
    }

    // MARK: Listening

    @discardableResult
    public func addSnapshotListener(
        _ listener: @escaping (QuerySnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration & Sendable {
        addSnapshotListener(options: SnapshotListenOptions(), listener: listener)
    }

    @discardableResult
    public func addSnapshotListener(
        includeMetadataChanges: Bool, listener: @escaping (QuerySnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration & Sendable {
        addSnapshotListener(
            options: SnapshotListenOptions().withIncludeMetadataChanges(includeMetadataChanges), listener: listener)
    }

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

    /// How many documents match, without reading them.
    public var count: AggregateQuery { aggregate([AggregateField.count()]) }

    /// - Parameter aggregateFields: at least one.
    @discardableResult
    public func aggregate(_ aggregateFields: [AggregateField]) -> AggregateQuery {
        orTrap { () throws(Status) in try AggregateQuery(query: self, fields: aggregateFields) }
    }

    // MARK: Limits

    /// The first documents only.
    /// - Parameter limit: above 0.
    @discardableResult
    public func limit(to limit: Int) -> Query {
        orTrap { () throws(Status) in try limited(limit, .first) }
    }

    /// The last documents only, in the query's order. Needs an `order(by:)`.
    /// - Parameter limit: above 0.
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

    @discardableResult
    public func order(by field: String) -> Query { order(by: field, descending: false) }

    @discardableResult
    public func order(by path: FieldPath) -> Query { order(by: path, descending: false) }

    @discardableResult
    public func order(by field: String, descending: Bool) -> Query {
        orTrap { () throws(Status) in try ordered(try FieldPath.parse(field), descending) }
    }

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
