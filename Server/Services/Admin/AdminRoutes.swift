import HearthModel
import HearthWire

/// The REST form of the admin services. Source: the `http` options of google/firestore/admin/v1/firestore_admin.proto.
extension AdminService {
    /// A REST request, taken apart.
    public struct RESTRequest: Sendable {
        public var method: String
        /// What follows `/v1/`, decoded, with the last one's `:verb` split off.
        public var segments: [String]
        public var verb: String
        /// Without those of the transport.
        public var parameters: [(name: String, value: String)]
        public var body: [UInt8]
        public var options: JSONOptions

        public init(
            method: String, segments: [String], verb: String = "", parameters: [(name: String, value: String)] = [],
            body: [UInt8] = [], options: JSONOptions = JSONOptions()
        ) {
            self.method = method
            self.segments = segments
            self.verb = verb
            self.parameters = parameters
            self.body = body
            self.options = options
        }
    }

    /// What a verb and a path mean.
    enum Route {
        case createIndex, listIndexes, getIndex, deleteIndex
        case listFields, getField, updateField
        case createDatabase, listDatabases, getDatabase, updateDatabase, deleteDatabase
        case bulkDelete, listOperations, getOperation, deleteOperation, cancelOperation
        case listLocations, getLocation
        /// A method that the service has and Hearth has not.
        case absent(String)
    }

    private static let databaseVerbs = [
        "exportDocuments": "ExportDocuments", "importDocuments": "ImportDocuments",
    ]

    /// - Parameters:
    ///   - segments: decoded or not; only their number and the fixed ones matter.
    /// - Returns: nil when no binding fits.
    static func route(method: String, segments: [String], verb: String) -> Route? {
        guard segments.count >= 3, segments[0] == "projects" else { return nil }
        let count = segments.count
        switch segments[2] {
        case "databases" where count == 3:
            return verb.isEmpty ? databasesRoute(method) : absentIf(verb, ["restore", "clone"])
        case "databases" where count == 4: return databaseRoute(method, verb)
        case "databases" where segments[4] == "collectionGroups" && count >= 7:
            return groupRoute(method, segments, verb)
        case "databases" where segments[4] == "operations" && count <= 6: return operationRoute(method, count, verb)
        case "databases" where segments[4] == "backupSchedules" || segments[4] == "userCreds":
            return .absent(segments[4])
        case "locations" where count == 3 && method == "GET" && verb.isEmpty: return .listLocations
        case "locations" where count == 4 && method == "GET" && verb.isEmpty: return .getLocation
        case "locations" where count >= 5 && segments[4] == "backups": return .absent("backups")
        default: return nil
        }
    }

    private static func absentIf(_ verb: String, _ known: [String]) -> Route? {
        known.contains(verb) ? .absent(verb) : nil
    }

    private static func databasesRoute(_ method: String) -> Route? {
        switch method {
        case "GET": .listDatabases
        case "POST": .createDatabase
        default: nil
        }
    }

    private static func databaseRoute(_ method: String, _ verb: String) -> Route? {
        switch (method, verb) {
        case ("GET", ""): .getDatabase
        case ("PATCH", ""): .updateDatabase
        case ("DELETE", ""): .deleteDatabase
        case ("POST", "bulkDeleteDocuments"): .bulkDelete
        case ("POST", _): databaseVerbs[verb].map { .absent($0) }
        default: nil
        }
    }

    private static func groupRoute(_ method: String, _ segments: [String], _ verb: String) -> Route? {
        guard verb.isEmpty else { return nil }
        switch (segments[6], segments.count, method) {
        case ("indexes", 7, "POST"): return .createIndex
        case ("indexes", 7, "GET"): return .listIndexes
        case ("indexes", 8, "GET"): return .getIndex
        case ("indexes", 8, "DELETE"): return .deleteIndex
        case ("fields", 7, "GET"): return .listFields
        case ("fields", 8, "GET"): return .getField
        case ("fields", 8, "PATCH"): return .updateField
        default: return nil
        }
    }

    private static func operationRoute(_ method: String, _ count: Int, _ verb: String) -> Route? {
        switch (method, count, verb) {
        case ("GET", 5, ""): .listOperations
        case ("GET", 6, ""): .getOperation
        case ("DELETE", 6, ""): .deleteOperation
        case ("POST", 6, "cancel"): .cancelOperation
        default: nil
        }
    }

    // MARK: Serving

    /// Serves a request.
    /// - Returns: false, and `answer` is not called, when the request is none of these services'.
    public func serve(_ request: RESTRequest, _ answer: @escaping @Sendable (Result<[UInt8], Status>) -> Void) -> Bool {
        guard let route = Self.route(method: request.method, segments: request.segments, verb: request.verb) else {
            return false
        }
        if Self.isOfDatabase(route) {
            inBackground(of: answer) { () throws(Status) in try serve(route, request, answer) }
        } else {
            do throws(Status) { try serve(route, request, answer) } catch { answer(.failure(error)) }
        }
        return true
    }

    /// Whether a method looks into a database, which may have to be opened first.
    private static func isOfDatabase(_ route: Route) -> Bool {
        switch route {
        case .listOperations, .getOperation, .deleteOperation, .cancelOperation, .listLocations, .getLocation, .absent:
            false
        default: true
        }
    }

    private func serve(
        _ route: Route, _ request: RESTRequest, _ answer: @escaping BytesAnswer
    ) throws(Status) {
        let name = request.segments.joined(separator: "/")
        let parent = request.segments.dropLast().joined(separator: "/")
        let options = request.options
        func json<Response: WireMessage>(_: Response.Type) -> Answer<Response> {
            { result in answer(result.map { $0.json(options) }) }
        }
        switch route {
        case .createIndex:
            let index = try IndexMessage(json: Self.object(request.body), at: "index")
            try createIndex(
                try Self.set(CreateIndexRequest(parent: parent, index: index), request), json(OperationMessage.self))
        case .listIndexes:
            try listIndexes(try Self.set(ListIndexesRequest(parent: parent), request), json(ListIndexesResponse.self))
        case .getIndex: try getIndex(try Self.set(GetIndexRequest(name: name), request), json(IndexMessage.self))
        case .deleteIndex:
            try deleteIndex(try Self.set(DeleteIndexRequest(name: name), request), json(EmptyMessage.self))
        case .listFields:
            try listFields(try Self.set(ListFieldsRequest(parent: parent), request), json(ListFieldsResponse.self))
        case .getField: try getField(try Self.set(GetFieldRequest(name: name), request), json(FieldMessage.self))
        case .updateField:
            var field = try FieldMessage(json: Self.object(request.body), at: "field")
            field.name = name
            try updateField(try Self.set(UpdateFieldRequest(field: field), request), json(OperationMessage.self))
        default: try serveDatabase(route, request, name, parent, answer)
        }
    }

    private func serveDatabase(
        _ route: Route, _ request: RESTRequest, _ name: String, _ parent: String, _ answer: @escaping BytesAnswer
    ) throws(Status) {
        let options = request.options
        func json<Response: WireMessage>(_: Response.Type) -> Answer<Response> {
            { result in answer(result.map { $0.json(options) }) }
        }
        switch route {
        case .createDatabase:
            let database = try DatabaseMessage(json: Self.object(request.body), at: "database")
            let message = CreateDatabaseRequest(parent: parent, database: database)
            try createDatabase(try Self.set(message, request), json(OperationMessage.self))
        case .listDatabases:
            try listDatabases(
                try Self.set(ListDatabasesRequest(parent: parent), request), json(ListDatabasesResponse.self))
        case .getDatabase:
            try getDatabase(try Self.set(GetDatabaseRequest(name: name), request), json(DatabaseMessage.self))
        case .updateDatabase:
            var database = try DatabaseMessage(json: Self.object(request.body), at: "database")
            database.name = name
            let message = UpdateDatabaseRequest(database: database)
            try updateDatabase(try Self.set(message, request), json(OperationMessage.self))
        case .deleteDatabase:
            try deleteDatabase(try Self.set(DeleteDatabaseRequest(name: name), request), json(OperationMessage.self))
        case .bulkDelete:
            var message = try BulkDeleteDocumentsRequest(json: Self.object(request.body))
            message.name = name
            try bulkDeleteDocuments(try Self.set(message, request), json(OperationMessage.self))
        case .listOperations:
            try listOperations(
                try Self.set(ListOperationsRequest(name: parent), request), json(ListOperationsResponse.self))
        case .getOperation:
            try getOperation(try Self.set(GetOperationRequest(name: name), request), json(OperationMessage.self))
        case .deleteOperation:
            try deleteOperation(try Self.set(DeleteOperationRequest(name: name), request), json(EmptyMessage.self))
        case .cancelOperation:
            try cancelOperation(try Self.set(CancelOperationRequest(name: name), request), json(EmptyMessage.self))
        case .listLocations:
            try listLocations(
                try Self.set(ListLocationsRequest(name: parent), request), json(ListLocationsResponse.self))
        case .getLocation:
            try getLocation(try Self.set(GetLocationRequest(name: name), request), json(LocationMessage.self))
        case .absent(let what): throw .unimplemented("\(what) is not available in Hearth.")
        default: throw .internalError("The route \(route) is not served.")
        }
    }

    /// An empty body is an empty message.
    private static func object(_ body: [UInt8]) -> [UInt8] { body.isEmpty ? Array("{}".utf8) : body }

    private static func set<Request: WireMessage>(_ message: Request, _ request: RESTRequest) throws(Status) -> Request
    {
        var message = message
        for (name, value) in request.parameters { try message.set(parameter: name, value) }
        return message
    }
}
