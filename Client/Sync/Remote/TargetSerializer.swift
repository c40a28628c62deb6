import HearthModel
import HearthWire

/// Targets as messages: for requests, for the cache, and from bundles.
public struct TargetSerializer: Sendable {
    public let database: DatabaseName

    public init(database: DatabaseName) { self.database = database }

    // MARK: To messages

    /// A target's documents or query, nothing else of the message.
    public func message(_ target: ClientTarget) -> TargetMessage {
        if target.isDocumentTarget {
            return TargetMessage(documents: TargetMessage.DocumentsTarget(documents: [name(target.path)]))
        }
        let query = query(target)
        return TargetMessage(
            query: TargetMessage.QueryTarget(
                parent: query.parent.text, structuredQuery: StructuredQueryMessage(query)))
    }

    /// A request to listen.
    public func message(_ data: TargetData) -> TargetMessage {
        var message = message(data.target)
        message.targetId = data.targetID
        if !data.resumeToken.isEmpty {
            message.resumeToken = data.resumeToken
        } else if data.snapshotVersion > .none {
            message.readTime = TimestampMessage(data.snapshotVersion)
        }
        if message.resumeToken != nil || message.readTime != nil { message.expectedCount = data.expectedCount }
        return message
    }

    /// What the server is to know about the reason of a listen.
    static func label(_ purpose: TargetData.Purpose) -> String? {
        switch purpose {
        case .listen: nil
        case .existenceFilterMismatch: "existence-filter-mismatch"
        case .existenceFilterMismatchBloom: "existence-filter-mismatch-bloom"
        case .limboResolution: "limbo-document"
        }
    }

    static let labelKey = "goog-listen-tags"

    /// The model's query for a target that isn't a document's.
    func query(_ target: ClientTarget) -> Query {
        var query: Query
        if let group = target.collectionGroup {
            query = Query(parent: ResourceName(database: database, path: target.path), scope: .collectionGroup(group))
        } else {
            query = Query(
                parent: ResourceName(database: database, path: target.path.parent),
                scope: .collection(target.path.segments.last ?? ""))
        }
        let filters = target.filters.map(\.forServer)
        query.filter = filters.count > 1 ? .and(filters) : filters.first
        query.orders = target.orders
        query.limit = target.limit
        query.start = target.start.map { Query.Cursor(values: $0.values, before: $0.isInclusive) }
        query.end = target.end.map { Query.Cursor(values: $0.values, before: !$0.isInclusive) }
        return query
    }

    func name(_ key: ResourcePath) -> String { ResourceName(database: database, path: key).text }

    // MARK: From messages

    /// - Throws: INVALID_ARGUMENT for what this serializer never writes.
    public func target(_ message: TargetMessage) throws(Status) -> ClientTarget {
        if let documents = message.documents {
            guard documents.documents.count == 1 else {
                throw .invalidArgument("A target of \(documents.documents.count) documents; expected one.")
            }
            let key = try path(documents.documents[0])
            return ClientQuery(path: key).target
        }
        guard let query = message.query, let structuredQuery = query.structuredQuery else {
            throw .invalidArgument("A target needs documents or a query.")
        }
        return try self.query(parent: query.parent, structuredQuery, limitType: .first).target
    }

    /// The user's query in a structured one: of a target in the cache, or of a bundle's named query. All its orders
    /// become explicit.
    public func query(
        parent: String, _ message: StructuredQueryMessage, limitType: ClientQuery.LimitType
    ) throws(Status) -> ClientQuery {
        let parent = try path(parent)
        guard message.from.count == 1, let selector = message.from.first, !selector.collectionId.isEmpty else {
            throw .invalidArgument("A query needs exactly one collection.")
        }
        guard message.offset == 0, message.select == nil, message.findNearest == nil else {
            throw .invalidArgument("A query of a client has no offset, projection or vector search.")
        }
        return try query(
            parent: parent, collectionID: selector.collectionId, isGroup: selector.allDescendants, message, limitType)
    }

    /// The user's query in a bundle's, which was checked when it was read.
    func query(_ query: Query, limitType: ClientQuery.LimitType) throws(Status) -> ClientQuery {
        try self.query(parent: query.parent.text, StructuredQueryMessage(query), limitType: limitType)
    }

    private func query(
        parent: ResourcePath, collectionID: String, isGroup: Bool, _ message: StructuredQueryMessage,
        _ limitType: ClientQuery.LimitType
    ) throws(Status) -> ClientQuery {
        var query =
            isGroup
            ? ClientQuery(path: parent, collectionGroup: collectionID)
            : ClientQuery(path: parent.appending(collectionID))
        if let filter = message.where { query.filters = [try self.filter(filter)].flattened }
        for order in message.orderBy {
            query.orders.append(
                Query.Order(
                    field: try FieldPath(parsing: order.field?.fieldPath ?? ""),
                    descending: order.direction == .descending))
        }
        query.limit = message.limit.map { Int($0) }
        query.limitType = limitType
        query.start = message.startAt.map { ClientQuery.Bound(values: $0.values, isInclusive: $0.before) }
        query.end = message.endAt.map { ClientQuery.Bound(values: $0.values, isInclusive: !$0.before) }
        return query
    }

    /// The path of a name. Reserved ids are let through: targets that hold a bundle's documents have some.
    private func path(_ name: String) throws(Status) -> ResourcePath {
        let root = database.documentsRoot
        if UTF8Order.equal(name, root) { return ResourcePath() }
        guard name.utf8.starts(with: root.utf8), name.utf8.dropFirst(root.utf8.count).first == UInt8(ascii: "/") else {
            throw .invalidArgument("The name \(name) isn't of database \(database.text).")
        }
        return ResourcePath(text: String(Substring(name.utf8.dropFirst(root.utf8.count + 1))))
    }

    private func filter(_ message: StructuredQueryMessage.Filter) throws(Status) -> Filter {
        if let composite = message.compositeFilter {
            var members: [Filter] = []
            for member in composite.filters { members.append(try filter(member)) }
            return composite.op == .or ? .or(members) : .and(members)
        }
        if let field = message.fieldFilter, let op = Filter.Operator(rawValue: Int(field.op.rawValue)),
            let value = field.value
        {
            return .field(try FieldPath(parsing: field.field?.fieldPath ?? ""), op, value)
        }
        if let unary = message.unaryFilter, let op = Filter.UnaryOperator(rawValue: Int(unary.op.rawValue)) {
            return .unary(try FieldPath(parsing: unary.field?.fieldPath ?? ""), op)
        }
        throw .invalidArgument("A filter of an unknown kind.")
    }
}
