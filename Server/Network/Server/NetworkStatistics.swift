/// A server's counters, summed over its loops.
package struct NetworkStatistics: Sendable, Equatable {
    package var connectionsAccepted = 0
    package var connectionsOpen = 0
    /// Closed immediately: too many connections, or plaintext on a TLS port; or at the start of the handshake: too many
    /// with TLS.
    package var connectionsRefused = 0
    /// Closed without a request, because others wanted to connect.
    package var connectionsDisplaced = 0
    package var streamsOpen = 0
    package var httpRequests = 0
    package var grpcCalls = 0
    package var bytesReceived = 0
    package var bytesSent = 0
    /// Connections and streams closed because a peer took too long.
    package var timeouts = 0
    /// Connections closed with ENHANCE_YOUR_CALM: resets or control frames beyond the limits.
    package var abuses = 0
    /// Requests that violated the protocol or a size limit.
    package var badRequests = 0
    /// Faults of the program that cost a connection or a request.
    package var brokenInvariants = 0
    package var webSocketsOpened = 0
    package var webSocketsOpen = 0
    package var webSocketMessagesReceived = 0
    package var webSocketMessagesSent = 0
    package var tlsHandshakesOpen = 0
    /// Connections whose hello has arrived, and whose handshake may not begin yet.
    package var tlsHandshakesWaiting = 0
    package var tlsConnectionsOpen = 0
    /// Connections whose peers have sent a part of a TLS record.
    package var tlsPartialRecords = 0
    /// Until the certificate of new connections expires; negative afterwards, nil without TLS.
    package var certificateSecondsLeft: Int?

    package init() {}
}
