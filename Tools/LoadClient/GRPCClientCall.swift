import HearthNetwork
import HearthModel

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
