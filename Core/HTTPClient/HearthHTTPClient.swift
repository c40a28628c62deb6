// HearthHTTPClient: outgoing HTTP over libcurl's multi interface, on one thread of its own.
//
// - `Transport` owns that thread. All types below run on it; other threads pass work to it through a mailbox.
// - `HTTPClient` makes requests, whose responses arrive in pieces.
// - `TransportLoop`, `Transfer` and `ConnectionPool` are what the client's gRPC is built on, too.
//
// Invariants: user code runs on the transport's thread, outside of libcurl's callbacks, one event after another, and
// must not block. After a cancellation no event is delivered, except one whose delivery on the transport's thread has
// begun while another thread cancels.

/// The limits of connections and responses.
package enum TransportLimits {
    /// Bytes of one response's head or trailers; larger ones fail with RESOURCE_EXHAUSTED.
    package static let headBytesMax = 256 << 10
    /// Idle connections that stay open, in total.
    package static let idleConnectionsMax = 32
    /// Connections are probed, by TCP and for streams by PING, after this time without input…
    package static let keepAliveIdleSeconds = 30
    /// …again after this time…
    static let keepAliveIntervalSeconds = 10
    /// …and are broken when no data was acknowledged for this time.
    static let unacknowledgedMilliseconds = 45_000
}
