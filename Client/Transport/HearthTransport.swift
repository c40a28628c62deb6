import HearthModel

// HearthTransport: how the client reaches servers, over libcurl's multi interface on one thread of its own.
//
// - `Transport` is that thread. Everything below runs on it; other threads hand work over through a mailbox.
// - `GRPCChannel` makes gRPC calls to one server: whole requests (`unary`, `collect`) and streams (`openStream`).
// - `HTTPClient` makes plain requests, whose answers come in pieces.
// - `RawConnection` is a socket without a protocol, plain or TLS, through the same proxies.
// - `WebSocketClient` is a WebSocket over such a connection.
// - `RawSocket` is beneath streams and raw connections: a TCP connection by libcurl, with TLS by OpenSSL over memory
//   (`TLSClientSession`). Calls and plain requests have libcurl's own TLS.
// - `NetworkMonitor` tells when the machine's addresses or routes change.
//
// What holds at all times: user code runs on the transport's thread, outside of libcurl's callbacks, one event after
// another, and must not block. Nothing is delivered after a cancellation, except an event that is just being delivered
// on the transport's thread while another thread cancels. Every buffer is bounded by `TransportLimits`.
//
// libcurl's own rules about connections are not enough for gRPC (see `GRPCConnections`): which request may use which
// connection is decided here, and enforced in libcurl's callbacks.

/// The bounds of the transport.
package enum TransportLimits {
    /// Bytes of one received gRPC message, after decompression; RESOURCE_EXHAUSTED above it.
    package static let messageBytesMax = 64 << 20
    /// Bytes of all messages that `collect` gathers; RESOURCE_EXHAUSTED above it.
    package static let collectedBytesMax = 512 << 20
    /// With so many bytes held for a consumer that has paused, no more are read. What libcurl reads in one turn can come
    /// on top.
    package static let heldBytesMax = 256 << 10
    /// Bytes of one answer's head or trailers; RESOURCE_EXHAUSTED above it.
    package static let headBytesMax = 256 << 10
    /// Connections of a channel that calls share. Each carries as many calls as the server allows, mostly 100.
    package static let sharedConnectionsMax = 8
    /// Bytes of a request that goes over a shared connection; larger ones get a connection of their own.
    static let sharedRequestBytesMax = 32 << 10
    /// Idle connections that are kept, all together.
    static let idleConnectionsMax = 32
    /// Connections are probed, by TCP and for streams by PING, when nothing came for so long…
    package static let keepAliveIdleSeconds = 30
    /// …again after so long…
    static let keepAliveIntervalSeconds = 10
    /// …are given up when a PING isn't answered for so long…
    package static let pingAnswerMilliseconds = 15_000
    /// …and are broken when nothing was acknowledged for so long.
    static let unacknowledgedMilliseconds = 45_000
}
