import HearthNetwork
import CNghttp2
import HearthConcurrency
import HearthModel

/// One request of an `HTTP2Client` and its response. Used on the loop's thread, like its client.
///
/// `@unchecked Sendable`: guarded by the loop's thread.
package final class HTTP2ClientStream: @unchecked Sendable {
    package var onHead: ((_ status: Int, _ headers: [HTTPHeader]) -> Void)?
    /// Bytes of the response's body, valid during the call.
    package var onBody: ((UnsafeRawBufferPointer) -> Void)?
    /// The response is complete.
    package var onEnd: ((_ trailers: [HTTPHeader]) -> Void)?
    /// Reset by the server, or the connection broke. Either this or `onEnd`, once.
    package var onFailure: ((Status) -> Void)?
    /// Called after a `write` that returned false, when the queue has space again.
    package var onWritable: (() -> Void)?

    /// As `onHead` and `onEnd`, without creating a string. For `GRPCClientCall`.
    var onRawHead: ((_ status: Int, HeaderBlock) -> Void)?
    var onRawEnd: ((_ trailers: HeaderBlock) -> Void)?

    var id: Int32 = -1
    /// The HTTP/2 error code of the reset that ended the stream; nil without a reset.
    package private(set) var resetCode: UInt32?
    private var client: HTTP2Client?
    private var trailers = HeaderBlock()
    private var hasHead = false
    private var isComplete = false
    private var output = OutputQueue()
    private var isOutputEnded = false
    private var isDeferred = false
    private var isAwaitingCapacity = false
    private var isReadingPaused = false
    private var unconsumedBytes = 0

    init(client: HTTP2Client) { self.client = client }

    /// Completed or failed.
    package var isFinished: Bool { client == nil }

    // MARK: Request

    /// False: wait for `onWritable`; the bytes are accepted in any case.
    @discardableResult
    package func write(_ bytes: [UInt8]) -> Bool { queue(bytes, prefix: nil) }

    func queue(_ bytes: [UInt8], prefix: GRPCPrefix?) -> Bool {
        guard let client, !isOutputEnded else { return false }
        output.append(bytes, prefix: prefix)
        wake(client)
        guard output.count >= client.configuration.limits.answerHighWaterBytes else { return true }
        if !isAwaitingCapacity {
            isAwaitingCapacity = true
            client.waitsForCapacity(self)
        }
        return false
    }

    /// The request's body is complete.
    package func end() {
        guard let client, !isOutputEnded else { return }
        isOutputEnded = true
        wake(client)
    }

    /// RST_STREAM CANCEL. No callback runs afterwards.
    package func cancel() {
        guard let client else { return }
        if unconsumedBytes > 0 { nghttp2_session_consume_connection(client.session, unconsumedBytes) }
        forget()
        nghttp2_submit_rst_stream(
            client.session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, UInt32(NGHTTP2_CANCEL.rawValue))
        client.flushLater()
    }

    /// Received bytes are still delivered, but the server gets no more window for them.
    package func pauseReading() { isReadingPaused = true }

    package func resumeReading() {
        isReadingPaused = false
        guard let client, unconsumedBytes > 0 else { return }
        nghttp2_session_consume(client.session, id, unconsumedBytes)
        unconsumedBytes = 0
        client.flushLater()
    }

    /// Collects the whole response.
    package func collect(_ done: @escaping (Result<HTTPClientAnswer, Status>) -> Void) {
        var answer = HTTPClientAnswer(status: 0, headers: [], body: [], trailers: [])
        onHead = { status, headers in
            answer.status = status
            answer.headers = headers
        }
        onBody = { answer.body.append(contentsOf: $0) }
        onEnd = { trailers in
            answer.trailers = trailers
            done(.success(answer))
        }
        onFailure = { done(.failure($0)) }
    }

    private func wake(_ client: HTTP2Client) {
        if isDeferred {
            isDeferred = false
            nghttp2_session_resume_data(client.session, id)
        }
        client.flushLater()
    }

    func read(_ buffer: UnsafeMutablePointer<UInt8>, _ length: Int, _ flags: UnsafeMutablePointer<UInt32>) -> Int {
        let count = min(length, output.count)
        guard count > 0 || isOutputEnded else {
            isDeferred = true
            return Int(NGHTTP2_ERR_DEFERRED.rawValue)
        }
        do throws(BrokenInvariant) { try output.move(count, to: buffer) } catch {
            return Int(NGHTTP2_ERR_CALLBACK_FAILURE)
        }
        if isOutputEnded, output.isEmpty { flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        return count
    }

    /// True when the producer may continue.
    func hasCapacityAgain() -> Bool {
        guard let client else { return true }
        guard output.count <= client.configuration.limits.answerLowWaterBytes else { return false }
        isAwaitingCapacity = false
        onWritable?()
        return true
    }

    // MARK: Answer

    func receivedHead(_ block: HeaderBlock) {
        if hasHead {
            trailers = block
            return
        }
        // 1xx: the final head follows.
        guard let status = block.firstValue(":status").flatMap({ Int($0) }), status >= 200 else { return }
        hasHead = true
        onRawHead?(status, block)
        if let onHead { onHead(status, block.headers) }
    }

    func received(_ bytes: UnsafeRawBufferPointer) {
        guard let client else { return }
        onBody?(bytes)
        if isReadingPaused {
            unconsumedBytes += bytes.count
        } else {
            nghttp2_session_consume(client.session, id, bytes.count)
        }
    }

    func receivedEnd() {
        isComplete = true
        let onEnd = onEnd
        let onRawEnd = onRawEnd
        onFailure = nil
        self.onEnd = nil
        self.onRawEnd = nil
        onRawEnd?(trailers)
        if let onEnd { onEnd(trailers.headers) }
    }

    func closed(code: UInt32) {
        if let client, unconsumedBytes > 0 { nghttp2_session_consume_connection(client.session, unconsumedBytes) }
        if isComplete { return forget() }
        resetCode = code
        failed(HTTP2ClientStream.status(of: code))
    }

    func failed(_ status: Status) {
        guard client != nil else { return }
        let onFailure = onFailure
        forget()
        onFailure?(status)
    }

    private func forget() {
        client = nil
        onHead = nil
        onRawHead = nil
        onRawEnd = nil
        onBody = nil
        onEnd = nil
        onFailure = nil
        onWritable = nil
        output.removeAll()
    }

    /// Source: gRPC over HTTP/2, Errors.
    private static func status(of code: UInt32) -> Status {
        let string = nghttp2_http2_strerror(code).map { String(cString: $0) } ?? "\(code)"
        let message = "the stream was reset: \(string)"
        switch nghttp2_error_code(rawValue: nghttp2_error_code.RawValue(code)) {
        case NGHTTP2_REFUSED_STREAM: return .unavailable(message)
        case NGHTTP2_CANCEL: return Status(.cancelled, message)
        case NGHTTP2_ENHANCE_YOUR_CALM: return .resourceExhausted(message)
        default: return .internalError(message)
        }
    }
}
