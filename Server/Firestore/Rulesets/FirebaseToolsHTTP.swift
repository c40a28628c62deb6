import HearthHost
import HearthModel
import HearthNetwork
import HearthWire

/// What Firebase's tools ask of further Google services on the way to a deployment:
///
///     GET  /v1/projects/P/services/NAME             whether an API is enabled
///     POST /v1/projects/P:testIamPermissions        which permissions the caller has
///     GET  /v1beta1/projects/P                      the project
///     POST /oauth2/v3/token                         an access token for a refresh token
///
/// All are for administrators. There are no tokens of our own: the refresh token is an administrator's credential, which is
/// returned as the access token.
package struct FirebaseToolsHTTP: HTTPExtension {
    private enum Route {
        case service(String)
        case permissions
        case project
    }

    private let service: FirestoreService
    private let observer: RequestObserver

    package init(service: FirestoreService, observer: RequestObserver) {
        self.service = service
        self.observer = observer
    }

    package func begin(_ exchange: HTTPExchange) -> Bool {
        let head = exchange.head
        if head.method == "POST", head.path == "/oauth2/v3/token" {
            giveToken(exchange)
            return true
        }
        guard let (route, raw) = Self.route(head) else { return false }
        let observation = observer.begin(.admin, .rest, remote: head.remoteAddress)
        guard let project = URLCoding.decode(raw), !project.isEmpty, !project.utf8.contains(UInt8(ascii: "/")) else {
            let call = RESTCall(exchange, isStreaming: false, options: JSONOptions(), observation: observation)
            call.finish(.invalidArgument("The path segment \"\(raw)\" names no project."))
            return true
        }
        service.authenticator.identify(head.firstValue("authorization"), on: exchange.loop) { result in
            let call = RESTCall(exchange, isStreaming: false, options: JSONOptions(), observation: observation)
            service.answer(call) { () throws(Status) in
                let identity = try result.get()
                try service.access.requireAdministrator(identity, of: .project(project), .reads)
                answer(route, project, identity, exchange, call)
            }
        }
        return true
    }

    /// - Returns: the route, and the project as it is encoded in the path.
    private static func route(_ head: HTTPRequestHead) -> (Route, String)? {
        let segments = URLCoding.segments(head.path)
        guard segments.count >= 4, segments[2] == "projects" else { return nil }
        let project = segments[3]
        switch (head.method, segments[1], segments.count) {
        case ("GET", "v1beta1", 4): return (.project, project)
        case ("GET", "v1", 6) where segments[4] == "services":
            return URLCoding.decode(segments[5]).map { (.service($0), project) }
        case ("POST", "v1", 4) where project.hasSuffix(":testIamPermissions"):
            return (.permissions, String(project.dropLast(":testIamPermissions".utf8.count)))
        default: return nil
        }
    }

    private func answer(
        _ route: Route, _ project: String, _ identity: Identity, _ exchange: HTTPExchange, _ call: RESTCall
    ) {
        exchange.collectBody(limitBytes: Limits.tokenRequestBytesMax) { body in
            service.answer(call) { () throws(Status) in
                let body = try body.get()
                var writer = JSONWriter()
                switch route {
                case .service(let name):
                    writer.raw("{\"name\":")
                    writer.string("projects/\(project)/services/\(name)")
                    writer.raw(",\"parent\":")
                    writer.string("projects/\(project)")
                    writer.raw(",\"state\":\"ENABLED\"}")
                case .project:
                    writer.raw("{\"name\":")
                    writer.string("projects/\(project)")
                    writer.raw(",\"projectId\":")
                    writer.string(project)
                    writer.raw(",\"projectNumber\":\"0\",\"state\":\"ACTIVE\"}")
                case .permissions:
                    writer.raw("{\"permissions\":[")
                    for (index, permission) in try Self.permissions(body, identity).enumerated() {
                        if index > 0 { writer.raw(",") }
                        writer.string(permission)
                    }
                    writer.raw("]}")
                }
                call.respond(writer.bytes)
            }
        }
    }

    /// Those of the permissions in a request that an administrator has.
    private static func permissions(_ body: [UInt8], _ identity: Identity) throws(Status) -> [String] {
        let object = try RequestObject(body: body, known: ["permissions"])
        let asked = try object.list("permissions") ?? []
        if asked.count > Limits.permissionsAskedMax {
            throw .invalidArgument("At most \(Limits.permissionsAskedMax) permissions can be asked for at once.")
        }
        var permissions: [String] = []
        for (index, value) in asked.enumerated() {
            guard case .string(let permission) = value else {
                throw RequestObject.wrong("permissions[\(index)]", "a string")
            }
            if case .administrator(let scope) = identity, scope.isReadOnly, !permission.hasSuffix(".get"),
                !permission.hasSuffix(".list")
            {
                continue
            }
            permissions.append(permission)
        }
        return permissions
    }

    // MARK: Tokens

    /// The answer to a wrong token is that of OAuth, on which Firebase's tools use the token as it is, and are refused later.
    /// Source: RFC 6749, 5.2 and 6.
    private func giveToken(_ exchange: HTTPExchange) {
        let observation = observer.begin(.admin, .rest, remote: exchange.head.remoteAddress)
        let call = RESTCall(exchange, isStreaming: false, options: JSONOptions(), observation: observation)
        exchange.collectBody(limitBytes: Limits.tokenRequestBytesMax) { body in
            service.answer(call) { () throws(Status) in
                let form = RequestForm(try body.get(), contentType: exchange.head.firstValue("content-type"))
                guard let form, form["grant_type"] == "refresh_token", let token = form["refresh_token"] else {
                    return refuse(exchange, call, "invalid_request", "Expected grant_type and refresh_token.")
                }
                service.authenticator.identify("Bearer \(token)", on: exchange.loop) { result in
                    guard case .success(.administrator) = result else {
                        return refuse(exchange, call, "invalid_grant", "It is not an administrator's credential.")
                    }
                    var writer = JSONWriter()
                    writer.raw("{\"access_token\":")
                    writer.string(token)
                    writer.raw(",\"expires_in\":3600,\"token_type\":\"Bearer\"}")
                    call.respond(writer.bytes)
                }
            }
        }
    }

    private func refuse(_ exchange: HTTPExchange, _ call: RESTCall, _ error: StaticString, _ description: String) {
        call.end(.invalidArgument(description))
        var writer = JSONWriter()
        writer.raw("{\"error\":\"\(error)\",\"error_description\":")
        writer.string(description)
        writer.raw("}")
        exchange.respond(
            status: 400,
            headers: [HTTPHeader("content-type", "application/json; charset=UTF-8")] + CORS.headers(for: exchange.head),
            body: writer.bytes)
    }
}
