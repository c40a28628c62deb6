import HearthHost
import HearthModel
import HearthNetwork
import HearthDocuments
import HearthWire

/// Bundles over HTTP:
///
///     GET /bundles/NAME                                  a bundle of hearth.json, or saved in the server's project
///     GET /bundles/PROJECT/DATABASE/NAME                 a bundle that is saved in a database
///     GET /v1/projects/P/databases/D/bundles             the saved definitions
///     GET, PUT, DELETE /v1/projects/P/databases/D/bundles/NAME
///
/// A bundle contains the documents of its definition, independent of security rules. Defining one therefore needs an
/// administrator, and so does fetching one, unless the definition is public.
package struct BundleHTTP: HTTPExtension {
    let service: FirestoreService
    let cache: BundleCache
    /// The definitions of `hearth.json`.
    let definitions: [String: BundleDefinition]
    /// The project of URLs that name none.
    let project: String
    let observer: RequestObserver

    package init(
        service: FirestoreService, keeper cache: BundleCache, definitions: [String: BundleDefinition], project: String,
        observer: RequestObserver
    ) {
        self.service = service
        self.cache = cache
        self.definitions = definitions
        self.project = project
        self.observer = observer
    }

    package func begin(_ exchange: HTTPExchange) -> Bool {
        let path = exchange.head.path
        if path.hasPrefix("/bundles/") {
            fetch(exchange, URLCoding.segments(path).dropFirst(2).map { URLCoding.decode($0) ?? "" })
            return true
        }
        if RESTRouter.isOfDocuments(path) || !path.hasPrefix("/v1/projects/") { return false }
        let segments = URLCoding.segments(path)
        guard segments.count == 7 || segments.count == 8, segments[4] == "databases", segments[6] == "bundles" else {
            return false
        }
        administer(exchange, segments.map { URLCoding.decode($0) ?? "" })
        return true
    }

    // MARK: Fetching

    private func fetch(_ exchange: HTTPExchange, _ segments: [String]) {
        guard exchange.head.method == "GET" || exchange.head.method == "HEAD" else {
            return exchange.respond(
                status: 405, headers: [HTTPHeader("allow", "GET, HEAD, OPTIONS")] + CORS.headers(for: exchange.head),
                body: [])
        }
        service.authenticator.identify(exchange.head.firstValue("authorization"), on: exchange.loop) {
            [self] result in
            let observation = observer.begin(.bundle, .rest, remote: exchange.head.remoteAddress)
            // Errors have the same form as everywhere.
            let call = RESTCall(exchange, isStreaming: false, options: JSONOptions(), observation: observation)
            let identity = Result { () throws(Status) in try result.get() }
            service.answer(call) { () throws(Status) in
                let name = try database(segments)
                // A definition of the configuration names a database that may be created later. Any other database must
                // exist, unless the caller may create it.
                let configured = segments.count == 1 ? segments.last.flatMap { definitions[$0] } : nil
                var mayCreate = true
                if let configured {
                    try permit(identity, configured, segments, name)
                } else {
                    mayCreate = self.mayCreate(name, identity)
                }
                service.registry.use(name, mayCreate: mayCreate) { opened in
                    call.onLoop {
                        service.answer(call) { () throws(Status) in
                            if case .failure(let status) = opened, status.code == .notFound {
                                try permit(identity, nil, segments, name)
                                throw SavedBundles.missing(segments.last ?? "")
                            }
                            try fetch(exchange, segments, identity, try opened.get(), call)
                        }
                    }
                }
            }
        }
    }

    private func fetch(
        _ exchange: HTTPExchange, _ segments: [String], _ identity: Result<Identity, Status>, _ database: Database,
        _ call: RESTCall
    ) throws(Status) {
        let found = try definition(segments, in: database)
        try permit(identity, found, segments, found?.database ?? database.name)
        guard let definition = found else { throw SavedBundles.missing(segments.last ?? "") }
        cache.bundle(definition, database, for: call.requester) { result in
            call.onLoop {
                switch result {
                case .success(let answer): BundleAnswer(answer, definition).send(exchange, call, cache.readers)
                case .failure(let status): call.finish(status)
                }
            }
        }
    }

    private func mayCreate(_ name: DatabaseName, _ identity: Result<Identity, Status>) -> Bool {
        // Public bundles are for everybody, also for clients that have no other access.
        do throws(Status) { return try service.access.mayCreate(name, try identity.get()) } catch { return false }
    }

    /// - Parameter definition: nil where there is none.
    /// - Throws: PERMISSION_DENIED for those who may not read bundles that are not public: the same where there is none,
    ///   so that nobody learns the names of such bundles.
    private func permit(
        _ identity: Result<Identity, Status>, _ definition: BundleDefinition?, _ segments: [String],
        _ database: DatabaseName
    ) throws(Status) {
        if definition?.isPublic == true { return }
        do throws(Status) {
            try service.access.requireAdministrator(try identity.get(), of: .database(database), .reads)
        } catch {
            if error.code != .permissionDenied { throw error }
            throw Status(
                .permissionDenied,
                "There is no public bundle \"\(segments.last ?? "")\"; others need an administrator's credential.")
        }
    }

    /// The database of a bundle's URL, or the one in which its definition is saved.
    private func database(_ segments: [String]) throws(Status) -> DatabaseName {
        let name = segments.last ?? ""
        guard segments.count == 1 || segments.count == 3, BundleDefinition.isName(name) else {
            throw SavedBundles.missing(name)
        }
        if segments.count == 3 { return DatabaseName(project: segments[0], database: segments[1]) }
        return definitions[name]?.database ?? DatabaseName(project: project)
    }

    private func definition(_ segments: [String], in database: Database) throws(Status) -> BundleDefinition? {
        let name = segments.last ?? ""
        if segments.count == 1, let definition = definitions[name] { return definition }
        return try SavedBundles(database: database).definition(name)
    }

    // MARK: Definitions

    private func administer(_ exchange: HTTPExchange, _ segments: [String]) {
        service.authenticator.identify(exchange.head.firstValue("authorization"), on: exchange.loop) {
            [self] result in
            let call = RESTCall(
                exchange, isStreaming: false, options: JSONOptions(),
                observation: observer.begin(.admin, .rest, remote: exchange.head.remoteAddress))
            exchange.collectBody(limitBytes: Limits.bundleDefinitionSizeBytesMax + 1) { body in
                service.answer(call) { () throws(Status) in
                    let database = DatabaseName(project: segments[3], database: segments[5])
                    let method = exchange.head.method
                    try service.access.requireAdministrator(
                        try result.get(), of: .database(database),
                        method == "GET" || method == "HEAD" ? .reads : .writes)
                    let name = segments.count == 8 ? segments[7] : nil
                    let body = try body.get()
                    service.registry.use(database, mayCreate: true) { opened in
                        call.onLoop {
                            service.answer(call) { () throws(Status) in
                                try administer(method, try opened.get(), name, body, call)
                            }
                        }
                    }
                }
            }
        }
    }

    private func administer(
        _ method: String, _ opened: Database, _ name: String?, _ body: [UInt8], _ call: RESTCall
    ) throws(Status) {
        let database = opened.name
        let saved = SavedBundles(database: opened)
        switch (method, name) {
        case ("GET", nil):
            let list = try saved.all().map { Self.json($0.name, database, $0.string) }
            call.respond(
                list.isEmpty
                    ? Array("{}".utf8)
                    : Array("{\"bundles\":[".utf8) + list.joined(separator: Array(",".utf8)) + Array("]}".utf8))
        case ("GET", let name?):
            guard let definition = try saved.definition(name) else { throw SavedBundles.missing(name) }
            call.respond(Self.json(name, database, definition.string))
        case ("PUT", let name?):
            guard BundleDefinition.isName(name) else {
                throw .invalidArgument("A bundle's name has 1 to 100 letters, digits, \"-\", \"_\" and \".\".")
            }
            try saved.save(name, body) { result in
                call.onLoop {
                    switch result {
                    case .success(let definition): call.respond(Self.json(name, database, definition.string))
                    case .failure(let status): call.finish(status)
                    }
                }
            }
        case ("DELETE", let name?):
            saved.delete(name) { result in
                call.onLoop {
                    if case .failure(let status) = result { call.finish(status) } else { call.respond(EmptyMessage()) }
                }
            }
        default: throw .unimplemented("Definitions of bundles are read with GET, saved with PUT, deleted with DELETE.")
        }
    }

    /// `{"name": "projects/P/databases/D/bundles/NAME", "definition": {…}}`
    private static func json(_ name: String, _ database: DatabaseName, _ definition: [UInt8]) -> [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"name\":")
        writer.string("\(database.string)/bundles/\(name)")
        writer.raw(",\"definition\":")
        writer.bytes += definition
        writer.raw("}")
        return writer.bytes
    }
}
