import Glibc
import HearthModel
import HearthNetwork
import HearthServer

/// `hearth bench-constant PORT FILE`: gives the file's bytes as the answer of every gRPC call, from the network engine that
/// `serve` has, without a database, without a look at the request. What `get` comes near to shows what the rest costs.
/// For the bench only, so it's not in the list of commands.
enum ConstantCommand {
    static let name = "bench-constant"

    static let command = Tool.Command(
        name: name, summary: "Give one answer to every call, for the bench.",
        help: { "Usage: hearth \(name) PORT FILE" },
        run: { arguments throws(ToolFailure) in
            let parsed = try ParsedOptions(arguments, options: [], argumentsMax: 2)
            guard parsed.arguments.count == 2, let port = Int(parsed.arguments[0]), (0...65_535).contains(port) else {
                throw .usage("Usage: hearth \(name) PORT FILE")
            }
            try serve(port: port, path: parsed.arguments[1])
        })

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

    /// Only to be seen to be up.
    func begin(_ exchange: HTTPExchange) { exchange.respond(status: 404, headers: [], body: []) }
}
