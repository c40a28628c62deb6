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
    ///     `FirestoreErrorDomain`, which ends the listening: `invalidArgument` for a sum or an average with a limit when
    ///     the name comes before the aggregated field in the order, as with a cursor at a document.
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
        let local: ClientQuery
        do throws(Status) { local = try localQuery() } catch {
            return SnapshotListener.fail(query.firestore) { carried.value(nil, error.nsError) }
        }
        return SnapshotListener.listen(query.firestore, to: local, options) { [self] result in
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
    /// fields, in the order of these fields, which come before the name.
    /// - Throws: `INVALID_ARGUMENT`, with the server's message, for a limit in an order in which the name comes before
    ///   an aggregated field: neither the server nor the client can then select the documents.
    func localQuery() throws(Status) -> ClientQuery {
        let model = query.model
        // The implied orders come before the aggregated fields. The name, which ends every order, remains implied.
        var orders = model.normalizedOrders
        var missing: [ModelFieldPath] = []
        for path in fields.compactMap(\.path).sorted() {
            if !missing.contains(path), !orders.contains(where: { $0.field == path }) { missing.append(path) }
        }
        if missing.isEmpty { return model }
        if hasNameInOrder {
            // Without a limit the result has all documents that count. The aggregation skips the others.
            if model.limit == nil { return model }
            throw .invalidArgument(
                "This query requires an index that has fields [\(missing.map(\.string).joined(separator: ", "))] after "
                    + "__name__ and Firestore does not currently support such an index. Please try the query again with "
                    + "additional ordering on those fields.")
        }
        orders.removeAll { $0.field.isDocumentName }
        let isDescending = orders.last?.descending ?? false
        for path in missing { orders.append(ModelOrder(field: path, descending: isDescending)) }
        var local = model
        local.orders = orders
        return local
    }

    /// Whether an order, a filter or a cursor determines that the name follows the orders of the query directly. A
    /// cursor at a document ends with the name.
    private var hasNameInOrder: Bool {
        let model = query.model
        if model.orders.contains(where: { $0.field.isDocumentName }) { return true }
        if model.filters.contains(where: { $0.concernsName }) { return true }
        let before = model.normalizedOrders.count { !$0.field.isDocumentName }
        return [model.start, model.end].contains { ($0?.values.count ?? 0) > before }
    }

    private func fromCache(_ completion: @escaping @Sendable (Result<AggregateQuerySnapshot, Status>) -> Void) {
        let engine = query.firestore.engine
        let local: ClientQuery
        do throws(Status) { local = try localQuery() } catch { return completion(.failure(error)) }
        engine.documentsFromCache(local) { [self] result in completion(result.map { snapshot(of: $0) }) }
    }

    func snapshot(of view: ViewSnapshot) -> AggregateQuerySnapshot {
        AggregateQuerySnapshot(
            query: self, values: LocalAggregation.values(of: distinctFields, over: view.documents),
            metadata: SnapshotMetadata(hasPendingWrites: view.hasPendingWrites, isFromCache: view.isFromCache))
    }
}

extension ModelFilter {
    /// Whether a member is on the document's name.
    fileprivate var concernsName: Bool {
        switch self {
        case .and(let members), .or(let members): members.contains { $0.concernsName }
        case .field(let path, _, _), .unary(let path, _): path.isDocumentName
        }
    }
}
