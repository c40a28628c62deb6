import HearthWebSocket

/// The cause of a connection's end.
package enum WebSocketEnd: Sendable, Equatable {
    /// The client's close frame.
    case closedByPeer(WebSocketCloseCode?, reason: String)
    /// The server's `close`, or its shutdown.
    case closed
    /// The client violated the protocol or a limit.
    case violation(WebSocketFailure)
    /// No input for too long, in spite of pings.
    case timedOut
    /// Closed without a close frame.
    case connectionLost
}
