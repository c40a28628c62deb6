import HearthLoadClient
import HearthToolSupport
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthHost

/// Requests to a running server, one after another.
final class ServerConnection {
    let loop: EventLoop
    private(set) var client: HTTP2Client
    let headers: [HTTPHeader]
    private let configuration: HTTP2Client.Configuration
    private let address: String
    private let hasCredential: Bool
    /// Until the first answer.
    private var protocolHint: String
    /// The last connection that was closed without a frame of the server, and the number of them.
    private var silent: HTTP2Client?
    private var silentCount = 0
    /// With the pauses between calls that are repeated, less than a second.
    private static let silentCountMax = 5

    /// - Parameter variable: the environment variable with the address when no option has it.
    static func options(defaultAddress variable: String) -> [Option] {
        [
            Option(
                "address", "ADDRESS:PORT", aliases: ["host"], "The server. Default: \(variable), else 127.0.0.1:8080."),
            Option("tls", nil, "Use TLS."),
            Option("tls-ca", "FILE", "Trusted certificates (PEM) instead of the system's."),
            Option("token", "TOKEN", "An ID token or an administrator's secret. Default: \"owner\" is sent."),
            Option("credential", "FILE", "A file with the token."),
        ]
    }

    /// - Parameter variable: as for `options`.
    /// - Throws: as the other one.
    convenience init(_ parsed: ParsedOptions, defaultAddress variable: String) throws(ToolFailure) {
        try self.init(parsed, address: parsed.string("address") ?? Environment.all[variable] ?? "127.0.0.1:8080")
    }

    /// - Throws: 64 for an address that is none, 69 when the server can't be reached, 78 for a file without a token.
    init(_ parsed: ParsedOptions, address: String) throws(ToolFailure) {
        self.address = address
        configuration = try HTTP2Client.Configuration(address, option: "address", parsed)
        protocolHint = configuration.protocolHint
        hasCredential = parsed.string("token") != nil || parsed.string("credential") != nil
        headers = [HTTPHeader("authorization", "Bearer \(try Self.token(parsed))")]
        loop = try ToolLoop.start()
        do throws(Status) {
            client = try Self.connect(configuration, on: loop)
        } catch {
            loop.stopAndJoin()
            throw ToolFailure(.unavailable, "Cannot reach \(address): \(error.message)\(configuration.hint(error))")
        }
    }

    /// The server has answered: what fails later doesn't come from a wrong protocol.
    func noteAnswer() { protocolHint = "" }

    /// A call has failed. A server that has answered so speaks the protocol; one that was not reached may speak another.
    /// - Parameter isRepeated: whether the call is made again, on another connection. A network can also close a
    ///   connection before the server's first frame, so that only several such connections, one after another, show
    ///   another protocol.
    /// - Throws: 69 when a server that has not answered yet shows that it speaks another protocol.
    func noteFailure(_ status: Status, isRepeated: Bool) throws(ToolFailure) {
        if status.message == HTTP2Client.closedWithoutFrames, !protocolHint.isEmpty {
            // Several calls can fail with one connection.
            if silent !== client { silentCount += 1 }
            silent = client
            if isRepeated, silentCount < Self.silentCountMax { return }
            throw ToolFailure(.unavailable, "Cannot reach \(address): \(status.message)\(protocolHint)")
        }
        // Of a connection that the server has closed before the call began nothing is known.
        if status.code != .unavailable { noteAnswer() }
    }

    private static func connect(
        _ configuration: HTTP2Client.Configuration, on loop: EventLoop
    ) throws(Status) -> HTTP2Client {
        let outcome = Awaited<HTTP2Client>()
        HTTP2Client.connect(configuration, on: loop) { outcome.set($0) }
        let client = try outcome.wait()
        ConnectionWatch(client).start()
        return client
    }

    /// Opens another connection when the present one takes no more requests.
    func reopen() throws(Status) {
        let outcome = Awaited<Bool>()
        loop.execute { [client] in outcome.set(.success(client.isClosed || client.hasReceivedGoAway)) }
        guard try outcome.wait() else { return }
        client = try Self.connect(configuration, on: loop)
    }

    private static func token(_ parsed: ParsedOptions) throws(ToolFailure) -> String {
        if let token = parsed.string("token") { return token }
        guard let file = parsed.string("credential") else { return "owner" }
        do throws(Status) {
            return String(decoding: try IdentityConfiguration.secret(file), as: UTF8.self)
        } catch {
            throw .configuration(error.message)
        }
    }

    func close() {
        loop.execute { [client] in client.close() }
        loop.stopAndJoin()
    }

    /// - Parameters:
    ///   - body: JSON.
    ///   - secondsMax: the time for the answer; without it, as long as the server answers to pings.
    /// - Throws: 69 when the connection breaks, or the answer does not come in time.
    func request(
        _ method: String, _ target: String, _ body: [UInt8] = [], secondsMax: Int? = nil
    ) throws(ToolFailure) -> HTTPClientAnswer {
        let outcome = Awaited<HTTPClientAnswer>()
        if let secondsMax {
            loop.schedule(afterMilliseconds: secondsMax * 1000) {
                outcome.set(.failure(Status(.deadlineExceeded, "no answer within \(secondsMax) seconds")))
            }
        }
        loop.execute { [client, headers] in
            let fields = headers + [HTTPHeader("content-type", "application/json")]
            client.request(method: method, path: target, headers: fields, body: body) { outcome.set($0) }
        }
        return try wait(outcome)
    }

    func wait<Value>(_ outcome: Awaited<Value>) throws(ToolFailure) -> Value {
        do throws(Status) {
            let value = try outcome.wait()
            noteAnswer()
            return value
        } catch {
            let what =
                error.code == .deadlineExceeded ? "The server did not respond" : "The connection to the server broke"
            throw ToolFailure(.unavailable, "\(what): \(error.message)\(protocolHint)")
        }
    }

    /// What to do about an answer that refuses; empty when nothing is known.
    func hint(_ status: Int) -> String {
        if hasCredential || status != 401 && status != 403 { return "" }
        return
            "\nPass --credential FILE with the secret of an administrator: a \"secretFile\" of \"auth.credentials\" in the "
            + "server's hearth.json."
    }
}
