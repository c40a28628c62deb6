import HearthConcurrency
import HearthDocuments
import HearthHost
import HearthModel
import HearthNetwork
import HearthWire

/// The change feed over HTTP, for administrators:
///
///     GET /hearth/v1/changes                     of the server's project
///     GET /hearth/v1/changes/PROJECT/DATABASE
package struct ChangesHTTP: HTTPExtension {
    private let service: FirestoreService
    private let readers: ChangeReaders
    /// The project of a URL that names none.
    private let project: String
    private let observer: RequestObserver
    private let clock: any Clock
    private let heartbeatMilliseconds: Int

    private static let root = "/hearth/v1/changes"

    package init(
        service: FirestoreService, readers: ChangeReaders, project: String, observer: RequestObserver,
        clock: any Clock = SystemClock(), heartbeatMilliseconds: Int = Limits.changeHeartbeatSeconds * 1000
    ) {
        self.service = service
        self.readers = readers
        self.project = project
        self.observer = observer
        self.clock = clock
        self.heartbeatMilliseconds = heartbeatMilliseconds
    }

    package func begin(_ exchange: HTTPExchange) -> Bool {
        let path = exchange.head.path
        guard path.hasPrefix(Self.root), path.utf8.count == Self.root.utf8.count || path.hasPrefix(Self.root + "/")
        else { return false }
        guard exchange.head.method == "GET" else {
            exchange.respond(
                status: 405, headers: [HTTPHeader("allow", "GET, OPTIONS")] + CORS.headers(for: exchange.head), body: []
            )
            return true
        }
        service.authenticator.identify(exchange.head.firstValue("authorization"), on: exchange.loop) { result in
            let call = RESTCall(
                exchange, isStreaming: false, options: JSONOptions(),
                observation: observer.begin(.changes, .rest, remote: exchange.head.remoteAddress))
            service.answer(call) { () throws(Status) in try open(exchange, call, try result.get()) }
        }
        return true
    }

    private func open(_ exchange: HTTPExchange, _ call: RESTCall, _ identity: Identity) throws(Status) {
        let head = exchange.head
        let name = try database(head.path)
        try service.access.requireAdministrator(
            identity, of: .database(name), .reads, "The change feed needs admin authentication.")
        let parameters = try ChangeParameters(
            query: head.query, lastEventID: head.firstValue("last-event-id"), accept: head.firstValue("accept"))
        let requester = identity.requester(at: head.remoteAddress, connection: head.connectionNumber)
        // The default database exists before anything is written to it.
        let isDefault = UTF8Order.equal(name.database, DatabaseName.defaultDatabase)
        service.registry.use(name, mayCreate: isDefault) { opened in
            call.onLoop {
                service.answer(call) { () throws(Status) in
                    let database = try opened.get()
                    if call.isFinished { return }
                    try ChangeStream(
                        exchange, call, parameters, requester, of: database, service, readers,
                        heartbeatMilliseconds: heartbeatMilliseconds, clock: clock
                    ).begin(identity)
                }
            }
        }
    }

    /// - Throws: NOT_FOUND for other paths, INVALID_ARGUMENT for names that no database has.
    private func database(_ path: String) throws(Status) -> DatabaseName {
        let segments = URLCoding.segments(String(path.dropFirst(Self.root.count))).dropFirst()
        if segments.isEmpty { return DatabaseName(project: project) }
        guard segments.count == 2 else {
            throw .notFound("The change feed is at \(Self.root)/PROJECT/DATABASE.")
        }
        var names: [String] = []
        for segment in segments {
            guard let name = URLCoding.decode(segment) else {
                throw .invalidArgument("The path segment \"\(segment)\" can't be decoded.")
            }
            names.append(name)
        }
        return try DatabaseName(parsing: "projects/\(names[0])/databases/\(names[1])")
    }

    /// A position that is too old is gone for good: with 400 clients would look for a fault of theirs.
    static func httpStatus(_ status: Status) -> Int {
        status.code == .outOfRange ? 410 : status.code.httpStatus
    }
}
