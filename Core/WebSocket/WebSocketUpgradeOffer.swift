/// A client's half of the handshake. Source: RFC 6455, 4.1.
package struct WebSocketUpgradeOffer: Sendable {
    private let key: String
    private let offersCompression: Bool
    /// The request fields besides `host` and the user's fields.
    package let fields: [(name: String, value: String)]

    /// - Parameter keyBytes: 16 random bytes.
    package init(keyBytes: [UInt8], offersCompression: Bool) {
        precondition(keyBytes.count == 16, "a key is 16 bytes")
        key = WebSocketKey.base64(keyBytes)
        self.offersCompression = offersCompression
        var fields = [
            (name: "upgrade", value: "websocket"), (name: "connection", value: "Upgrade"),
            (name: "sec-websocket-version", value: HearthWebSocket.version),
            (name: "sec-websocket-key", value: key),
        ]
        if offersCompression { fields.append(("sec-websocket-extensions", WebSocketDeflate.offer)) }
        self.fields = fields
    }

    package init(offersCompression: Bool) {
        var generator = SystemRandomNumberGenerator()
        self.init(
            keyBytes: (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) },
            offersCompression: offersCompression)
    }

    /// Checks a response 101. Anything that the client did not ask for ends the connection.
    ///
    /// - Parameter values: returns the values of all fields with a (lowercase) name, in order.
    package func check(values: (String) -> [String]) throws(WebSocketHandshakeFailure) -> WebSocketDeflate? {
        func refuse(_ reason: String) -> WebSocketHandshakeFailure {
            WebSocketHandshakeFailure(status: 400, reason: reason)
        }
        guard WebSocketFields.tokens(values("upgrade")) == ["websocket"],
            WebSocketFields.tokens(values("connection")).contains("upgrade")
        else { throw refuse("the server switched to something else than WebSocket") }
        guard values("sec-websocket-accept") == [try WebSocketKey.accept(key)] else {
            throw refuse("the server's sec-websocket-accept doesn't belong to the request")
        }
        guard values("sec-websocket-protocol").isEmpty else {
            throw refuse("the server chose a subprotocol that wasn't offered")
        }
        guard let extensions = WebSocketExtension.parse(values("sec-websocket-extensions")) else {
            throw refuse("the server's sec-websocket-extensions is malformed")
        }
        guard let first = extensions.first else { return nil }
        guard offersCompression, extensions.count == 1, let deflate = WebSocketDeflate.confirmed(first) else {
            throw refuse("the server chose extensions that weren't offered")
        }
        return deflate
    }
}
