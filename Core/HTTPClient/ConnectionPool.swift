import CCurl
import CNetlink
import Glibc
import HearthModel

/// Connections that are reused by the transfers of this pool only. libcurl's multi handle has one pool for all
/// transfers. In that pool a gRPC call could use an HTTP/1.1 connection, or be blocked by a stream that nobody reads.
///
/// The loop creates it, and closes it when no transfer uses it any more. Used on the loop's thread.
package final class ConnectionPool {
    package let share: UnsafeMutableRawPointer
    package private(set) var socketCount = 0
    private let counters: TransportCounters
    private var isClosed = false

    package init(counters: TransportCounters) throws(Status) {
        guard let share = curl_pool_new() else { throw .resourceExhausted("libcurl has no memory") }
        self.share = share
        self.counters = counters
    }

    deinit { assert(isClosed, "the loop closes its pools") }

    /// Closes all connections. Called by the loop.
    package func close() {
        guard !isClosed else { return }
        isClosed = true
        let code = curl_share_cleanup(share)
        precondition(code == CURLSHE_OK, "a pool of connections is closed while transfers use it")
    }

    /// libcurl calls this to open a socket.
    func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        let kind = address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(address.pointee.family, kind, address.pointee.protocol)
        guard descriptor >= 0 else { return -1 }
        if address.pointee.family == AF_INET || address.pointee.family == AF_INET6 {
            _ = socket_set_user_timeout(descriptor, UInt32(TransportLimits.unacknowledgedMilliseconds))
        }
        socketCount += 1
        counters.sockets.add(1, ordering: .relaxed)
        counters.socketsOpened.add(1, ordering: .relaxed)
        return descriptor
    }

    fileprivate func closeSocket(_ descriptor: curl_socket_t) -> Int32 {
        socketCount -= 1
        counters.sockets.subtract(1, ordering: .relaxed)
        return Glibc.close(descriptor)
    }
}

/// libcurl stores the pool with the connection, which may live as long as the pool.
func closePooledSocket(_ context: UnsafeMutableRawPointer?, _ descriptor: curl_socket_t) -> Int32 {
    guard let context else { return Glibc.close(descriptor) }
    return Unmanaged<ConnectionPool>.fromOpaque(context).takeUnretainedValue().closeSocket(descriptor)
}
