import HearthHost
import HearthModel
import HearthToolSupport

/// `hearth health`
enum HealthCommand {
    static let command = ToolCommand(
        name: "health", summary: "Ask a server whether it is ready.", options: options, help: { help },
        run: { arguments throws(ToolFailure) in try run(arguments) })

    private static let options = [
        Option(
            "address", "ADDRESS:PORT",
            "The server. Default: the address on which `hearth serve` would listen here."),
        Option("tls", nil, "Use TLS."),
        Option("tls-ca", "FILE", "Trusted certificates (PEM) instead of the system's."),
    ]

    private static let help = """
        Usage: hearth health [options]

        Requests /readyz of a running server and prints the answer, for health checks of containers and for scripts. No
        credential is needed.

        \(OptionHelp.string(options))

        A server with TLS is asked by a name that its certificate has: --address hearth.example:443 --tls.

        Exit codes: 0 the server is ready, 1 it runs but cannot read or write its data, 64 wrong usage, 69 it can't be
        reached, or does not answer within 10 seconds, 78 the settings here are wrong.
        """

    private static func run(_ arguments: [String]) throws(ToolFailure) {
        let parsed = try ParsedOptions(arguments, options: options)
        let server = try ServerConnection(parsed, address: try address(parsed))
        defer { server.close() }
        let answer = try server.request("GET", "/readyz", secondsMax: answerSecondsMax)
        let message = Printable.string(String(decoding: answer.body.prefix(messageBytesMax), as: UTF8.self))
        guard answer.status == 200 else {
            throw ToolFailure(.failed, "The server is not ready (\(answer.status)): \(message)")
        }
        Output.line("ready")
    }

    private static let messageBytesMax = 4096
    /// Longer than the server waits for its disk.
    private static let answerSecondsMax = 10

    /// That of the option, else the one for clients on this machine.
    private static func address(_ parsed: ParsedOptions) throws(ToolFailure) -> String {
        if let given = parsed.string("address") { return given }
        let settings = try ServeResolution.settings([], environment: Environment.all)
        if settings.tlsCertificate != nil {
            throw .usage(
                "The settings here have a certificate: name the server as it does, with --address NAME:PORT --tls.")
        }
        return StartMessage.address(StartMessage.reachable(settings.host), settings.port)
    }
}
