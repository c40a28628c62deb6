import HearthModel

/// gRPC calls over an `HTTP2Client`. On the loop's thread, like its connection.
///
/// `@unchecked Sendable`: guarded by the loop's thread.
public final class GRPCClient: @unchecked Sendable {
    public let connection: HTTP2Client

    public init(_ connection: HTTP2Client) { self.connection = connection }

    /// Begins a call of any kind.
    ///
    /// - Parameters:
    ///   - path: `/package.Service/Method`.
    ///   - timeoutMilliseconds: sent as `grpc-timeout`; the server keeps it.
    ///   - compresses: request messages are sent gzipped.
    public func open(
        path: String, metadata: [HTTPHeader] = [], timeoutMilliseconds: Int? = nil, compresses: Bool = false
    ) -> GRPCClientCall {
        var fields = HTTP2Fields()
        fields.append(":method", "POST")
        fields.append(":scheme", connection.configuration.isSecure ? "https" : "http")
        fields.append(":authority", "\(connection.configuration.host):\(connection.configuration.port)")
        fields.append(":path", path)
        fields.append("te", "trailers")
        fields.append("content-type", "application/grpc")
        fields.append("grpc-accept-encoding", "identity,gzip")
        if compresses { fields.append("grpc-encoding", "gzip") }
        if let timeoutMilliseconds {
            fields.append("grpc-timeout", GRPCTimeout.text(milliseconds: timeoutMilliseconds))
        }
        fields.append(metadata)
        return GRPCClientCall(
            stream: connection.open(fields, hasBody: true), compresses: compresses,
            limits: connection.configuration.limits)
    }

    /// One message there, one back.
    public func unary(
        path: String, metadata: [HTTPHeader] = [], message: [UInt8], timeoutMilliseconds: Int? = nil,
        _ done: @escaping (Result<[UInt8], Status>) -> Void
    ) {
        let call = open(path: path, metadata: metadata, timeoutMilliseconds: timeoutMilliseconds)
        var answer: [UInt8]?
        call.onMessage = { answer = $0 }
        call.onFinish = { status, _ in
            if status.code != .ok { return done(.failure(status)) }
            guard let answer else { return done(.failure(.internalError("an answer without a message"))) }
            done(.success(answer))
        }
        call.send(message)
        call.halfClose()
    }
}

/// One call of a `GRPCClient`.
///
/// `@unchecked Sendable`: guarded by the loop's thread.
public final class GRPCClientCall: @unchecked Sendable {
    public var onMessage: (([UInt8]) -> Void)?
    /// The end, once: the server's status and what came beside it, or why there is none.
    public var onFinish: ((Status, _ trailers: [HTTPHeader]) -> Void)?
    public var onHead: (([HTTPHeader]) -> Void)?
    public var onWritable: (() -> Void)? {
        get { stream.onWritable }
        set { stream.onWritable = newValue }
    }

    private let stream: HTTP2ClientStream
    private let compresses: Bool
    private let messageBytesMax: Int
    private var deframer: GRPCDeframer
    private var headers: [HTTPHeader] = []

    init(stream: HTTP2ClientStream, compresses: Bool, limits: NetworkLimits) {
        self.stream = stream
        self.compresses = compresses
        messageBytesMax = limits.messageBytesMax
        deframer = GRPCDeframer(messageBytesMax: limits.messageBytesMax)
        stream.onHead = { [self] status, headers in receivedHead(status, headers) }
        stream.onBody = { [self] bytes in received(bytes) }
        stream.onEnd = { [self] trailers in receivedEnd(trailers) }
        stream.onFailure = { [self] status in finish(status, []) }
    }

    /// False: wait for `onWritable`; it is sent in any case.
    @discardableResult
    public func send(_ message: [UInt8]) -> Bool {
        if compresses, let compressed = Gzip.compress(message) {
            return stream.queue(compressed, prefix: GRPCPrefix(isCompressed: true, messageBytes: compressed.count))
        }
        return stream.queue(message, prefix: GRPCPrefix(isCompressed: false, messageBytes: message.count))
    }

    /// No more messages from us.
    public func halfClose() { stream.end() }

    /// Resets the stream. No callback comes afterwards.
    public func cancel() {
        onMessage = nil
        onFinish = nil
        stream.cancel()
    }

    public func pauseReading() { stream.pauseReading() }
    public func resumeReading() { stream.resumeReading() }

    private func receivedHead(_ status: Int, _ headers: [HTTPHeader]) {
        self.headers = headers
        guard status == 200 else {
            stream.cancel()
            return finish(GRPCClientCall.status(ofHTTP: status), headers)
        }
        onHead?(headers)
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        var position = 0
        while position < bytes.count, onFinish != nil {
            switch deframer.next(bytes, &position) {
            case .needsMore: break
            case .message(let message, let isCompressed): deliver(message, isCompressed: isCompressed)
            case .failure(let status): breakOff(status)
            }
        }
    }

    private func deliver(_ message: [UInt8], isCompressed: Bool) {
        guard isCompressed else {
            onMessage?(message)
            return
        }
        do throws(Status) {
            let plain = try Gzip.decompress(message, limitBytes: messageBytesMax)
            onMessage?(plain)
        } catch { breakOff(error) }
    }

    private func receivedEnd(_ trailers: [HTTPHeader]) {
        // Trailers-only: the head is the end.
        let last = trailers.isEmpty ? headers : trailers
        guard let text = last.firstValue("grpc-status"), let number = Int(text) else {
            return finish(.internalError("an answer without grpc-status"), last)
        }
        let message = last.firstValue("grpc-message").map(GRPCStatusFields.percentDecoded) ?? ""
        finish(Status(Status.Code(rawValue: number) ?? .unknown, message), last)
    }

    private func breakOff(_ status: Status) {
        stream.cancel()
        finish(status, [])
    }

    private func finish(_ status: Status, _ trailers: [HTTPHeader]) {
        let onFinish = onFinish
        self.onFinish = nil
        onMessage = nil
        onFinish?(status, trailers)
    }

    /// For answers that no gRPC server wrote. Source: gRPC, HTTP to gRPC Status Code Mapping.
    private static func status(ofHTTP status: Int) -> Status {
        let message = "HTTP status \(status) in place of a gRPC answer"
        switch status {
        case 400: return .internalError(message)
        case 401: return Status(.unauthenticated, message)
        case 403: return Status(.permissionDenied, message)
        case 404: return .unimplemented(message)
        case 429, 502, 503, 504: return .unavailable(message)
        default: return Status(.unknown, message)
        }
    }
}
