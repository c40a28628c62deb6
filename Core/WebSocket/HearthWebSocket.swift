/// WebSocket (RFC 6455) with permessage-deflate (RFC 7692) for either end, without I/O.
///
/// `WebSocketConnection` is what happens after the handshake: bytes of the peer go in and events come out, messages go
/// in and bytes for the peer come out. `WebSocketUpgradeRequest` is the server's half of the handshake,
/// `WebSocketUpgradeOffer` the client's; neither knows how HTTP is carried.
///
/// What holds at all times: nothing that a peer sends is kept beyond `WebSocketLimits`, however it is cut, fragmented
/// or compressed; a text that is handed out is valid UTF-8; after a violation or the peer's close nothing more is read.
package enum HearthWebSocket {
    /// The only version there is. Source: RFC 6455, 4.1.
    package static let version = "13"
}
