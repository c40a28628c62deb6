import HearthModel
import HearthWebSocket

extension HTTPExchange {
    /// Sends 101 and continues as a WebSocket on the same loop; the exchange ends. Call it instead of `respond` or
    /// `start`, within `begin` or later.
    ///
    /// - Returns: nil when the request is not a WebSocket handshake (the response is 400, 405 or 426), or when the
    ///   client has disconnected.
    package func upgradeToWebSocket(_ options: WebSocketOptions = WebSocketOptions()) -> WebSocketChannel? {
        guard !isFinished else { return nil }
        do throws(WebSocketHandshakeFailure) {
            let request = try WebSocketUpgradeRequest(
                method: head.method, isHTTP1_1: head.version == .http1_1, values: { head.values($0) })
            let subprotocol = options.subprotocol.flatMap { request.protocols.contains($0) ? $0 : nil }
            let answer = try request.answer(
                takesOverContext: options.compressionThresholdBytes == nil ? nil : options.takesOverContext,
                subprotocol: subprotocol)
            let fields = answer.fields.map { HTTPHeader($0.name, $0.value) } + options.headers
            if let channel = upgrade(fields, options.limits, answer.deflate) {
                if let bytes = options.highWaterBytes { channel.highWaterBytes = bytes }
                return channel
            }
            throw WebSocketHandshakeFailure(status: 400, reason: "a WebSocket handshake has no body")
        } catch {
            var headers = [HTTPHeader("content-type", "text/plain")]
            if error.status == 426 {
                headers.append(HTTPHeader("sec-websocket-version", HearthWebSocket.version))
                headers.append(HTTPHeader("upgrade", "websocket"))
            }
            if error.status == 405 { headers.append(HTTPHeader("allow", "GET")) }
            respond(status: error.status, headers: headers, body: Array((error.reason + "\n").utf8))
            return nil
        }
    }
}

extension HTTP1Connection {
    /// Passes on the socket. Pending output is sent first; the input after the request belongs to the WebSocket.
    func upgradeToWebSocket(
        fields: [HTTPHeader], limits: WebSocketLimits, deflate: WebSocketDeflate?
    ) -> WebSocketChannel? {
        guard let (output, leftover) = handOver() else { return nil }
        var sent = output
        var head = HTTP1HeadWriter(status: 101)
        for field in fields { head.field(field.name, field.value) }
        head.field("date", channel.loop.currentDate())
        sent.append(head.finish())
        let result = WebSocketChannel(
            channel: channel, context: context,
            connection: WebSocketConnection(
                role: .server, limits: limits, deflate: deflate, codecs: context.deflateCodecs),
            output: sent, leftover: leftover)
        channel.driver = result
        if context.isShuttingDown { result.beginShutdown() }
        return result
    }
}
