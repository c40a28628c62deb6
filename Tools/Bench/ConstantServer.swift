import HearthToolSupport
import Glibc
import HearthModel
import HearthNetwork
import HearthHost

/// `hearth-bench serve-constant PORT FILE` sends the file's bytes as the response of every gRPC call. It uses the
/// network engine of `serve`, without a database, and does not read the request. The difference between its figure and
/// that of `get` is the cost of the rest.
enum ConstantServer {
    static let name = "serve-constant"

    static func run(_ arguments: [String]) throws(ToolFailure) {
        guard arguments.count == 2, let port = Int(arguments[0]), (0...65_535).contains(port) else {
            throw .usage("Usage: hearth-bench \(name) PORT FILE")
        }
        try serve(port: port, path: arguments[1])
    }

    private static func serve(port: Int, path: String) throws(ToolFailure) {
        let signals = SignalWaiter()
        let server: NetworkServer
        do {
            guard let message = try TextFile.read(path) else { throw Status.notFound("There is no file \(path).") }
            let handler = ConstantHandler(message: message)
            server = NetworkServer(configuration: ServerConfiguration(port: port), http: handler, grpc: handler)
            try server.start()
        } catch {
            throw ToolFailure(.unavailable, (error as? Status)?.message ?? "\(error)")
        }
        signals.wait()
        server.shutdown(graceSeconds: 0)
    }
}

private struct ConstantHandler: GRPCHandler, HTTPHandler {
    let message: [UInt8]

    func begin(_ call: GRPCCall) {
        call.unary { [message] _ in
            call.send(message)
            call.finish(.ok)
        }
    }

    /// Only shows that the server is running.
    func begin(_ exchange: HTTPExchange) { exchange.respond(status: 404, headers: [], body: []) }
}
