/// A client's request for WebSocket, as a server reads it from the request head. Source: RFC 6455, 4.2.1.
package struct WebSocketUpgradeRequest: Sendable {
    private let key: String
    private let extensions: [WebSocketExtension]
    /// The subprotocols that the client supports, in order of preference.
    package let protocols: [String]

    /// - Parameter values: returns the values of all fields with a (lowercase) name, in order.
    package init(
        method: String, isHTTP1_1: Bool, values: (String) -> [String]
    ) throws(WebSocketHandshakeFailure) {
        guard isHTTP1_1 else {
            throw WebSocketHandshakeFailure(status: 400, reason: "a WebSocket handshake requires HTTP/1.1")
        }
        guard WebSocketFields.tokens(values("upgrade")).contains("websocket") else {
            throw WebSocketHandshakeFailure(status: 426, reason: "this resource requires a WebSocket upgrade")
        }
        guard method == "GET" else {
            throw WebSocketHandshakeFailure(status: 405, reason: "a WebSocket handshake must use GET")
        }
        guard WebSocketFields.tokens(values("connection")).contains("upgrade") else {
            throw WebSocketHandshakeFailure(status: 400, reason: "the connection field does not contain upgrade")
        }
        guard values("sec-websocket-version") == [HearthWebSocket.version] else {
            throw WebSocketHandshakeFailure(
                status: 426, reason: "the WebSocket version must be \(HearthWebSocket.version)")
        }
        let keys = values("sec-websocket-key")
        guard keys.count == 1, WebSocketKey.isValid(keys[0]) else {
            throw WebSocketHandshakeFailure(
                status: 400, reason: "the field sec-websocket-key must be 16 bytes in base64")
        }
        guard let extensions = WebSocketExtension.parse(values("sec-websocket-extensions")) else {
            throw WebSocketHandshakeFailure(status: 400, reason: "the field sec-websocket-extensions is malformed")
        }
        key = keys[0]
        self.extensions = extensions
        protocols = values("sec-websocket-protocol").flatMap { value in
            value.split(separator: ",").map { String($0.trimmed) }
        }
    }

    /// - Parameter takesOverContext: see `WebSocketDeflate`; nil: no compression.
    /// - Returns: the fields of the response 101, and the agreed compression.
    /// - Throws: when the server cannot answer the handshake.
    package func answer(
        takesOverContext: Bool?, subprotocol: String? = nil
    ) throws(WebSocketHandshakeFailure) -> (fields: [(name: String, value: String)], deflate: WebSocketDeflate?) {
        var fields = [
            (name: "upgrade", value: "websocket"), (name: "connection", value: "Upgrade"),
            (name: "sec-websocket-accept", value: try WebSocketKey.accept(key)),
        ]
        if let subprotocol { fields.append(("sec-websocket-protocol", subprotocol)) }
        guard let takesOverContext,
            let deflate = WebSocketDeflate.accepted(extensions, takesOverContext: takesOverContext)
        else { return (fields, nil) }
        fields.append(("sec-websocket-extensions", deflate.answer))
        return (fields, deflate)
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        var string = self
        while let first = string.first, first == " " || first == "\t" { string = string.dropFirst() }
        while let last = string.last, last == " " || last == "\t" { string = string.dropLast() }
        return string
    }
}
