/// WebSocket (RFC 6455) with permessage-deflate (RFC 7692) for either end, without I/O.
///
/// `WebSocketConnection` is the protocol after the handshake: bytes of the peer go in and events come out, messages go
/// in and bytes for the peer come out. `WebSocketUpgradeRequest` is the server's half of the handshake,
/// `WebSocketUpgradeOffer` the client's; neither depends on an HTTP implementation.
///
/// Invariants: no data of a peer is buffered beyond `WebSocketLimits`, however it is split, fragmented or compressed;
/// every delivered string is valid UTF-8; after a violation or the peer's close nothing more is read.
package enum HearthWebSocket {
    /// The only version of the protocol. Source: RFC 6455, 4.1.
    package static let version = "13"
}
