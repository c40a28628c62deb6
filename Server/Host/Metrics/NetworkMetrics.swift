import HearthNetwork

/// Metrics of connections, requests and WebSockets.
enum NetworkMetrics {
    static func write(_ network: NetworkStatistics, to string: inout MetricsWriter) {
        let figures: [(String, MetricsWriter.Kind, String, Int)] = [
            ("hearth_connections_open", .gauge, "Connections that are open.", network.connectionsOpen),
            ("hearth_connections_total", .counter, "Connections that were accepted.", network.connectionsAccepted),
            (
                "hearth_connections_refused_total", .counter,
                "Connections closed immediately: too many in use, or not TLS.",
                network.connectionsRefused
            ),
            (
                "hearth_connections_displaced_total", .counter,
                "Connections without a request that were closed because others wanted to connect.",
                network.connectionsDisplaced
            ),
            ("hearth_streams_open", .gauge, "HTTP/2 streams that are open.", network.streamsOpen),
            ("hearth_received_bytes_total", .counter, "Bytes received.", network.bytesReceived),
            ("hearth_sent_bytes_total", .counter, "Bytes sent.", network.bytesSent),
            (
                "hearth_timeouts_total", .counter, "Connections and streams closed because they were too slow.",
                network.timeouts
            ),
            ("hearth_abuses_total", .counter, "Connections that exceeded a rate limit.", network.abuses),
            ("hearth_bad_requests_total", .counter, "Requests that violated the protocol.", network.badRequests),
            (
                "hearth_broken_invariants_total", .counter,
                "Faults of the program that cost a connection or a request.",
                network.brokenInvariants
            ),
            ("hearth_websockets_open", .gauge, "WebSockets that are open.", network.webSocketsOpen),
            ("hearth_websockets_total", .counter, "WebSockets that were opened.", network.webSocketsOpened),
            (
                "hearth_websocket_messages_received_total", .counter, "Messages received over WebSockets.",
                network.webSocketMessagesReceived
            ),
            (
                "hearth_websocket_messages_sent_total", .counter, "Messages sent over WebSockets.",
                network.webSocketMessagesSent
            ),
        ]
        for (name, kind, help, value) in figures {
            string.family(name, kind, help)
            string.sample(name, [], value)
        }
        writeTLS(network, to: &string)
    }

    private static func writeTLS(_ network: NetworkStatistics, to string: inout MetricsWriter) {
        guard let seconds = network.certificateSecondsLeft else { return }
        string.family(
            "hearth_tls_certificate_expiry_seconds", .gauge, "Seconds until the certificate of new connections expires."
        )
        string.sample("hearth_tls_certificate_expiry_seconds", [], seconds)
        string.family("hearth_tls_connections", .gauge, "Connections with TLS, by state.")
        string.sample("hearth_tls_connections", [("state", "open")], network.tlsConnectionsOpen)
        string.sample("hearth_tls_connections", [("state", "handshaking")], network.tlsHandshakesOpen)
        string.sample("hearth_tls_connections", [("state", "waiting")], network.tlsHandshakesWaiting)
        string.family(
            "hearth_tls_partial_records", .gauge, "Connections of which a part of a TLS record has arrived.")
        string.sample("hearth_tls_partial_records", [], network.tlsPartialRecords)
    }
}
