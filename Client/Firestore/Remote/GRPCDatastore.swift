internal import HearthModel
internal import HearthSync
import HearthHTTPClient
internal import HearthTransport
internal import HearthWire
internal import Synchronization

/// The `Datastore` over gRPC: one channel to the server, on its own transport.
///
/// Events of streams are decoded and delivered on the transport's thread, in order. `opened` is delivered when the
/// connection is established and the request's headers are sent, before the response's headers arrive: Firestore sends
/// these only with its first response, and that requires the Write stream's handshake or the Listen stream's first
/// target. `opened` proves that the server was reached, not that it accepts the stream.
final class GRPCDatastore: Datastore {
    private let transport: Transport
    private let channel: GRPCChannel
    private let timeoutMilliseconds: Int
    private let monitor = Mutex<NetworkMonitor?>(nil)

    private static let service = "/google.firestore.v1.Firestore/"

    /// - Parameters:
    ///   - address: `firestore.googleapis.com:443` with TLS, or an emulator.
    ///   - timeoutMilliseconds: the timeout of calls that are not streams.
    /// - Throws: the errors of `Transport`.
    init(address: ServerAddress, timeoutMilliseconds: Int = 60_000) throws(Status) {
        transport = try Transport(name: "hearth-firestore")
        channel = GRPCChannel(transport: transport, address: address)
        self.timeoutMilliseconds = timeoutMilliseconds
    }

    deinit { transport.shutDown() }

    func openListen(
        headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<ListenResponse>) -> Void
    ) -> any RequestStream<ListenRequest> {
        GRPCRequestStream<ListenRequest>(
            channel, path: Self.service + "Listen", metadata: Self.metadata(headers), onEvent: onEvent)
    }

    func openWrite(
        headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<WriteResponse>) -> Void
    ) -> any RequestStream<WriteRequest> {
        GRPCRequestStream<WriteRequest>(
            channel, path: Self.service + "Write", metadata: Self.metadata(headers), onEvent: onEvent)
    }

    func commit(_ request: CommitRequest, headers: RequestHeaders) async throws(Status) -> CommitResponse {
        let answer = try await channel.unary(
            Self.service + "Commit", metadata: Self.metadata(headers), message: request.protobuf(),
            timeoutMilliseconds: timeoutMilliseconds)
        return try Self.decode(answer)
    }

    func batchGetDocuments(
        _ request: BatchGetDocumentsRequest, headers: RequestHeaders
    ) async throws(Status) -> [BatchGetDocumentsResponse] {
        try await collect("BatchGetDocuments", request, headers)
    }

    func runAggregationQuery(
        _ request: RunAggregationQueryRequest, headers: RequestHeaders
    ) async throws(Status) -> [RunAggregationQueryResponse] {
        try await collect("RunAggregationQuery", request, headers)
    }

    private func collect<Response: WireMessage>(
        _ method: String, _ request: some WireMessage, _ headers: RequestHeaders
    ) async throws(Status) -> [Response] {
        let answers = try await channel.collect(
            Self.service + method, metadata: Self.metadata(headers), message: request.protobuf(),
            timeoutMilliseconds: timeoutMilliseconds)
        var responses: [Response] = []
        responses.reserveCapacity(answers.count)
        for answer in answers { responses.append(try Self.decode(answer)) }
        return responses
    }

    /// On a kernel without network notifications nothing is reported: streams are then reopened only by their backoff.
    func observeReachability(_ changed: @escaping @Sendable () -> Void) {
        let made: NetworkMonitor?
        do throws(Status) { made = try NetworkMonitor(transport: transport, onChange: changed) } catch { made = nil }
        monitor.withLock { $0 = made }
    }

    func shutDown() {
        monitor.withLock { $0 = nil }
        transport.shutDown()
    }

    /// The request headers of the Firebase SDKs: see `firestore/core/src/remote/grpc_connection.cc` of
    /// firebase-ios-sdk.
    static func metadata(_ headers: RequestHeaders) -> [HTTPField] {
        let database = headers.database.string
        var fields = [
            HTTPField("google-cloud-resource-prefix", database),
            HTTPField("x-goog-request-params", database),
            HTTPField("x-goog-api-client", "gl-swift/\(swiftVersion) fire/\(HearthVersion.string) grpc/"),
        ]
        if let token = headers.authorizationToken { fields.append(HTTPField("authorization", "Bearer \(token)")) }
        if let token = headers.appCheckToken { fields.append(HTTPField("x-firebase-appcheck", token)) }
        return fields
    }

    private static var swiftVersion: String {
        #if swift(>=6.3)
        "6.3"
        #elseif swift(>=6.2)
        "6.2"
        #elseif swift(>=6.1)
        "6.1"
        #else
        "6.0"
        #endif
    }

    static func decode<Response: WireMessage>(_ bytes: [UInt8]) throws(Status) -> Response {
        do throws(Status) { return try Response(protobuf: bytes) } catch {
            throw .internalError("the server's \(Response.typeName) cannot be read: \(error.message)")
        }
    }
}

/// One stream. It encodes and decodes its messages.
private final class GRPCRequestStream<Request: WireMessage>: RequestStream {
    private let stream: GRPCStream
    private let pace: ReceivingPace

    init<Response: WireMessage>(
        _ channel: GRPCChannel, path: String, metadata: [HTTPField],
        onEvent: @escaping @Sendable (StreamEvent<Response>) -> Void
    ) {
        let ending = StreamEnding()
        let pace = ReceivingPace()
        self.pace = pace
        stream = channel.openStream(path, metadata: metadata) { event in
            switch event {
            case .opened: onEvent(.opened)
            case .message(let bytes):
                do throws(Status) {
                    let response: Response = try GRPCDatastore.decode(bytes)
                    pace.received(bytes.count)
                    onEvent(.response(response))
                } catch {
                    ending.cancel()
                    onEvent(.closed(error))
                }
            case .closed(let status, _): onEvent(.closed(status))
            }
        }
        ending.set(stream)
        pace.attach { [weak stream] isReceiving in
            if isReceiving { stream?.resumeReceiving() } else { stream?.pauseReceiving() }
        }
    }

    func send(_ request: Request) { stream.send(request.protobuf()) }
    func finish() { stream.finish() }
    func cancel() { stream.cancel() }
    func responseTaken() { pace.taken() }
}

/// Lets the event handler end its own stream. Events may arrive before the stream has been returned.
private final class StreamEnding: Sendable {
    private struct State {
        weak var stream: GRPCStream?
        var isCancelled = false
    }

    private let state = Mutex(State())

    func set(_ stream: GRPCStream) {
        let isCancelled = state.withLock { state in
            state.stream = stream
            return state.isCancelled
        }
        if isCancelled { stream.cancel() }
    }

    func cancel() {
        let stream = state.withLock { state in
            state.isCancelled = true
            return state.stream
        }
        stream?.cancel()
    }
}
