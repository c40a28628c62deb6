import HearthWebSocket

/// The transport of an exchange: a stream of HTTP/2 or one request of an HTTP/1.1 connection.
protocol ExchangeTransport: AnyObject {
    func respond(status: Int, headers: [HTTPHeader], body: [UInt8])
    func start(status: Int, headers: [HTTPHeader])
    func write(_ bytes: [UInt8]) -> Bool
    func end(trailers: [HTTPHeader])
    func abort()
    /// The handler has consumed this many bytes of the body, or will not want them.
    func consumed(_ bytes: Int)
    func setReadingPaused(_ isPaused: Bool)
    /// Continues as a WebSocket. Nil: not possible.
    func upgradeToWebSocket(
        fields: [HTTPHeader], limits: WebSocketLimits, deflate: WebSocketDeflate?
    ) -> WebSocketChannel?
}
