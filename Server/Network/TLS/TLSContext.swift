import COpenSSL
import Glibc
import HearthModel
import HearthTLS

extension TLSContext {
    /// A server's context. Throws a sentence that names the file when the certificate or key can't be used.
    static func server(_ configuration: TLSConfiguration) throws(Status) -> TLSContext {
        let context = try TLSContext(.server)
        try context.use(
            "server", certificatePath: configuration.certificatePath, keyPath: configuration.keyPath,
            password: .terminal)
        SSL_CTX_set_alpn_select_cb(context.pointer, selectProtocol, nil)
        return context
    }

    /// A client's context. Without a file of trusted certificates the system's are used.
    package static func client(trustedCertificatesPath: String?, protocols: [String]) throws(Status) -> TLSContext {
        let context = try TLSContext(.client)
        try context.trust(trustedCertificatesPath)
        SSL_CTX_set_verify(context.pointer, SSL_VERIFY_PEER, nil)
        let wire = ALPN.offer(protocols)
        // Zero means success in this one function.
        guard SSL_CTX_set_alpn_protos(context.pointer, wire, UInt32(wire.count)) == 0 else {
            throw TLSFailure.status("\(protocols) cannot be offered")
        }
        return context
    }
}

/// ALPN of the server: HTTP/2 when the client knows it, else HTTP/1.1; a client with neither goes on without.
private func selectProtocol(
    _ session: OpaquePointer?, _ selected: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
    _ selectedLength: UnsafeMutablePointer<UInt8>?, _ offered: UnsafePointer<UInt8>?, _ offeredLength: UInt32,
    _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let selected, let selectedLength, let offered else { return SSL_TLSEXT_ERR_NOACK }
    for name in ["h2", "http/1.1"] {
        let wanted = Array(name.utf8)
        var position = 0
        while position < Int(offeredLength) {
            let length = Int(offered[position])
            guard position + 1 + length <= Int(offeredLength) else { return SSL_TLSEXT_ERR_ALERT_FATAL }
            if length == wanted.count && (0..<length).allSatisfy({ offered[position + 1 + $0] == wanted[$0] }) {
                // Points into the client's offer, which OpenSSL allows and copies.
                selected.pointee = offered + position + 1
                selectedLength.pointee = UInt8(length)
                return SSL_TLSEXT_ERR_OK
            }
            position += 1 + length
        }
    }
    return SSL_TLSEXT_ERR_NOACK
}

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
