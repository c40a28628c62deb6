import HearthWebSocket

/// How a server speaks WebSocket on one connection.
package struct WebSocketOptions: Sendable {
    /// Bytes of one message, after decompression; close code 1009 above it.
    package var messageBytesMax: Int
    /// Messages of at least this many bytes are compressed for clients that offer permessage-deflate; nil: never, and
    /// clients may not compress either. Off by default: on a local network it costs more than it saves.
    package var compressionThresholdBytes: Int?
    /// Both ends may keep a window between messages: less on the wire, and up to 300 KB more for each connection.
    package var takesOverContext: Bool
    /// `send` returns false above this many queued bytes; nil: as for other answers.
    package var highWaterBytes: Int?
    /// Chosen when the client names it among those it speaks.
    package var subprotocol: String?
    /// Further fields of the answer 101.
    package var headers: [HTTPHeader]

    package init(
        messageBytesMax: Int = 16 << 20, compressionThresholdBytes: Int? = nil, takesOverContext: Bool = false,
        highWaterBytes: Int? = nil, subprotocol: String? = nil, headers: [HTTPHeader] = []
    ) {
        self.messageBytesMax = messageBytesMax
        self.compressionThresholdBytes = compressionThresholdBytes
        self.takesOverContext = takesOverContext
        self.highWaterBytes = highWaterBytes
        self.subprotocol = subprotocol
        self.headers = headers
    }

    var limits: WebSocketLimits {
        WebSocketLimits(messageBytesMax: messageBytesMax, compressionThresholdBytes: compressionThresholdBytes ?? 0)
    }
}

/// How a connection came to its end.
package enum WebSocketEnd: Sendable, Equatable {
    /// The client's close frame.
    case closedByPeer(WebSocketCloseCode?, reason: String)
    /// Our own `close`, or the server is going down.
    case closed
    /// The client broke the protocol or a limit.
    case violation(WebSocketFailure)
    /// Nothing came for too long, pings notwithstanding.
    case timedOut
    /// Broken off without a close frame.
    case connectionLost
}
