import HearthModel
import HearthWire

/// Targets as messages: for requests, for the cache, and from bundles.
package struct TargetSerializer: Sendable {
    package let database: DatabaseName

    package init(database: DatabaseName) { self.database = database }

    // MARK: To messages

    /// A target's documents or query, without the other fields of the message.
    package func message(_ target: ClientTarget) -> TargetMessage {
        if target.isDocumentTarget {
            return TargetMessage(documents: TargetMessage.DocumentsTarget(documents: [name(target.path)]))
        }
        let query = query(target)
        return TargetMessage(
            query: TargetMessage.QueryTarget(
                parent: query.parent.string, structuredQuery: StructuredQueryMessage(query)))
    }

    /// A request to listen.
    package func message(_ data: TargetData) -> TargetMessage {
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

    /// The label that informs the server of the reason for a listen.
    static func label(_ purpose: TargetData.Purpose) -> String? {
        switch purpose {
        case .listen: nil
        case .existenceFilterMismatch: "existence-filter-mismatch"
        case .existenceFilterMismatchBloom: "existence-filter-mismatch-bloom"
        case .limboResolution: "limbo-document"
        }
    }

    static let labelKey = "goog-listen-tags"

    /// The model's query for a target that is not a document target.
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

    func name(_ key: ResourcePath) -> String { ResourceName(database: database, path: key).string }

    /// Checks the names, fields and values of a user's query as the server does on arrival: a request that the server
    /// cannot read would end the stream of all listeners.
    /// - Throws: `INVALID_ARGUMENT` with the server's message.
    func check(_ query: ClientQuery) throws(Status) {
        let target = query.target
        if target.isDocumentTarget {
            _ = try ResourceName(document: name(target.path), in: database)
            return
        }
        let asked = self.query(target)
        _ = try ResourceName(parent: asked.parent.string)
        if case .collection(let id) = asked.scope { try ResourceName.validate(collectionID: id) }
        if case .collectionGroup(let id) = asked.scope { try ResourceName.validate(collectionID: id) }
        for filter in target.filters { try check(filter, depth: 1) }
        for order in target.orders { _ = try FieldPath(parsing: order.field.string) }
        for value in (target.start?.values ?? []) + (target.end?.values ?? []) { try checkDepth(of: value) }
    }

    private func check(_ filter: Filter, depth: Int) throws(Status) {
        if depth > Limits.filterDepthMax {
            throw .invalidArgument("The filter nests deeper than \(Limits.filterDepthMax) levels.")
        }
        switch filter {
        case .and(let members), .or(let members):
            for member in members { try check(member, depth: depth + 1) }
        case .unary(let field, _): _ = try FieldPath(parsing: field.string)
        case .field(let field, _, let value):
            _ = try FieldPath(parsing: field.string)
            try checkDepth(of: value)
        }
    }

    /// No document has values that nest deeper, but a list of them is an additional level.
    private func checkDepth(of value: Value, level: Int = 0) throws(Status) {
        if level > Limits.valueDepthMax + 1 {
            throw .invalidArgument("A value of the query nests deeper than \(Limits.valueDepthMax) levels.")
        }
        switch value {
        case .array(let elements): for element in elements { try checkDepth(of: element, level: level + 1) }
        case .map(let map): for member in map.fields { try checkDepth(of: member.value, level: level + 1) }
        default: break
        }
    }

    // MARK: From messages

    /// - Throws: `INVALID_ARGUMENT` for a message that this serializer never produces.
    package func target(_ message: TargetMessage) throws(Status) -> ClientTarget {
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

    /// The user's query of a structured query: from a target in the cache, or from a bundle's named query. All its
    /// orders become explicit.
    package func query(
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

    /// The user's query of a bundle's query, which was checked when it was read.
    func query(_ query: Query, limitType: ClientQuery.LimitType) throws(Status) -> ClientQuery {
        try self.query(parent: query.parent.string, StructuredQueryMessage(query), limitType: limitType)
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
                    field: try FieldPath(unlimited: order.field?.fieldPath ?? ""),
                    descending: order.direction == .descending))
        }
        query.limit = message.limit.map { Int($0) }
        query.limitType = limitType
        query.start = message.startAt.map { ClientQuery.Bound(values: $0.values, isInclusive: $0.before) }
        query.end = message.endAt.map { ClientQuery.Bound(values: $0.values, isInclusive: !$0.before) }
        return query
    }

    private func path(_ name: String) throws(Status) -> ResourcePath { try database.path(unlimited: name) }

    private func filter(_ message: StructuredQueryMessage.Filter) throws(Status) -> Filter {
        if let composite = message.compositeFilter {
            var members: [Filter] = []
            for member in composite.filters { members.append(try filter(member)) }
            return composite.op == .or ? .or(members) : .and(members)
        }
        if let field = message.fieldFilter, let op = Filter.Operator(rawValue: Int(field.op.rawValue)),
            let value = field.value
        {
            return .field(try FieldPath(unlimited: field.field?.fieldPath ?? ""), op, value)
        }
        if let unary = message.unaryFilter, let op = Filter.UnaryOperator(rawValue: Int(unary.op.rawValue)) {
            return .unary(try FieldPath(unlimited: unary.field?.fieldPath ?? ""), op)
        }
        throw .invalidArgument("A filter of an unknown kind.")
    }
}

extension DatabaseName {
    /// The path of a name that this client wrote or a server sent. Nothing else is checked: targets for a bundle's
    /// documents have reserved ids.
    func path(unlimited name: String) throws(Status) -> ResourcePath {
        let root = documentsRoot
        if UTF8Order.equal(name, root) { return ResourcePath() }
        guard name.utf8.starts(with: root.utf8), name.utf8.dropFirst(root.utf8.count).first == UInt8(ascii: "/") else {
            throw .invalidArgument("The name \(name) is not in database \(string).")
        }
        return ResourcePath(string: String(Substring(name.utf8.dropFirst(root.utf8.count + 1))))
    }
}
