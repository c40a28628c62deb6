import COpenSSL

/// Why a handshake failed, in terms of HTTP.
package struct WebSocketHandshakeFailure: Error, Hashable, Sendable {
    /// 400, 405 or 426.
    package var status: Int
    package var reason: String

    @inlinable package init(status: Int, reason: String) {
        self.status = status
        self.reason = reason
    }
}

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
    package func answer(
        takesOverContext: Bool?, subprotocol: String? = nil
    ) -> (fields: [(name: String, value: String)], deflate: WebSocketDeflate?) {
        var fields = [
            (name: "upgrade", value: "websocket"), (name: "connection", value: "Upgrade"),
            (name: "sec-websocket-accept", value: WebSocketKey.accept(key)),
        ]
        if let subprotocol { fields.append(("sec-websocket-protocol", subprotocol)) }
        guard let takesOverContext,
            let deflate = WebSocketDeflate.accepted(extensions, takesOverContext: takesOverContext)
        else { return (fields, nil) }
        fields.append(("sec-websocket-extensions", deflate.answer))
        return (fields, deflate)
    }
}

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

    @inlinable package init(offersCompression: Bool) {
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
        guard values("sec-websocket-accept") == [WebSocketKey.accept(key)] else {
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

enum WebSocketKey {
    /// 22 characters for 16 bytes, and two characters of padding.
    static func isValid(_ key: String) -> Bool {
        let bytes = Array(key.utf8)
        return bytes.count == 24 && bytes.suffix(2).elementsEqual("==".utf8)
            && bytes.prefix(22).allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
                    true
                default: false
                }
            }
    }

    /// Proves that the server has read the request and supports WebSocket. Source: RFC 6455, 4.2.2.
    static func accept(_ key: String) -> String {
        let string = Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)
        var digest = [UInt8](repeating: 0, count: 20)
        let isDone = EVP_Digest(string, string.count, &digest, nil, EVP_sha1(), nil) == 1
        precondition(isDone, "OpenSSL has no SHA-1")
        return base64(digest)
    }

    static func base64(_ bytes: [UInt8]) -> String {
        // Four characters for every three bytes, and a terminating zero.
        var string = [UInt8](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
        let count = EVP_EncodeBlock(&string, bytes, Int32(bytes.count))
        return String(decoding: string[..<Int(count)], as: UTF8.self)
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
