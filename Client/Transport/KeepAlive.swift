import HearthHTTPClient
/// The intervals of PINGs that probe a stream's connection.
package struct KeepAlive: Sendable, Hashable {
    /// After this time without a byte a PING is sent…
    package var idleMilliseconds: Int
    /// …and after this time without an answer the stream ends with UNAVAILABLE.
    package var answerMilliseconds: Int

    package init(
        idleMilliseconds: Int = TransportLimits.keepAliveIdleSeconds * 1_000,
        answerMilliseconds: Int = GRPCLimits.pingAnswerMilliseconds
    ) {
        self.idleMilliseconds = idleMilliseconds
        self.answerMilliseconds = answerMilliseconds
    }
}
