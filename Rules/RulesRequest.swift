import HearthModel

/// A client's operation, by its name in rules.
package enum RulesMethod: String, Sendable, CaseIterable {
    case get, list, create, update, delete
}

/// The identity of the client.
package struct RulesAuth: Sendable {
    package var uid: String
    /// The claims of the ID token.
    package var token: MapValue

    package init(uid: String, token: MapValue = MapValue()) {
        self.uid = uid
        self.token = token
    }
}

/// One operation that rules allow or deny.
package struct RulesRequest {
    package var method: RulesMethod
    /// The id of the database, such as `(default)`.
    package var database: String
    /// The path of the document; for a list, of the collection, or of the parent of a collection group.
    package var path: ResourcePath
    /// Nil without credentials.
    package var auth: RulesAuth?
    /// The time of the request, which is also the value of its server timestamps.
    package var time: Timestamp
    /// The stored document; nil when there is none. A list has none.
    package var resource: RulesDocument?
    /// The document after a create or an update, with all transforms applied; nil otherwise.
    package var newResource: RulesDocument?
    /// The query of a list.
    package var query: RulesQuery?

    package init(
        method: RulesMethod, database: String = DatabaseName.defaultDatabase, path: ResourcePath,
        auth: RulesAuth? = nil, time: Timestamp, resource: RulesDocument? = nil, newResource: RulesDocument? = nil,
        query: RulesQuery? = nil
    ) {
        self.method = method
        self.database = database
        self.path = path
        self.auth = auth
        self.time = time
        self.resource = resource
        self.newResource = newResource
        self.query = query
    }
}

/// A query in rules. Rules never see its results: a query is allowed for all documents that it could find.
package struct RulesQuery: Sendable {
    /// One condition that every result meets.
    package struct Constraint: Sendable {
        package enum Test: Sendable {
            case field(Filter.Operator, Value)
            case unary(Filter.UnaryOperator)
            /// `__name__ ==` this document.
            case name(ResourcePath)
        }

        package var path: FieldPath
        package var test: Test

        package init(path: FieldPath, test: Test) {
            self.path = path
            self.test = test
        }

        package init(_ path: FieldPath, _ comparison: Filter.Operator, _ value: Value) {
            self.init(path: path, test: .field(comparison, value))
        }

        package init(name: ResourcePath) {
            self.init(path: .documentName, test: .name(name))
        }
    }

    package var collectionID: String
    package var isGroup: Bool
    package var limit: Int?
    package var offset: Int
    package var orderBy: [(path: FieldPath, descending: Bool)]
    /// The filter in disjunctive normal form: all branches must be allowed. A query without a filter has one empty
    /// branch. `in` and `array-contains-any` may be included, and make a branch for each of their values.
    package var branches: [[Constraint]]
    /// Whether documents count as having the filtered fields and no others, as in Google's emulator. Otherwise a
    /// condition on any other field is an error: documents in the result may have that field.
    package var isComplete: Bool

    package init(
        collectionID: String, isGroup: Bool = false, limit: Int? = nil, offset: Int = 0,
        orderBy: [(path: FieldPath, descending: Bool)] = [], branches: [[Constraint]] = [[]],
        isComplete: Bool = true
    ) {
        self.isComplete = isComplete
        self.collectionID = collectionID
        self.isGroup = isGroup
        self.limit = limit
        self.offset = offset
        self.orderBy = orderBy
        self.branches = branches
    }

    /// A branch from the filters of a normalised query.
    /// - Parameter filters: `.field` and `.unary` only; members of a conjunction are included, too.
    package static func branch(_ filters: [Filter]) -> [Constraint] {
        filters.flatMap { filter -> [Constraint] in
            switch filter {
            case .field(let path, .equal, .reference(let name)) where path.isDocumentName:
                [Constraint(name: ResourcePath(RulePath(reference: name).documentSegments ?? []))]
            case .field(let path, let comparison, let value): [Constraint(path, comparison, value)]
            case .unary(let path, let comparison): [Constraint(path: path, test: .unary(comparison))]
            case .and(let filters): branch(filters)
            case .or: []
            }
        }
    }
}

extension RulePath {
    /// The segments after `/databases/D/documents`; nil when the path begins otherwise.
    var documentSegments: [String]? {
        guard segments.count >= 3, segments[0] == .string("databases"), segments[2] == .string("documents") else {
            return nil
        }
        var strings: [String] = []
        for segment in segments.dropFirst(3) {
            guard case .string(let string) = segment else { return nil }
            strings.append(string)
        }
        return strings
    }
}
