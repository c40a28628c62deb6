/// What a peer may make a `WebSocketConnection` buffer or process.
package struct WebSocketLimits: Sendable, Equatable {
    /// Bytes of one message, after decompression. Exceeding it closes with code 1009.
    package var messageBytesMax: Int
    /// Frames of one message: without this, empty frames could continue a message forever. Exceeding it closes with
    /// code 1008.
    package var fragmentsMax: Int
    /// Smaller messages are not compressed: compression costs more than it saves.
    package var compressionThresholdBytes: Int

    package init(
        messageBytesMax: Int = 16 << 20, fragmentsMax: Int = 65_536, compressionThresholdBytes: Int = 1_024
    ) {
        precondition(messageBytesMax >= 0 && fragmentsMax > 0 && compressionThresholdBytes >= 0)
        self.messageBytesMax = messageBytesMax
        self.fragmentsMax = fragmentsMax
        self.compressionThresholdBytes = compressionThresholdBytes
    }
}
