import HearthModel

// HearthTransport: the client's connections to servers, over libcurl's multi interface on one thread of its own.
//
// - `Transport` owns that thread. All types below run on it; other threads pass work to it through a mailbox.
// - `GRPCChannel` makes gRPC calls to one server: unary and collected calls (`unary`, `collect`) and streams
//   (`openStream`).
// - `HTTPClient` makes plain requests, whose responses arrive in pieces.
// - `RawConnection` is a socket without a protocol, plain or TLS, through the same proxies.
// - `WebSocketClient` is a WebSocket over such a connection.
// - `RawSocket` is the base of streams and raw connections: a TCP connection by libcurl, with TLS by OpenSSL over
//   memory (`TLSClientSession`). Calls and plain requests use libcurl's TLS.
// - `NetworkMonitor` notifies when the machine's addresses or routes change.
//
// Invariants: user code runs on the transport's thread, outside of libcurl's callbacks, one event after another, and
// must not block. After a cancellation no event is delivered, except one whose delivery on the transport's thread has
// begun while another thread cancels. Every buffer is bounded by `TransportLimits`.
//
// libcurl's own rules about connections are not enough for gRPC (see `GRPCConnections`): this module decides which
// request may use which connection, and enforces it in libcurl's callbacks.

/// The limits of the transport.
package enum TransportLimits {
    /// Bytes of one received gRPC message, after decompression; larger ones fail with RESOURCE_EXHAUSTED.
    package static let messageBytesMax = 64 << 20
    /// Bytes of all messages that `collect` collects; more fail with RESOURCE_EXHAUSTED.
    package static let collectedBytesMax = 512 << 20
    /// When this number of bytes is held for a paused consumer, no more are read. The input of one tick of libcurl can
    /// be added.
    package static let heldBytesMax = 256 << 10
    /// Bytes of one response's head or trailers; larger ones fail with RESOURCE_EXHAUSTED.
    package static let headBytesMax = 256 << 10
    /// Connections of a channel that calls share. Each carries as many calls as the server allows, usually 100.
    package static let sharedConnectionsMax = 8
    /// Bytes of a request that uses a shared connection; larger ones use a connection of their own.
    static let sharedRequestBytesMax = 32 << 10
    /// Idle connections that stay open, in total.
    static let idleConnectionsMax = 32
    /// Connections are probed, by TCP and for streams by PING, after this time without input…
    package static let keepAliveIdleSeconds = 30
    /// …again after this time…
    static let keepAliveIntervalSeconds = 10
    /// …are closed when a PING is not answered for this time…
    package static let pingAnswerMilliseconds = 15_000
    /// …and are broken when no data was acknowledged for this time.
    static let unacknowledgedMilliseconds = 45_000
}
