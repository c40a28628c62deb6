import HearthHost
import HearthModel
import HearthNetwork

/// `/.ws`: the address of the sockets of Realtime Database clients.
package struct RealtimeSocketHTTP: HTTPExtension {
    let service: RealtimeService

    package init(service: RealtimeService) {
        self.service = service
    }

    package func begin(_ exchange: HTTPExchange) -> Bool {
        let head = exchange.head
        guard head.path == "/.ws" else { return false }
        do throws(Status) {
            let parameters = try RealtimeParameters(head.query)
            let name = RealtimeAddress.namespace(head, named: parameters.namespace, standard: service.standardName)
            service.namespace(name, on: exchange.loop) { [service] found in
                if exchange.isFinished { return }
                switch found {
                case .success(let namespace):
                    RealtimeSocket.begin(exchange, namespace, service, formerSession: parameters.formerSession)
                case .failure(let status): Self.refuse(exchange, status)
                }
            }
        } catch {
            Self.refuse(exchange, error)
        }
        return true
    }

    private static func refuse(_ exchange: HTTPExchange, _ status: Status) {
        exchange.respond(
            status: status.code.httpStatus, headers: [HTTPHeader("content-type", "text/plain; charset=utf-8")],
            body: Array((status.message + "\n").utf8))
    }
}
