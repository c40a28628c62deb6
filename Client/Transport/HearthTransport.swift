import HearthHTTPClient
import HearthModel

// HearthTransport: the client's gRPC calls, WebSockets and sockets, on the thread of `HearthHTTPClient`.
//
// - `GRPCChannel` makes gRPC calls to one server: unary and collected calls (`unary`, `collect`) and streams
//   (`openStream`).
// - `RawConnection` is a socket without a protocol, plain or TLS, through the same proxies.
// - `WebSocketClient` is a WebSocket over such a connection.
// - `RawSocket` is the base of streams and raw connections: a TCP connection by libcurl, with TLS by OpenSSL over
//   memory (`TLSClientSession`). Calls and plain requests use libcurl's TLS.
// - `NetworkMonitor` notifies when the machine's addresses or routes change.
//
// Invariants: user code runs on the transport's thread, outside of libcurl's callbacks, one event after another, and
// must not block. After a cancellation no event is delivered, except one whose delivery on the transport's thread has
// begun while another thread cancels. Every buffer is bounded by `GRPCLimits` and `TransportLimits`.
//
// libcurl's own rules about connections are not enough for gRPC (see `GRPCConnections`): this module decides which
// request may use which connection, and enforces it in libcurl's callbacks.

/// The limits of gRPC calls and streams.
package enum GRPCLimits {
    /// Bytes of one received message, after decompression; larger ones fail with RESOURCE_EXHAUSTED.
    package static let messageBytesMax = 64 << 20
    /// Bytes of all messages that `collect` collects; more fail with RESOURCE_EXHAUSTED.
    package static let collectedBytesMax = 512 << 20
    /// When this number of bytes is held for a paused consumer, no more are read. The input of one tick of libcurl can
    /// be added.
    package static let heldBytesMax = 256 << 10
    /// Connections of a channel that calls share. Each carries as many calls as the server allows, usually 100.
    package static let sharedConnectionsMax = 8
    /// Bytes of a request that uses a shared connection; larger ones use a connection of their own.
    static let sharedRequestBytesMax = 32 << 10
    /// Streams are closed when a PING is not answered for this time.
    package static let pingAnswerMilliseconds = 15_000
}
