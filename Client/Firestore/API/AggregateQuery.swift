internal import Foundation
internal import HearthModel
internal import HearthSync

/// Aggregations over the documents of a query.
public final class AggregateQuery: Sendable, Hashable {
    /// The query whose documents are aggregated.
    public let query: Query
    let fields: [AggregateField]

    init(query: Query, fields: [AggregateField]) throws(Status) {
        if fields.isEmpty { throw .invalidArgument("Aggregations can not be empty: name one at least.") }
        self.query = query
        self.fields = fields
    }

    /// Computes the aggregations once.
    /// - Parameters:
    ///   - source: the server, or the cache on this device.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` with the result, or with an `NSError` of
    ///     `FirestoreErrorDomain`: `unavailable` when the server cannot be reached, otherwise the server's code.
    public func getAggregation(
        source: AggregateSource, completion: @escaping (AggregateQuerySnapshot?, (any Error)?) -> Void
    ) {
        orTrap(query.validateForRun)
        let done = query.firestore.handler(completion)
        switch source {
        case .server:
            let engine = query.firestore.engine
            fromServer(engine, done)
        case .cache: fromCache(done)
        }
    }

    /// Computes the aggregations once.
    /// - Parameter source: the server, or the cache on this device.
    /// - Returns: the result, with a value for each aggregation.
    /// - Throws: an `NSError` of `FirestoreErrorDomain`: `unavailable` when the server cannot be reached, otherwise the
    ///   server's code. `CancellationError` when the task is cancelled.
    @discardableResult
    nonisolated(nonsending) public func getAggregation(source: AggregateSource) async throws -> AggregateQuerySnapshot {
        orTrap(query.validateForRun)
        switch source {
        case .server:
            let engine = query.firestore.engine
            return try await waiting(stoppable: { fromServer(engine, $0) })
        case .cache: return try await waiting { fromCache($0) }
        }
    }

    /// Listens to the aggregations over the documents on this device. Apple's library has no such function.
    ///
    /// The listener runs with the present result, and again whenever the result changes: at once for local writes, and
    /// on arrival for changes from the server.
    /// - Parameters:
    ///   - includeMetadataChanges: whether the listener also runs when only `metadata` of the result changed.
    ///   - source: the cache and the server, or the cache alone.
    ///   - listener: runs on `FirestoreSettings.dispatchQueue` with each result, or with an `NSError` of
    ///     `FirestoreErrorDomain`, which ends the listening.
    /// - Returns: the registration. The listener runs until its `remove()` is called; it also runs when the
    ///   registration is released.
    @discardableResult
    public func addSnapshotListener(
        includeMetadataChanges: Bool = false, source: ListenSource = .default,
        listener: @escaping (AggregateQuerySnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration & Sendable {
        orTrap(query.validateForRun)
        let carried = Carried(listener)
        let last = Locked<AggregateQuerySnapshot?>(nil)
        let options = SnapshotListenOptions().withSource(source).withIncludeMetadataChanges(true)
        return SnapshotListener.listen(query.firestore, to: localQuery, options) { [self] result in
            switch result {
            case .success(let view):
                let snapshot = snapshot(of: view)
                let before = last.with { last in
                    defer { last = snapshot }
                    return last
                }
                if let before, includeMetadataChanges ? before == snapshot : before.values == snapshot.values { return }
                carried.value(snapshot, nil)
            case .failure(let status): carried.value(nil, status.nsError)
            }
        }
    }

    public static func == (left: AggregateQuery, right: AggregateQuery) -> Bool {
        left.query == right.query && left.fields == right.fields
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(query)
        hasher.combine(fields)
    }

    // MARK: At the server

    @discardableResult
    private func fromServer(
        _ engine: any FirestoreEngine,
        _ completion: @escaping @Sendable (Result<AggregateQuerySnapshot, Status>) -> Void
    ) -> @Sendable () -> Void {
        query.firestore.tasks.run { [self] in
            do throws(Status) {
                completion(.success(try await fromServer(engine)))
            } catch {
                completion(.failure(error))
            }
        }
    }

    private func fromServer(_ engine: any FirestoreEngine) async throws(Status) -> AggregateQuerySnapshot {
        let distinct = distinctFields
        let aggregations = distinct.enumerated().map { index, field in
            Aggregation(alias: "aggregation_\(index)", operator: field.operator)
        }
        let answer = try await engine.aggregate(query.model, aggregations)
        var values: [String: Value] = [:]
        for (field, aggregation) in zip(distinct, aggregations) {
            guard let value = answer[aggregation.alias] else {
                throw .internalError("The server gave no result for the aggregation \(field.alias).")
            }
            values[field.alias] = value
        }
        return AggregateQuerySnapshot(
            query: self, values: values, metadata: SnapshotMetadata(hasPendingWrites: false, isFromCache: false))
    }

    private var distinctFields: [AggregateField] {
        var seen: Set<AggregateField> = []
        return fields.filter { seen.insert($0).inserted }
    }

    // MARK: On this device

    /// The query over the documents that count. As at the server, these are the documents that have all aggregated
    /// fields, in the order of these fields.
    var localQuery: ClientQuery {
        var local = query.model
        var paths: [ModelFieldPath] = []
        for path in fields.compactMap(\.path) where !paths.contains(path) { paths.append(path) }
        if paths.isEmpty { return local }
        // The implied orders come before the aggregated fields. The name, which ends every order, remains implied.
        var orders = query.model.normalizedOrders
        if query.model.orders.contains(where: { $0.field.isDocumentName }) { return local }
        orders.removeAll { $0.field.isDocumentName }
        let isDescending = orders.last?.descending ?? false
        for path in paths.sorted() where !orders.contains(where: { $0.field == path }) {
            orders.append(ModelOrder(field: path, descending: isDescending))
        }
        // A cursor at a document may end with the name, which no longer has the same position.
        let limit = orders.count
        func fits(_ bound: ClientQuery.Bound?) -> Bool { (bound?.values.count ?? 0) <= limit }
        if fits(query.model.start), fits(query.model.end) { local.orders = orders }
        return local
    }

    private func fromCache(_ completion: @escaping @Sendable (Result<AggregateQuerySnapshot, Status>) -> Void) {
        query.firestore.engine.documentsFromCache(localQuery) { [self] result in
            completion(result.map { snapshot(of: $0) })
        }
    }

    func snapshot(of view: ViewSnapshot) -> AggregateQuerySnapshot {
        AggregateQuerySnapshot(
            query: self, values: LocalAggregation.values(of: distinctFields, over: view.documents),
            metadata: SnapshotMetadata(hasPendingWrites: view.hasPendingWrites, isFromCache: view.isFromCache))
    }
}
