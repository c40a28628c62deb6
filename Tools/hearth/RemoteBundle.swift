import HearthLoadClient
import HearthToolSupport
import HearthBundle
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthHost
import HearthFirestoreServer
import HearthWire

/// Reads the content of a bundle from a running server, over gRPC and in one read-only transaction, so that all data
/// has the same read time.
struct RemoteBundle {
    private let configuration: HTTP2Client.Configuration
    private let token: String

    init(_ address: String, _ parsed: ParsedOptions) throws(ToolFailure) {
        configuration = try HTTP2Client.Configuration(address, option: "host", parsed)
        guard let file = parsed.string("credential") else {
            token = "owner"
            return
        }
        do throws(Status) {
            token = String(decoding: try IdentityConfiguration.secret(file), as: UTF8.self)
        } catch {
            throw .configuration(error.message)
        }
    }

    func collect(
        _ definition: BundleDefinition, _ builder: inout BundleBuildCommand.Builder
    ) throws(ToolFailure) {
        let loop = try ToolLoop.start()
        defer { loop.stopAndJoin() }
        do throws(Status) {
            let connection = try connect(on: loop)
            defer { loop.execute { connection.close() } }
            let reading = Reading(
                calls: Calls(connection: connection, database: definition.database, token: token), builder: builder)
            try reading.collect(definition)
            builder = reading.builder
        } catch {
            throw ToolFailure(error.code == .unavailable ? .unavailable : .failed, error.message)
        }
    }

    private func connect(on loop: EventLoop) throws(Status) -> HTTP2Client {
        let outcome = Awaited<HTTP2Client>()
        HTTP2Client.connect(configuration, on: loop) { outcome.set($0) }
        do throws(Status) {
            return try outcome.wait()
        } catch {
            throw .unavailable(
                "Cannot reach \(configuration.authority): \(error.message)\(configuration.hint(error))"
            )
        }
    }
}

extension HTTP2Client.Configuration {
    /// The client for the server of an option, with the options for TLS.
    init(_ address: String, option: String, _ parsed: ParsedOptions) throws(ToolFailure) {
        guard let colon = address.lastIndex(of: ":"), let port = Int(address[address.index(after: colon)...]),
            (1...65_535).contains(port), colon != address.startIndex
        else {
            throw .usage("--\(option) expects ADDRESS:PORT, with a port from 1 to 65535, not \"\(address)\".")
        }
        var host = String(address[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        self.init(host: host, port: port)
        isSecure = parsed.flag("tls") || parsed.string("tls-ca") != nil
        trustedCertificatesPath = parsed.string("tls-ca")
    }

    /// What may be wrong when a connection can't be made; empty when the reason says it, as that nobody listens.
    func hint(_ reason: Status) -> String { reason.message == HTTP2Client.closedEarly ? protocolHint : "" }

    /// What may be wrong when a connection ends before there was an answer.
    var protocolHint: String {
        if !isSecure { return "; if the server speaks TLS, pass --tls, or --tls-ca FILE for a certificate of your own" }
        if trustedCertificatesPath == nil {
            return
                "; if its certificate is one of your own, pass --tls-ca FILE, and if it doesn't speak TLS, leave out --tls"
        }
        return "; if the server doesn't speak TLS, leave out --tls and --tls-ca, else its certificate must be for "
            + "\(host) and be signed by one of --tls-ca"
    }
}

/// Collects a bundle from the responses of a server.
///
/// `@unchecked Sendable`: belongs to the loop's thread while a call runs, otherwise to the thread that waits for the
/// call.
private final class Reading: @unchecked Sendable {
    private(set) var builder: BundleBuildCommand.Builder
    private let calls: Calls
    private var transaction: [UInt8] = []

    init(calls: Calls, builder: BundleBuildCommand.Builder) {
        self.calls = calls
        self.builder = builder
    }

    func collect(_ definition: BundleDefinition) throws(Status) {
        let options = TransactionOptionsMessage(readOnly: TransactionOptionsMessage.ReadOnly())
        try calls.call(
            "BeginTransaction", BeginTransactionRequest(database: definition.database.string, options: options)
        ) { [self] (response: BeginTransactionResponse) throws(Status) in transaction = response.transaction }
        try collectDocuments(definition)
        for query in definition.queries { try collect(query) }
    }

    private func collectDocuments(_ definition: BundleDefinition) throws(Status) {
        if definition.documents.isEmpty { return }
        // The responses arrive in any order, but the bundle must be the same each time.
        let found = Found()
        try calls.call(
            "BatchGetDocuments",
            BatchGetDocumentsRequest(
                database: definition.database.string, documents: definition.documents.map(\.string),
                transaction: transaction)
        ) { (response: BatchGetDocumentsResponse) throws(Status) in
            let time = try Self.time(response.readTime)
            if let document = response.found {
                found.documents[document.name] = (time, try EncodedDocument(document))
            } else if let name = response.missing {
                found.documents[name] = (time, nil)
            }
        }
        for name in definition.documents {
            guard let (time, document) = found.documents[name.string] else {
                throw .internalError("The server's answer does not contain \(name).")
            }
            if let document {
                try builder.add(document, readTime: time)
            } else {
                try builder.add(missing: name.string, readTime: time)
            }
        }
    }

    private func collect(_ query: BundleDefinition.NamedQuery) throws(Status) {
        let found = Found()
        try calls.call(
            "RunQuery",
            RunQueryRequest(
                parent: query.parent.string, structuredQuery: try query.executed, transaction: transaction)
        ) { [self] (response: RunQueryResponse) throws(Status) in
            let time = try Self.time(response.readTime)
            found.readTime = time
            guard let message = response.document else { return }
            let document = try EncodedDocument(message)
            if query.limitType == .last {
                found.list.append(document)
            } else {
                try builder.add(document, readTime: time, query: query.name)
            }
        }
        guard let readTime = found.readTime else { throw .internalError("The server's answer has no read time.") }
        for document in found.list.reversed() { try builder.add(document, readTime: readTime, query: query.name) }
        try builder.add(
            query: query.name, parent: query.parent, query.message, limitType: query.limitType, readTime: readTime)
    }

    private static func time(_ time: TimestampMessage?) throws(Status) -> TimestampMessage {
        guard let time else { throw .internalError("The server's answer has no read time.") }
        return time
    }

    /// The result of one call. `@unchecked Sendable`: as for the reader.
    private final class Found: @unchecked Sendable {
        var documents: [String: (time: TimestampMessage, document: EncodedDocument?)] = [:]
        var readTime: TimestampMessage?
        /// Results in reverse order.
        var list: [EncodedDocument] = []
    }
}

/// Calls of one connection, one after another.
private struct Calls {
    let connection: HTTP2Client
    let database: DatabaseName
    let token: String

    /// Waits for the end of a call. `body` receives its messages on the loop's thread, which reads no more meanwhile.
    func call<Request: WireMessage, Response: WireMessage>(
        _ method: String, _ request: Request, _ body: @escaping @Sendable (Response) throws(Status) -> Void
    ) throws(Status) {
        let outcome = Awaited<Void>()
        let metadata = [
            HTTPHeader("authorization", "Bearer \(token)"), HTTPHeader("google-cloud-resource-prefix", database.string),
        ]
        connection.loop.execute { [connection] in
            let call = GRPCClient(connection).open(
                path: "/google.firestore.v1.Firestore/\(method)", metadata: metadata)
            call.onMessage = { bytes in
                do throws(Status) {
                    try body(try Response(protobuf: bytes))
                } catch {
                    // No callback follows.
                    call.cancel()
                    outcome.set(.failure(error))
                }
            }
            call.onFinish = { status, _ in outcome.set(status.code == .ok ? .success(()) : .failure(status)) }
            call.send(request.protobuf())
            call.halfClose()
        }
        try outcome.wait()
    }
}
