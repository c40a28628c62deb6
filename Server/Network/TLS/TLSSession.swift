import COpenSSL
import HearthTLS

/// TLS of one connection, over its non-blocking socket.
package final class TLSSession {
    enum Handshake { case done, wantsRead, wantsWrite, failed }

    private let session: OpaquePointer
    private(set) var isEstablished = false

    /// As a server when `serverName` is nil, else as a client that checks that name in the certificate.
    package init?(context: TLSContext, descriptor: Int32, serverName: String? = nil) {
        guard let session = SSL_new(context.pointer) else { return nil }
        self.session = session
        guard SSL_set_fd(session, descriptor) == 1 else { return nil }
        if let serverName {
            _ = tls_set_server_name(session, serverName)
            guard SSL_set1_host(session, serverName) == 1 else { return nil }
            SSL_set_connect_state(session)
        } else {
            SSL_set_accept_state(session)
        }
    }

    deinit { SSL_free(session) }

    /// The protocol chosen by ALPN.
    var applicationProtocol: String? { ALPN.agreed(in: session) }

    var hasBufferedInput: Bool { tls_has_buffered_input(session) != 0 }

    /// Whether OpenSSL holds a buffer for a record of which only a part has arrived.
    var holdsPartialRecord: Bool { tls_holds_partial_record(session) != 0 }

    func continueHandshake() -> Handshake {
        ERR_clear_error()
        let result = SSL_do_handshake(session)
        if result == 1 {
            isEstablished = true
            return .done
        }
        switch SSL_get_error(session, result) {
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE: return .wantsWrite
        default: return .failed
        }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult {
        ERR_clear_error()
        let result = SSL_read(session, buffer.baseAddress, Int32(clamping: buffer.count))
        if result > 0 { return .bytes(Int(result)) }
        switch SSL_get_error(session, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return .wouldBlock
        case SSL_ERROR_ZERO_RETURN: return .end
        default: return .failed
        }
    }

    /// Bytes written, 0 when the socket is full, nil when the connection is broken.
    func write(_ bytes: UnsafeRawBufferPointer) -> Int? {
        ERR_clear_error()
        let result = SSL_write(session, bytes.baseAddress, Int32(clamping: bytes.count))
        if result > 0 { return Int(result) }
        switch SSL_get_error(session, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return 0
        default: return nil
        }
    }

    /// Notifies the peer that nothing follows.
    func sendClose() {
        ERR_clear_error()
        // Whether it still reaches the peer doesn't matter: the socket is closed after it.
        _ = SSL_shutdown(session)
    }
}

enum ReadResult {
    case bytes(Int)
    case wouldBlock
    case end
    case failed
}
