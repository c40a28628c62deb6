import HearthConcurrency

/// Where and how a `NetworkServer` listens.
package struct ServerConfiguration: Sendable {
    /// An address or a host name. A name with several addresses (`localhost`) is listened to on each of them;
    /// an empty string or `*` means every interface.
    package var host: String
    /// 0 lets the system choose; `NetworkServer.port` has the chosen one.
    package var port: Int
    /// Further addresses at which the same is served.
    package var furtherAddresses: [ListeningAddress] = []
    /// Event loops, each with a thread. 0 means one for each core.
    package var loopCount: Int
    /// With TLS the port refuses plaintext.
    package var tls: TLSConfiguration?
    package var limits: NetworkLimits
    /// What all connections may hold of input that can't be worked on yet; nil: a budget of their own, of
    /// `NetworkLimits.bufferedInputBytesMax`.
    package var receivedBytes: MemoryBudget?
    /// Where the memory of answers that wait comes from, beyond `Limits.answersOwnBytes`; nil: all of
    /// `NetworkLimits.answersBytesMax` may be used, whatever else is.
    package var pool: MemoryPool?
    /// Is notified of faults of the program that cost a connection or a request.
    package var brokenInvariants = BrokenInvariants()
    /// gRPC answers of at least this many bytes are compressed for clients that accept gzip; nil: never. Off by
    /// default: on a local network it costs more than it saves.
    package var grpcCompressionThresholdBytes: Int?

    package init(
        host: String = "127.0.0.1", port: Int = 0, loopCount: Int = 0, tls: TLSConfiguration? = nil,
        limits: NetworkLimits = NetworkLimits(), grpcCompressionThresholdBytes: Int? = nil
    ) {
        self.host = host
        self.port = port
        self.loopCount = loopCount
        self.tls = tls
        self.limits = limits
        self.grpcCompressionThresholdBytes = grpcCompressionThresholdBytes
    }
}
