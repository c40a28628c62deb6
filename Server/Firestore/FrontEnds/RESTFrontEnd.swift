import HearthHost
import HearthModel
import HearthNetwork
import HearthDocuments
import HearthWire

/// Handles HTTP requests: the REST form of the service, health, and the routes for local development.
package struct RESTFrontEnd: HTTPHandler {
    private let service: FirestoreService
    private let shutdown: @Sendable () -> Void
    private let extensions: [any HTTPExtension]
    private let observer: RequestObserver
    /// Whether everybody may clear a database or end the server.
    private let servesEmulatorRoutes: Bool
    /// Whether the disk accepts writes.
    private let health: StorageHealth
    /// The pages that may use the server; nil for all.
    private let origins: OriginPolicy?

    package init(
        _ service: FirestoreService, extensions: [any HTTPExtension], observer: RequestObserver,
        servesEmulatorRoutes: Bool, origins: OriginPolicy?, health: StorageHealth,
        shutdown: @escaping @Sendable () -> Void
    ) {
        self.service = service
        self.extensions = extensions
        self.observer = observer
        self.servesEmulatorRoutes = servesEmulatorRoutes
        self.health = health
        self.origins = origins
        self.shutdown = shutdown
    }

    package func begin(_ exchange: HTTPExchange) {
        let head = exchange.head
        if let reason = origins?.refusal(head) { return refuse(exchange, reason) }
        if head.method == "OPTIONS" {
            return exchange.respond(status: 200, headers: CORS.preflight(for: head), body: [])
        }
        for handler in extensions where handler.begin(exchange) { return }
        switch (head.method, head.path) {
        case ("GET", "/"), ("HEAD", "/"), ("GET", "/healthz"): return string(exchange, 200, "Ok\n")
        case ("GET", "/readyz"): return ready(exchange)
        case ("POST", "/shutdown") where servesEmulatorRoutes:
            string(exchange, 200, "Shutting down.\n")
            return shutdown()
        case ("DELETE", _) where servesEmulatorRoutes && head.path.hasPrefix("/emulator/v1/"): return clear(exchange)
        default: break
        }
        do throws(Status) {
            guard let route = try RESTRouter.route(method: head.method, path: head.path) else {
                // The body is read before the response: some clients lose a response that ends their upload.
                return exchange.collectBody(limitBytes: Limits.requestSizeBytesMax) { _ in
                    string(exchange, 404, "Not Found\n")
                }
            }
            try serve(route, exchange)
        } catch {
            RESTCall(exchange, isStreaming: false, options: JSONOptions()).finish(error)
        }
    }

    /// Without the header fields that would let the page read the response: its developer sees it in the browser's
    /// tools.
    private func refuse(_ exchange: HTTPExchange, _ reason: String) {
        exchange.respond(
            status: 403, headers: [HTTPHeader("content-type", "application/json; charset=UTF-8")],
            body: ErrorBody.json(Status(.permissionDenied, reason)))
    }

    private func string(_ exchange: HTTPExchange, _ status: Int, _ body: String) {
        let headers = [HTTPHeader("content-type", "text/plain; charset=utf-8")] + CORS.headers(for: exchange.head)
        exchange.respond(status: status, headers: headers, body: Array(body.utf8))
    }

    private func ready(_ exchange: HTTPExchange) {
        if let failure = health.failure { return string(exchange, 503, failure + "\n") }
        service.readiness.ask(on: exchange.loop) { status in
            if let status { string(exchange, 503, status.message + "\n") } else { string(exchange, 200, "Ok\n") }
        }
    }

    /// `DELETE /emulator/v1/projects/P/databases/D/documents`
    private func clear(_ exchange: HTTPExchange) {
        let segments = URLCoding.segments(exchange.head.path).map { URLCoding.decode($0) ?? "" }
        guard segments.count == 8, segments[3] == "projects", segments[5] == "databases", segments[7] == "documents"
        else {
            return string(exchange, 404, "Not Found\n")
        }
        let call = RESTCall(exchange, isStreaming: false, options: JSONOptions())
        service.answer(call) { () throws(Status) in
            let name = DatabaseName(project: segments[4], database: segments[6])
            guard let database = try service.database(name, for: call, again: { clear(exchange) }) else { return }
            // The database was never written: there is nothing to clear, and nothing to create.
            if !database.exists { return call.respond(EmptyMessage()) }
            database.clear { result in
                call.onLoop {
                    switch result {
                    case .success: call.respond(EmptyMessage())
                    case .failure(let status): call.finish(status)
                    }
                }
            }
        }
    }

    // MARK: Methods

    private func serve(_ route: RESTRouter.Route, _ exchange: HTTPExchange) throws(Status) {
        guard let parameters = URLCoding.parameters(exchange.head.query) else {
            throw .invalidArgument("The query of the URL can't be decoded.")
        }
        let options = JSONOptions(
            enumsAsNumbers: parameters.contains { $0.name == "$alt" && $0.value.contains("enum-encoding=int") })
        var isStreaming = false
        if case .custom(let method, _, _) = route { isStreaming = method.isStreaming }
        service.authenticator.identify(exchange.head.firstValue("authorization"), on: exchange.loop) {
            [self, isStreaming] result in
            let observation = observer.begin(route.observed, .rest, remote: exchange.head.remoteAddress)
            switch result {
            case .success(let identity):
                let call = RESTCall(
                    exchange, isStreaming: isStreaming, options: options, identity: identity, observation: observation)
                serve(route, parameters, exchange, call)
            case .failure(let status):
                RESTCall(exchange, isStreaming: isStreaming, options: options, observation: observation).finish(status)
            }
        }
    }

    private func serve(
        _ route: RESTRouter.Route, _ parameters: Parameters, _ exchange: HTTPExchange, _ call: RESTCall
    ) {
        exchange.collectBody(limitBytes: Limits.requestSizeBytesMax * 2, for: call.requester) { [self] result in
            service.answer(call) { () throws(Status) in
                let body = try result.get()
                let parameters = parameters.filter { !RESTRouter.isSystemParameter($0.name) }
                try service.large.run(body, call) { body, call throws(Status) in
                    try perform(route, parameters, body, call)
                }
            }
        }
    }

    private typealias Parameters = [(name: String, value: String)]

    private func perform(
        _ route: RESTRouter.Route, _ parameters: Parameters, _ body: [UInt8], _ call: any ServiceCall
    ) throws(Status) {
        switch route {
        case .getDocument(let name):
            var request = GetDocumentRequest()
            try Self.set(parameters, in: &request)
            request.name = name
            service.getDocument(request, call)
        case .listDocuments(let parent, let collectionID):
            var request = ListDocumentsRequest()
            try Self.set(parameters, in: &request)
            request.parent = parent
            request.collectionId = collectionID
            service.listDocuments(request, call)
        case .createDocument(let parent, let collectionID):
            var request = CreateDocumentRequest()
            try Self.set(parameters, in: &request)
            request.parent = parent
            request.collectionId = collectionID
            request.document = body.isEmpty ? DocumentMessage() : try DocumentMessage(json: body, at: "document")
            service.createDocument(request, sizeBytes: body.count, call)
        case .updateDocument(let name):
            var request = UpdateDocumentRequest()
            try Self.set(parameters, in: &request)
            var document = body.isEmpty ? DocumentMessage() : try DocumentMessage(json: body, at: "document")
            document.name = name
            request.document = document
            service.updateDocument(request, sizeBytes: body.count, call)
        case .deleteDocument(let name):
            var request = DeleteDocumentRequest()
            try Self.set(parameters, in: &request)
            request.name = name
            service.deleteDocument(request, sizeBytes: body.count, call)
        case .custom(let method, let database, let parent):
            try perform(method, database, parent, parameters, body.isEmpty ? Array("{}".utf8) : body, call)
        }
    }

    private static func set(_ parameters: Parameters, in request: inout some WireMessage) throws(Status) {
        for (name, value) in parameters { try request.set(parameter: name, value) }
    }

    private func perform(
        _ method: RESTRouter.CustomMethod, _ database: String, _ parent: String, _ parameters: Parameters,
        _ body: [UInt8],
        _ call: any ServiceCall
    ) throws(Status) {
        func decode<Request: WireMessage>(_: Request.Type) throws(Status) -> Request {
            var request = try Request(json: body)
            try Self.set(parameters, in: &request)
            return request
        }
        switch method {
        case .batchGet:
            var request = try decode(BatchGetDocumentsRequest.self)
            request.database = database
            service.batchGetDocuments(request, call)
        case .beginTransaction:
            var request = try decode(BeginTransactionRequest.self)
            request.database = database
            service.beginTransaction(request, call)
        case .commit:
            var request = try decode(CommitRequest.self)
            request.database = database
            service.commit(request, sizeBytes: body.count, call)
        case .rollback:
            var request = try decode(RollbackRequest.self)
            request.database = database
            service.rollback(request, call)
        case .batchWrite:
            var request = try decode(BatchWriteRequest.self)
            request.database = database
            service.batchWrite(request, sizeBytes: body.count, call)
        case .runQuery:
            var request = try decode(RunQueryRequest.self)
            request.parent = parent
            service.runQuery(request, call)
        case .runAggregationQuery:
            var request = try decode(RunAggregationQueryRequest.self)
            request.parent = parent
            service.runAggregationQuery(request, call)
        case .partitionQuery:
            var request = try decode(PartitionQueryRequest.self)
            request.parent = parent
            service.partitionQuery(request, call)
        case .listCollectionIds:
            var request = try decode(ListCollectionIdsRequest.self)
            request.parent = parent
            service.listCollectionIds(request, call)
        case .executePipeline: service.executePipeline(call)
        case .write, .listen:
            call.finish(.unimplemented("Method google.firestore.v1.Firestore/\(method) is not served over REST."))
        }
    }
}

extension RESTRouter.Route {
    /// The request's method in the metrics.
    fileprivate var observed: RequestMetrics.Method {
        switch self {
        case .getDocument: .getDocument
        case .listDocuments: .listDocuments
        case .createDocument: .createDocument
        case .updateDocument: .updateDocument
        case .deleteDocument: .deleteDocument
        case .custom(let method, _, _):
            switch method {
            case .batchGet: .batchGetDocuments
            case .beginTransaction: .beginTransaction
            case .commit: .commit
            case .rollback: .rollback
            case .batchWrite: .batchWrite
            case .executePipeline: .executePipeline
            case .write: .write
            case .listen: .listen
            case .runQuery: .runQuery
            case .runAggregationQuery: .runAggregationQuery
            case .partitionQuery: .partitionQuery
            case .listCollectionIds: .listCollectionIds
            }
        }
    }
}
