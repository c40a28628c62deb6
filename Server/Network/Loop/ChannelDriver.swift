import HearthConcurrency

/// A protocol over a `SocketChannel`. All calls are made on the loop's thread.
package protocol ChannelDriver: AnyObject {
    /// The TLS handshake is complete; the ALPN protocol, when there is one. Never called on plaintext.
    func secured(applicationProtocol: String?)
    /// Bytes arrived; they are valid during the call only.
    func received(_ bytes: UnsafeRawBufferPointer)
    /// The peer closed its side (or its whole connection).
    func receivedEnd()
    /// Append output as far as the buffer has space. Called again until nothing is appended. The channel is closed when
    /// it throws.
    func produceOutput(into scratch: OutputScratch) throws(BrokenInvariant)
    /// A flush has ended: producers may be notified of free space.
    func outputFlushed()
    /// The socket is closed. Called once.
    func channelClosed()
    /// Called at intervals with the loop's time.
    func checkTimeouts(now: UInt64)
    /// The server shuts down: accept no new requests, close when the open ones are complete.
    func beginShutdown()
    /// The grace period is over.
    func endShutdown()
    /// Since when the connection has had no request, in monotonic nanoseconds; nil while it has one.
    var idleSince: UInt64? { get }
    /// Closes an idle connection at once.
    func closeIdle()
    /// Waiting response bytes, and when some of them were last sent.
    var waitingAnswers: (bytes: Int, since: UInt64) { get }
}

extension ChannelDriver {
    package func secured(applicationProtocol: String?) {}
    package func outputFlushed() {}
    package func checkTimeouts(now: UInt64) {}
    package func beginShutdown() {}
    package func endShutdown() {}
    package var idleSince: UInt64? { nil }
    package func closeIdle() {}
    package var waitingAnswers: (bytes: Int, since: UInt64) { (0, 0) }
}
