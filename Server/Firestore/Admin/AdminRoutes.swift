import HearthModel
import HearthWire

/// The REST form of the admin services. Source: the `http` options of google/firestore/admin/v1/firestore_admin.proto.
extension AdminService {
    /// A parsed REST request.
    struct RESTRequest: Sendable {
        var method: String
        /// The decoded segments after `/v1/`; the `:verb` of the last one is removed.
        var segments: [String]
        var verb: String
        /// Without the parameters of the transport.
        var parameters: [(name: String, value: String)]
        var body: [UInt8]
        var options: JSONOptions

        init(
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

    /// The method that a verb and a path select.
    enum Route {
        case createIndex, listIndexes, getIndex, deleteIndex
        case listFields, getField, updateField
        case createDatabase, listDatabases, getDatabase, updateDatabase, deleteDatabase
        case bulkDelete, export, `import`
        case listOperations, getOperation, deleteOperation, cancelOperation, waitOperation
        case listLocations, getLocation
        /// A method of Google's service that Hearth does not have.
        case absent(String)
    }

    /// - Parameters:
    ///   - segments: decoded or not; only their number and the fixed ones matter.
    /// - Returns: nil when no binding matches.
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
        case ("POST", "exportDocuments"): .export
        case ("POST", "importDocuments"): .import
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
        case ("POST", 6, "wait"): .waitOperation
        default: nil
        }
    }

    // MARK: Serving

    /// Serves a request.
    /// - Parameter permit: called before anything is done.
    /// - Returns: false, without calling `answer`, when the request does not belong to these services.
    func serve(
        _ request: RESTRequest, _ permit: Permit, _ answer: @escaping @Sendable (Result<[UInt8], Status>) -> Void
    ) -> Bool {
        guard let route = Self.route(method: request.method, segments: request.segments, verb: request.verb) else {
            return false
        }
        do throws(Status) {
            try serve(route, request, permit, answer)
        } catch {
            answer(.failure(error))
        }
        return true
    }

    private func serve(
        _ route: Route, _ request: RESTRequest, _ permit: Permit, _ answer: @escaping BytesAnswer
    ) throws(Status) {
        typealias Methods = AdminMethods
        let name = request.segments.joined(separator: "/")
        let parent = request.segments.dropLast().joined(separator: "/")
        let options = request.options
        func run<Request, Response>(
            _ method: AdminMethod<Request, Response>, _ message: Request
        ) throws(Status) {
            try perform(method, try Self.set(message, request), permit) { answer($0.map { $0.json(options) }) }
        }
        switch route {
        case .createIndex:
            let index = try IndexMessage(json: Self.object(request.body), at: "index")
            try run(Methods.createIndex, CreateIndexRequest(parent: parent, index: index))
        case .listIndexes: try run(Methods.listIndexes, ListIndexesRequest(parent: parent))
        case .getIndex: try run(Methods.getIndex, GetIndexRequest(name: name))
        case .deleteIndex: try run(Methods.deleteIndex, DeleteIndexRequest(name: name))
        case .listFields: try run(Methods.listFields, ListFieldsRequest(parent: parent))
        case .getField: try run(Methods.getField, GetFieldRequest(name: name))
        case .updateField:
            var field = try FieldMessage(json: Self.object(request.body), at: "field")
            field.name = name
            try run(Methods.updateField, UpdateFieldRequest(field: field))
        case .createDatabase:
            let database = try DatabaseMessage(json: Self.object(request.body), at: "database")
            try run(Methods.createDatabase, CreateDatabaseRequest(parent: parent, database: database))
        case .listDatabases: try run(Methods.listDatabases, ListDatabasesRequest(parent: parent))
        case .getDatabase: try run(Methods.getDatabase, GetDatabaseRequest(name: name))
        case .updateDatabase:
            var database = try DatabaseMessage(json: Self.object(request.body), at: "database")
            database.name = name
            try run(Methods.updateDatabase, UpdateDatabaseRequest(database: database))
        case .deleteDatabase: try run(Methods.deleteDatabase, DeleteDatabaseRequest(name: name))
        case .bulkDelete:
            var message = try BulkDeleteDocumentsRequest(json: Self.object(request.body))
            message.name = name
            try run(Methods.bulkDeleteDocuments, message)
        case .export:
            var message = try ExportDocumentsRequest(json: Self.object(request.body))
            message.name = name
            try run(Methods.exportDocuments, message)
        case .import:
            var message = try ImportDocumentsRequest(json: Self.object(request.body))
            message.name = name
            try run(Methods.importDocuments, message)
        case .waitOperation:
            var message = try WaitOperationRequest(json: Self.object(request.body))
            message.name = name
            try run(Methods.waitOperation, message)
        case .listOperations: try run(Methods.listOperations, ListOperationsRequest(name: parent))
        case .getOperation: try run(Methods.getOperation, GetOperationRequest(name: name))
        case .deleteOperation: try run(Methods.deleteOperation, DeleteOperationRequest(name: name))
        case .cancelOperation: try run(Methods.cancelOperation, CancelOperationRequest(name: name))
        case .listLocations: try run(Methods.listLocations, ListLocationsRequest(name: parent))
        case .getLocation: try run(Methods.getLocation, GetLocationRequest(name: name))
        case .absent(let what): throw .unimplemented("\(what) is not available in Hearth.")
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
