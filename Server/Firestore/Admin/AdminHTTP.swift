import HearthHost
import HearthModel
import HearthNetwork
import HearthWire

/// The REST routes of the admin services.
package struct AdminHTTP: HTTPExtension {
    let admin: AdminService
    let observer: RequestObserver
    let authenticator: Authenticator
    let access: AccessControl

    package init(admin: AdminService, observer: RequestObserver, authenticator: Authenticator, access: AccessControl) {
        self.admin = admin
        self.observer = observer
        self.authenticator = authenticator
        self.access = access
    }

    package func begin(_ exchange: HTTPExchange) -> Bool {
        let path = exchange.head.path
        // Most requests are for documents.
        if RESTRouter.isOfDocuments(path) { return false }
        guard path.hasPrefix("/v1/projects/") else { return false }
        var raw = Array(URLCoding.segments(path).dropFirst(2))
        var verb = ""
        if exchange.head.method == "POST", let last = raw.last, let colon = last.lastIndex(of: ":") {
            verb = String(last[last.index(after: colon)...])
            raw[raw.count - 1] = String(last[..<colon])
        }
        guard AdminService.route(method: exchange.head.method, segments: raw, verb: verb) != nil else { return false }
        authenticator.identify(exchange.head.firstValue("authorization"), on: exchange.loop) { [raw, verb] result in
            let call = RESTCall(
                exchange, isStreaming: false, options: options(exchange),
                observation: observer.begin(.admin, .rest, remote: exchange.head.remoteAddress))
            do throws(Status) {
                let identity = try result.get()
                // Only an administrator's body is collected. The method checks again, for the resource that its message
                // names and for its effect.
                try access.requireAdministrator(identity, of: .project(URLCoding.decode(raw[1]) ?? ""), .reads)
                try serve(exchange, raw, verb, identity, call)
            } catch {
                call.finish(error)
            }
        }
        return true
    }

    private func options(_ exchange: HTTPExchange) -> JSONOptions {
        JSONOptions(
            enumsAsNumbers: exchange.head.query?.contains("enum-encoding") == true
                && exchange.head.query?.contains("int") == true)
    }

    private func serve(
        _ exchange: HTTPExchange, _ raw: [String], _ verb: String, _ identity: Identity, _ call: RESTCall
    ) throws(Status) {
        guard let parameters = URLCoding.parameters(exchange.head.query) else {
            throw .invalidArgument("The query of the URL can't be decoded.")
        }
        var segments: [String] = []
        for segment in raw {
            guard let decoded = URLCoding.decode(segment) else {
                throw .invalidArgument("The path segment \"\(segment)\" can't be decoded.")
            }
            segments.append(decoded)
        }
        var request = AdminService.RESTRequest(
            method: exchange.head.method, segments: segments, verb: verb,
            parameters: parameters.filter { !RESTRouter.isSystemParameter($0.name) })
        if case .json(let options) = call.format { request.options = options }
        exchange.collectBody(limitBytes: Limits.requestSizeBytesMax) { [admin, access] result in
            switch result {
            case .failure(let status): call.finish(status)
            case .success(let body):
                request.body = body
                let permit: AdminService.Permit = { resource, effect throws(Status) in
                    try access.requireAdministrator(identity, of: resource, effect)
                }
                _ = admin.serve(request, permit) { result in
                    call.onLoop {
                        switch result {
                        case .success(let body): call.respond(body)
                        case .failure(let status): call.finish(status)
                        }
                    }
                }
            }
        }
    }
}
