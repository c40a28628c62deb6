import HearthNetwork
import HearthModel

/// gRPC calls over an `HTTP2Client`. Used on the loop's thread, like its connection.
///
/// `@unchecked Sendable`: guarded by the loop's thread.
package final class GRPCClient: @unchecked Sendable {
    package let connection: HTTP2Client

    package init(_ connection: HTTP2Client) { self.connection = connection }

    /// The common part of many calls: created once, sent often.
    package struct Request: Sendable {
        fileprivate let fields: HTTP2Fields
        fileprivate let compresses: Bool
    }

    /// - Parameters:
    ///   - path: `/package.Service/Method`.
    ///   - timeoutMilliseconds: sent as `grpc-timeout`; the server enforces it.
    ///   - compresses: request messages are sent gzipped.
    package func request(
        path: String, metadata: [HTTPHeader] = [], timeoutMilliseconds: Int? = nil, compresses: Bool = false
    ) -> Request {
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
            fields.append("grpc-timeout", GRPCTimeout.string(milliseconds: timeoutMilliseconds))
        }
        fields.append(metadata)
        return Request(fields: fields, compresses: compresses)
    }

    /// Begins a call of any kind.
    package func open(_ request: Request) -> GRPCClientCall {
        GRPCClientCall(
            stream: connection.open(request.fields, hasBody: true), compresses: request.compresses,
            limits: connection.configuration.limits)
    }

    /// Begins a call of any kind; the parameters are those of `request`.
    package func open(
        path: String, metadata: [HTTPHeader] = [], timeoutMilliseconds: Int? = nil, compresses: Bool = false
    ) -> GRPCClientCall {
        open(
            request(
                path: path, metadata: metadata, timeoutMilliseconds: timeoutMilliseconds, compresses: compresses))
    }

    /// A call with one request message and one response message.
    package func unary(
        _ request: Request, message: [UInt8], _ done: @escaping (Result<[UInt8], Status>) -> Void
    ) {
        let call = open(request)
        var answer: [UInt8]?
        call.onMessage = { answer = $0 }
        call.onStatus = { status in
            if status.code != .ok { return done(.failure(status)) }
            guard let answer else { return done(.failure(.internalError("an answer without a message"))) }
            done(.success(answer))
        }
        call.send(message)
        call.halfClose()
    }

    /// A call with one request message and one response message; the parameters are those of `request`.
    package func unary(
        path: String, metadata: [HTTPHeader] = [], message: [UInt8], timeoutMilliseconds: Int? = nil,
        _ done: @escaping (Result<[UInt8], Status>) -> Void
    ) {
        unary(
            request(path: path, metadata: metadata, timeoutMilliseconds: timeoutMilliseconds), message: message, done)
    }
}

/// One call of a `GRPCClient`.
///
/// `@unchecked Sendable`: guarded by the loop's thread.
package final class GRPCClientCall: @unchecked Sendable {
    package var onMessage: (([UInt8]) -> Void)?
    /// The end, called once: the server's status and trailers, or the failure.
    package var onFinish: ((Status, _ trailers: [HTTPHeader]) -> Void)?
    package var onHead: (([HTTPHeader]) -> Void)?
    package var onWritable: (() -> Void)? {
        get { stream.onWritable }
        set { stream.onWritable = newValue }
    }

    private let stream: HTTP2ClientStream
    private let compresses: Bool
    private let messageBytesMax: Int
    private var deframer: GRPCDeframer
    private var headers = HeaderBlock()
    private var isFinished = false
    /// As `onFinish`, without the trailers.
    var onStatus: ((Status) -> Void)?

    init(stream: HTTP2ClientStream, compresses: Bool, limits: NetworkLimits) {
        self.stream = stream
        self.compresses = compresses
        messageBytesMax = limits.messageBytesMax
        deframer = GRPCDeframer(messageBytesMax: limits.messageBytesMax)
        stream.onRawHead = { [self] status, headers in receivedHead(status, headers) }
        stream.onBody = { [self] bytes in received(bytes) }
        stream.onRawEnd = { [self] trailers in receivedEnd(trailers) }
        stream.onFailure = { [self] status in finish(status, HeaderBlock()) }
    }

    /// False: wait for `onWritable`; the message is sent in any case.
    @discardableResult
    package func send(_ message: [UInt8]) -> Bool {
        if compresses, let compressed = Gzip.compress(message) {
            return stream.queue(compressed, prefix: GRPCPrefix(isCompressed: true, messageBytes: compressed.count))
        }
        return stream.queue(message, prefix: GRPCPrefix(isCompressed: false, messageBytes: message.count))
    }

    /// Ends the request messages.
    package func halfClose() { stream.end() }

    /// Resets the stream. No callback runs afterwards.
    package func cancel() {
        isFinished = true
        onMessage = nil
        onFinish = nil
        onStatus = nil
        stream.cancel()
    }

    package func pauseReading() { stream.pauseReading() }
    package func resumeReading() { stream.resumeReading() }

    private func receivedHead(_ status: Int, _ headers: HeaderBlock) {
        self.headers = headers
        guard status == 200 else {
            stream.cancel()
            return finish(GRPCClientCall.status(ofHTTP: status), headers)
        }
        if let onHead { onHead(headers.headers) }
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        var position = 0
        while position < bytes.count, !isFinished {
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

    private func receivedEnd(_ trailers: HeaderBlock) {
        // Trailers-only: the head is the end.
        let last = trailers.isEmpty ? headers : trailers
        guard let string = last.firstValue("grpc-status"), let number = Int(string) else {
            return finish(.internalError("an answer without grpc-status"), last)
        }
        let message = last.firstValue("grpc-message").map(GRPCStatusFields.percentDecoded) ?? ""
        finish(Status(Status.Code(rawValue: number) ?? .unknown, message), last)
    }

    private func breakOff(_ status: Status) {
        stream.cancel()
        finish(status, HeaderBlock())
    }

    private func finish(_ status: Status, _ trailers: HeaderBlock) {
        guard !isFinished else { return }
        isFinished = true
        let onFinish = onFinish
        let onStatus = onStatus
        self.onFinish = nil
        self.onStatus = nil
        onMessage = nil
        onStatus?(status)
        if let onFinish { onFinish(status, trailers.headers) }
    }

    /// For responses that are not from a gRPC server. Source: "HTTP to gRPC Status Code Mapping" in the gRPC
    /// documentation.
    private static func status(ofHTTP status: Int) -> Status {
        let message = "HTTP status \(status) instead of a gRPC response"
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
