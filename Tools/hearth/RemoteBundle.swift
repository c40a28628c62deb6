import HearthLoadClient
import HearthToolSupport
import HearthBundle
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthHost
import HearthFirestoreServer
import HearthWire

/// Reads what goes into a bundle from a running server, over gRPC and in one read-only transaction, so that everything is
/// of one time.
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
            throw .unavailable("Cannot reach \(configuration.host):\(configuration.port): \(error.message)")
        }
    }
}

extension HTTP2Client.Configuration {
    /// Of a server that an option names, with the options of TLS beside it.
    init(_ address: String, option: String, _ parsed: ParsedOptions) throws(ToolFailure) {
        guard let colon = address.lastIndex(of: ":"), let port = Int(address[address.index(after: colon)...]),
            (1...65_535).contains(port), colon != address.startIndex
        else { throw .usage("--\(option) expects ADDRESS:PORT, not \"\(address)\".") }
        var host = String(address[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        self.init(host: host, port: port)
        isSecure = parsed.flag("tls") || parsed.string("tls-ca") != nil
        trustedCertificatesPath = parsed.string("tls-ca")
    }
}

/// Gathers a bundle from the answers of a server.
///
/// `@unchecked Sendable`: the loop's thread has it while a call runs, and the thread that waits for the call otherwise.
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
        // The answers come in any order, but the same bundle has to come out each time.
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
                throw .internalError("The server said nothing about \(name).")
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
        guard let readTime = found.readTime else { throw .internalError("The server said no read time.") }
        for document in found.list.reversed() { try builder.add(document, readTime: readTime, query: query.name) }
        try builder.add(
            query: query.name, parent: query.parent, query.message, limitType: query.limitType, readTime: readTime)
    }

    private static func time(_ time: TimestampMessage?) throws(Status) -> TimestampMessage {
        guard let time else { throw .internalError("The server's answer has no read time.") }
        return time
    }

    /// What one call has brought. `@unchecked Sendable`: as the reading.
    private final class Found: @unchecked Sendable {
        var documents: [String: (time: TimestampMessage, document: EncodedDocument?)] = [:]
        var readTime: TimestampMessage?
        /// Results that come in reverse.
        var list: [EncodedDocument] = []
    }
}

/// Calls of one connection, one after another.
private struct Calls {
    let connection: HTTP2Client
    let database: DatabaseName
    let token: String

    /// Waits until a call has ended. `body` gets its messages, on the loop's thread, which reads no more meanwhile.
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
                    // Nothing comes after this.
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
