import HearthHost
import HearthModel
import HearthNetwork
import HearthTree

/// The Realtime Database over REST: everything whose path ends in `.json` or `/.upload`.
///
/// The checks run in this order: the address and its parameters, the identity, the namespace, the body, the rules,
/// missing indexes. Source: the REST reference of the Realtime Database.
package struct RealtimeHTTP: HTTPExtension {
    let service: RealtimeService
    let observer: RequestObserver

    package init(service: RealtimeService, observer: RequestObserver) {
        self.service = service
        self.observer = observer
    }

    package func begin(_ exchange: HTTPExchange) -> Bool {
        let head = exchange.head
        if !RealtimeResource.isIn(head.path) { return refuseUnmarked(exchange) }
        if isOfOthers(head) { return false }
        var parameters = RealtimeParameters()
        var failure: Status?
        do throws(Status) { parameters = try RealtimeParameters(head.query) } catch { failure = error }
        let method = method(of: head, parameters)
        let call = RealtimeCall(
            exchange, parameters, method: method,
            observation: observer.begin(observed(method, head.path), .rest, remote: head.remoteAddress))
        if let failure {
            call.failAfterBody(failure)
            return true
        }
        do throws(Status) {
            try begin(call, try RealtimeResource(head.path))
        } catch {
            call.failAfterBody(error)
        }
        return true
    }

    /// Paths of other services that may end in the same way, unless the address names a namespace.
    private func isOfOthers(_ head: HTTPRequestHead) -> Bool {
        head.path.hasPrefix("/v1/projects/") && !namesNamespace(head)
    }

    private func namesNamespace(_ head: HTTPRequestHead) -> Bool {
        if RealtimeName.inHost(head.authority) != nil { return true }
        return head.query.map { ("&" + $0).contains("&ns=") } ?? false
    }

    /// A request with a namespace and without `.json` is probably a mistake.
    private func refuseUnmarked(_ exchange: HTTPExchange) -> Bool {
        let head = exchange.head
        // Others answer the socket and its substitute.
        if head.path == "/.ws" || head.path == "/.lp" || isOfOthers(head) || !namesNamespace(head) { return false }
        let call = RealtimeCall(
            exchange, RealtimeParameters(), method: head.method,
            observation: observer.begin(.other, .rest, remote: head.remoteAddress))
        call.failAfterBody(.notFound("append .json to your request URI to use the REST API."))
        return true
    }

    /// Clients that cannot send some methods name them in a header or a parameter of a POST.
    private func method(of head: HTTPRequestHead, _ parameters: RealtimeParameters) -> String {
        guard head.method == "POST" else { return head.method }
        return head.firstValue("x-http-method-override")?.uppercased() ?? parameters.methodOverride ?? "POST"
    }

    private static func writes(_ method: String) -> Bool { method != "GET" && method != "HEAD" }

    private func observed(_ method: String, _ path: String) -> RequestMetrics.Method {
        if path.hasPrefix("/.settings/") || path.hasPrefix("/.inspect/") { return .realtimeAdmin }
        return Self.writes(method) ? .realtimeWrite : .realtimeRead
    }

    // MARK: Requests

    private func begin(_ call: RealtimeCall, _ target: RealtimeResource) throws(Status) {
        let step: @Sendable (RealtimeNamespace, RealtimeIdentity) -> Void
        switch (target, call.method) {
        case (.data(let path), "GET"), (.data(let path), "HEAD"):
            let query = try call.parameters.query()
            if call.wantsEvents, call.method == "GET" {
                step = { [service] namespace, identity in
                    let target = RealtimeTarget(path: path, query: query)
                    RealtimeEventStream(call, target, identity, namespace, service).begin(identity)
                }
                break
            }
            step = { [service] namespace, identity in
                RealtimeReading(
                    service: service, call: call, namespace: namespace, identity: identity, path: path, query: query
                ).begin()
            }
        case (.data(let path), "PUT"), (.data(let path), "PATCH"), (.data(let path), "POST"),
            (.data(let path), "DELETE"):
            try Self.refuseOnce(call)
            let condition = try RealtimeWriting.condition(of: call)
            if condition != nil, path.last == .priority {
                throw .invalidArgument("if-match is not supported for priorities")
            }
            step = { [service] namespace, identity in
                RealtimeWriting(
                    service: service, call: call, namespace: namespace, identity: identity, path: path,
                    condition: condition
                ).begin()
            }
        case (.upload(let path), "POST"):
            guard let form = UploadForm(contentType: call.head.firstValue("content-type")) else {
                throw .invalidArgument("Expected multipart/form-data with a boundary, and a file in it.")
            }
            try Self.refuseOnce(call)
            // An upload is unconditional, as every POST.
            _ = try RealtimeWriting.condition(of: call)
            step = { [service] namespace, identity in
                RealtimeWriting(
                    service: service, call: call, namespace: namespace, identity: identity, path: path,
                    condition: nil, form: form
                ).begin()
            }
        case (.rules, "GET"), (.rules, "HEAD"), (.rules, "PUT"),
            (.databases, "GET"), (.databases, "HEAD"):
            let settings = RealtimeSettings(service: service, call: call)
            step = { namespace, identity in settings.serve(target, namespace, identity) }
        case (.unknown, _): throw .notFound("There is nothing at \(call.head.path).")
        default: throw Status(.unimplemented, "The method \(call.method) is not supported here.")
        }
        identify(call, then: step)
    }

    /// The sender of such a request relies on it.
    private static func refuseOnce(_ call: RealtimeCall) throws(Status) {
        if call.head.values(OnceHeader.name).isEmpty { return }
        throw .invalidArgument(
            "'\(OnceHeader.name)' is for commits of Cloud Firestore; here a transaction can note what it has done.")
    }

    private func identify(
        _ call: RealtimeCall, then step: @escaping @Sendable (RealtimeNamespace, RealtimeIdentity) -> Void
    ) {
        let head = call.head
        let parameters = call.parameters
        let credential = head.firstValue("authorization").map { RealtimeCredential.header($0) } ?? parameters.credential
        let name = RealtimeAddress.namespace(head, named: parameters.namespace, standard: service.standardName)
        let project = service.access.project(ofNamespace: name)
        service.authenticator.identify(credential, of: project, override: parameters.override, on: call.loop) {
            [service] result in
            do throws(Status) {
                let identity = try result.get()
                call.requester = identity.requester(at: head.remoteAddress, connection: head.connectionNumber)
                // A read creates no namespace, except where every namespace exists on first use.
                let mayCreate =
                    service.isEmulator || (Self.writes(call.method) && service.access.mayCreate(identity, name))
                service.namespace(name, mayCreate: mayCreate, on: call.loop) { found in
                    switch found {
                    case .success(let namespace): step(namespace, identity)
                    case .failure(let status): call.failAfterBody(status)
                    }
                }
            } catch {
                call.failAfterBody(error)
            }
        }
    }
}
