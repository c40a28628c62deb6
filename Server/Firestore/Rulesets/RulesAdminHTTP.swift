import HearthConcurrency
import HearthHost
import HearthModel
import HearthNetwork
import HearthWire

/// The Firebase Rules API over REST, for administrators: rulesets, releases, tests.
package struct RulesAdminHTTP: HTTPExtension {
    private let requests: RulesRequests
    private let service: FirestoreService
    private let observer: RequestObserver

    package init(library: RulesLibrary, service: FirestoreService, observer: RequestObserver) {
        requests = RulesRequests(library: library)
        self.service = service
        self.observer = observer
    }

    package func begin(_ exchange: HTTPExchange) -> Bool {
        // Most requests are for documents.
        if RESTRouter.isOfDocuments(exchange.head.path) { return false }
        let request: RulesRequests.Request
        do throws(Status) {
            guard let found = try RulesRequests.route(method: exchange.head.method, path: exchange.head.path) else {
                return false
            }
            request = RulesRequests.Request(route: found.route, project: found.project)
        } catch {
            call(exchange, .nobody).finish(error)
            return true
        }
        service.authenticator.identify(exchange.head.firstValue("authorization"), on: exchange.loop) { result in
            do throws(Status) {
                let identity = try result.get()
                try service.access.requireAdministrator(identity, of: .project(request.project), request.route.effect)
                collect(exchange, request, call(exchange, identity))
            } catch {
                call(exchange, .nobody).finish(error)
            }
        }
        return true
    }

    private func call(_ exchange: HTTPExchange, _ identity: Identity) -> RESTCall {
        RESTCall(
            exchange, isStreaming: false, options: JSONOptions(), identity: identity,
            observation: observer.begin(.admin, .rest, remote: exchange.head.remoteAddress))
    }

    private func collect(_ exchange: HTTPExchange, _ request: RulesRequests.Request, _ call: RESTCall) {
        guard let parameters = URLCoding.parameters(exchange.head.query) else {
            return call.finish(.invalidArgument("The query of the URL can't be decoded."))
        }
        var request = request
        request.parameters = parameters.filter { !RESTRouter.isSystemParameter($0.name) }
        exchange.collectBody(limitBytes: Limits.requestSizeBytesMax, for: call.requester) { [request] result in
            service.answer(call) { () throws(Status) in
                // Its memory is counted; the work itself waits for the disk.
                try service.large.run(try result.get(), call) { body, call throws(Status) in
                    run(request, body, call)
                }
            }
        }
    }

    private func run(_ request: RulesRequests.Request, _ body: [UInt8], _ call: any ServiceCall) {
        var request = request
        request.body = body
        service.pool.runInSlices(
            .long, for: call.requester, cancellation: call.cancellation,
            refused: { status in call.onLoop { call.finish(status) } }
        ) { [request] slice in
            let result = Result { () throws(Status) in
                try requests.answer(request) { () throws(Status) in
                    if call.cancellation.isCancelled { throw Status(.cancelled, "The client has disconnected.") }
                    slice.giveWay()
                }
            }
            call.onLoop {
                switch result {
                case .success(let body): call.respond(body)
                case .failure(let status): call.finish(status)
                }
            }
        }
    }
}
