import HearthWire
import HearthHost
import HearthFirestoreServer
import HearthModel
import HearthNetwork

/// `GET /metrics`: for administrators, because it names projects and databases; for everybody in local development.
struct MetricsHTTP: HTTPExtension {
    let metrics: ServerMetrics
    let isOpen: Bool
    let authenticator: Authenticator
    let access: AccessControl

    func begin(_ exchange: HTTPExchange) -> Bool {
        guard exchange.head.path == "/metrics", exchange.head.method == "GET" || exchange.head.method == "HEAD" else {
            return false
        }
        if isOpen {
            answer(exchange)
            return true
        }
        authenticator.identify(exchange.head.firstValue("authorization"), on: exchange.loop) { [self] result in
            do throws(Status) {
                try access.requireAdministrator(try result.get(), of: .server, .reads)
                answer(exchange)
            } catch {
                RESTCall(exchange, isStreaming: false, options: JSONOptions()).finish(error)
            }
        }
        return true
    }

    private func answer(_ exchange: HTTPExchange) {
        exchange.respond(
            status: 200, headers: [HTTPHeader("content-type", MetricsWriter.contentType)], body: metrics.string())
    }
}
