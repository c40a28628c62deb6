import HearthWebSocket

/// The WebSocket options of one connection.
package struct WebSocketOptions: Sendable {
    /// Bytes of one message, after decompression; larger ones close the connection with 1009.
    package var messageBytesMax: Int
    /// Messages of at least this size are compressed for clients that offer permessage-deflate; nil: never, and clients
    /// may not compress either. Off by default: on a local network it costs more than it saves.
    package var compressionThresholdBytes: Int?
    /// Both ends may keep a window between messages: fewer bytes to send, and up to 300 KB more for each connection.
    package var takesOverContext: Bool
    /// `send` returns false above this many queued bytes; nil: as for other responses.
    package var highWaterBytes: Int?
    /// The subprotocol to select when the client offers it.
    package var subprotocol: String?
    /// Further fields of the 101 response.
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
