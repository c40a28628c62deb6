/// What a peer may make a `WebSocketConnection` keep or do.
package struct WebSocketLimits: Sendable, Equatable {
    /// Bytes of one message; of a compressed one as it is after decompression. Close code 1009 above it.
    package var messageBytesMax: Int
    /// Frames of one message: empty ones would otherwise let it never end. Close code 1008 above it.
    package var fragmentsMax: Int
    /// Messages of fewer bytes are sent as they are: compressing them costs more than it saves.
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
