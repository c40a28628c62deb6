import HearthHTTPClient
import HearthModel
import Synchronization

/// gRPC calls to one server over HTTP/2: with prior knowledge in plaintext, by ALPN with TLS.
///
/// Calls with one request message share connections. Each stream has its own connection, so that a stream whose
/// consumer pauses does not block others. All methods may be called from any thread.
///
/// A unary request is sent a second time, once, only when the server cannot have processed the first: no byte had been
/// passed to the connection, or the server said so (REFUSED_STREAM, GOAWAY). It is also sent again, over a connection
/// of its own, when the server answered before the request was complete and that answer was lost.
package final class GRPCChannel: Sendable {
    package let address: ServerAddress
    private let transport: Transport
    private let userAgent: String
    private let messageBytesMax: Int
    // Used on the loop's thread only; closures pass it there.
    private nonisolated(unsafe) let connections: GRPCConnections

    /// - Parameters:
    ///   - userAgent: the value of the `user-agent` field.
    ///   - messageBytesMax: larger received messages fail with RESOURCE_EXHAUSTED.
    ///   - keepAlive: for streams; shared connections are probed by TCP.
    package init(
        transport: Transport, address: ServerAddress, userAgent: String = "grpc-swift-hearth",
        messageBytesMax: Int = GRPCLimits.messageBytesMax,
        sharedConnectionsMax: Int = GRPCLimits.sharedConnectionsMax, keepAlive: KeepAlive = KeepAlive()
    ) {
        self.transport = transport
        self.address = address
        self.userAgent = userAgent
        self.messageBytesMax = messageBytesMax
        connections = GRPCConnections(
            loop: transport.loop, address: address, connectionsMax: sharedConnectionsMax, keepAlive: keepAlive)
    }

    deinit {
        nonisolated(unsafe) let connections = connections
        transport.loop.execute { connections.retire() }
    }

    /// A call with one request message and one response message.
    /// - Parameters:
    ///   - path: `/package.Service/Method`
    ///   - timeoutMilliseconds: after this time the call ends with DEADLINE_EXCEEDED, at the client and at the server;
    ///     nil: never.
    /// - Throws: the server's status, UNAVAILABLE when it could not be reached or the connection broke, CANCELLED when
    ///   the task was cancelled or the transport shut down.
    package func unary(
        _ path: String, metadata: [HTTPField] = [], message: [UInt8], timeoutMilliseconds: Int? = nil
    ) async throws(Status) -> [UInt8] {
        let messages = try await call(
            path, metadata: metadata, message: message, timeoutMilliseconds: timeoutMilliseconds, messageCountMax: 1)
        guard let message = messages.first else {
            throw .internalError("the server answered \(path) with OK, but without a message")
        }
        return message
    }

    /// A call with one request message and any number of response messages, which are collected. Limited by
    /// `GRPCLimits.collectedBytesMax`.
    package func collect(
        _ path: String, metadata: [HTTPField] = [], message: [UInt8], timeoutMilliseconds: Int? = nil
    ) async throws(Status) -> [[UInt8]] {
        try await call(
            path, metadata: metadata, message: message, timeoutMilliseconds: timeoutMilliseconds,
            messageCountMax: .max)
    }

    private func call(
        _ path: String, metadata: [HTTPField], message: [UInt8], timeoutMilliseconds: Int?, messageCountMax: Int
    ) async throws(Status) -> [[UInt8]] {
        // libcurl 7.88 sometimes stalls within a large body over HTTP/2.
        if message.count > GRPCLimits.sharedRequestBytesMax {
            return try await callAlone(
                path, metadata: metadata, message: message, timeoutMilliseconds: timeoutMilliseconds,
                messageCountMax: messageCountMax)
        }
        let headers = try headerLines(metadata, timeoutMilliseconds: timeoutMilliseconds)
        let prefix = try GRPCFrame.prefix(message.count)
        let startedAt = Monotonic.nanoseconds()
        let cancellation = CallCancellation()
        let loop = transport.loop
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<GRPCUnaryCall.Outcome, Never>) in
                let isTaken = loop.execute { [self] in
                    let call = GRPCUnaryCall(
                        connections: connections, path: path, headers: headers, message: message, prefix: prefix,
                        messageBytesMax: messageBytesMax, messageCountMax: messageCountMax
                    ) { continuation.resume(returning: $0) }
                    call.start(timeoutMilliseconds: timeoutMilliseconds)
                    cancellation.begin(call)
                }
                if !isTaken {
                    continuation.resume(returning: .failed(Status(.cancelled, "the transport was shut down")))
                }
            }
        } onCancel: {
            loop.execute { cancellation.cancel() }
        }
        switch outcome {
        case .messages(let messages): return messages
        case .failed(let status): throw status
        case .answerLost:
            let passed = Int((Monotonic.nanoseconds() - startedAt) / 1_000_000)
            return try await callAlone(
                path, metadata: metadata, message: message,
                timeoutMilliseconds: timeoutMilliseconds.map { max(1, $0 - passed) },
                messageCountMax: messageCountMax)
        }
    }

    /// The same on a connection of its own.
    private func callAlone(
        _ path: String, metadata: [HTTPField], message: [UInt8], timeoutMilliseconds: Int?, messageCountMax: Int
    ) async throws(Status) -> [[UInt8]] {
        let gathered = GatheredMessages(path: path, countMax: messageCountMax)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                gathered.begin(continuation)
                let stream = openStream(path, metadata: metadata, timeoutMilliseconds: timeoutMilliseconds) {
                    gathered.take($0)
                }
                stream.send(message)
                stream.finish()
                gathered.set(stream)
                // A transport that has ended does not notify a stream.
                if !transport.loop.execute({}) { gathered.cancel() }
            }
        } onCancel: {
            gathered.cancel()
        }
        return try result.get()
    }

    /// A bidirectional stream. Its events are delivered on the transport's thread and must not block it; see
    /// `GRPCStreamEvent`. After the shutdown of the transport no event is delivered.
    package func openStream(
        _ path: String, metadata: [HTTPField] = [], timeoutMilliseconds: Int? = nil,
        onEvent: @escaping @Sendable (GRPCStreamEvent) -> Void
    ) -> GRPCStream {
        var fields: [HTTPField] = []
        var failure: Status?
        do throws(Status) {
            fields = try headerFields(metadata, timeoutMilliseconds: timeoutMilliseconds)
            for field in fields { _ = try field.line() }
        } catch { failure = error }
        let pseudo = [
            HTTPField(":method", "POST"), HTTPField(":scheme", address.isSecure ? "https" : "http"),
            HTTPField(":path", path), HTTPField(":authority", address.string),
        ]
        let stream = GRPCStream(
            connections: connections, path: path, fields: pseudo + fields, messageBytesMax: messageBytesMax,
            onEvent: onEvent)
        // The stream has a reference to the transport: a channel may be released before its streams end.
        transport.loop.execute { [failure, transport] in
            stream.start(timeoutMilliseconds: timeoutMilliseconds, keeping: transport)
            if let failure { stream.abort(failure) }
        }
        return stream
    }

    /// Source: "gRPC over HTTP2", section Requests.
    private func headerFields(_ metadata: [HTTPField], timeoutMilliseconds: Int?) throws(Status) -> [HTTPField] {
        var fields = [
            HTTPField("content-type", "application/grpc"), HTTPField("te", "trailers"),
            HTTPField("grpc-accept-encoding", "identity,gzip"), HTTPField("user-agent", userAgent),
        ]
        if let timeoutMilliseconds {
            fields.append(HTTPField("grpc-timeout", GRPCStatusMessage.timeout(milliseconds: timeoutMilliseconds)))
        }
        return fields + metadata.map { HTTPField($0.name.lowercased(), $0.value) }
    }

    private func headerLines(_ metadata: [HTTPField], timeoutMilliseconds: Int?) throws(Status) -> [String] {
        // Remove fields that libcurl would add.
        var lines = ["accept:", "expect:"]
        for field in try headerFields(metadata, timeoutMilliseconds: timeoutMilliseconds) {
            lines.append(try field.line())
        }
        return lines
    }
}

/// Connects the cancellation of a task with its call, in any order. Used on the loop's thread.
///
/// `@unchecked Sendable`: closures pass it to the loop's thread, which alone uses it.
private final class CallCancellation: @unchecked Sendable {
    private weak var call: GRPCUnaryCall?
    private var isCancelled = false

    func begin(_ call: GRPCUnaryCall) {
        self.call = call
        if isCancelled { cancel() }
    }

    func cancel() {
        isCancelled = true
        call?.abort(Status(.cancelled, "the call was cancelled"))
    }
}

/// Collects the response of a call with a stream of its own.
private final class GatheredMessages: Sendable {
    private struct State {
        var messages: [[UInt8]] = []
        var bytes = 0
        var continuation: CheckedContinuation<Result<[[UInt8]], Status>, Never>?
        var stream: GRPCStream?
        var outcome: Result<[[UInt8]], Status>?
    }

    private let state = Mutex(State())
    private let path: String
    private let countMax: Int

    init(path: String, countMax: Int) {
        self.path = path
        self.countMax = countMax
    }

    func begin(_ continuation: CheckedContinuation<Result<[[UInt8]], Status>, Never>) {
        let outcome = state.withLock { state in
            if state.outcome == nil { state.continuation = continuation }
            return state.outcome
        }
        if let outcome { continuation.resume(returning: outcome) }
    }

    func set(_ stream: GRPCStream) {
        let isOver = state.withLock { state in
            if state.outcome == nil { state.stream = stream }
            return state.outcome != nil
        }
        if isOver { stream.cancel() }
    }

    func cancel() { end(.failure(Status(.cancelled, "the call was cancelled"))) }

    func take(_ event: GRPCStreamEvent) {
        switch event {
        case .opened: break
        case .message(let message):
            let (count, bytes) = state.withLock { state in
                state.messages.append(message)
                state.bytes += message.count
                return (state.messages.count, state.bytes)
            }
            if count > countMax { return end(.failure(.internalError("more than one message answers \(path)"))) }
            if bytes > GRPCLimits.collectedBytesMax {
                end(.failure(.resourceExhausted("the answer to \(path) is too large")))
            }
        case .closed(let status, _):
            end(status.code == .ok ? .success(state.withLock { $0.messages }) : .failure(status))
        }
    }

    private func end(_ outcome: Result<[[UInt8]], Status>) {
        let (continuation, stream) = state.withLock { state in
            let held = (state.continuation, state.stream)
            if state.outcome == nil { state.outcome = outcome }
            state.continuation = nil
            state.stream = nil
            return held
        }
        stream?.cancel()
        continuation?.resume(returning: outcome)
    }
}
