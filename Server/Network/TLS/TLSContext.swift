import COpenSSL
import Glibc
import HearthModel

/// What TLS connections share: certificate, key, protocol versions, ALPN.
///
/// `@unchecked Sendable`: an `SSL_CTX` that is no longer changed is used by many threads (its reference count is
/// atomic); we configure it fully before anyone else sees it.
package final class TLSContext: @unchecked Sendable {
    fileprivate let context: OpaquePointer

    private init(context: OpaquePointer) { self.context = context }

    deinit { SSL_CTX_free(context) }

    /// A server's context. Throws a sentence that names the file when the certificate or key can't be used.
    static func server(_ configuration: TLSConfiguration) throws(Status) -> TLSContext {
        guard let context = SSL_CTX_new(TLS_server_method()) else { throw lastError("cannot set up TLS") }
        let result = TLSContext(context: context)
        _ = tls_set_minimum_version_1_2(context)
        tls_set_modes(context)
        tls_set_server_options(context)
        let certificate = configuration.certificatePath
        guard SSL_CTX_use_certificate_chain_file(context, certificate) == 1 else {
            throw lastError("cannot use the certificate \(certificate)")
        }
        guard SSL_CTX_use_PrivateKey_file(context, configuration.keyPath, SSL_FILETYPE_PEM) == 1 else {
            throw lastError("cannot use the private key \(configuration.keyPath)")
        }
        guard SSL_CTX_check_private_key(context) == 1 else {
            throw lastError("the key \(configuration.keyPath) doesn't belong to the certificate \(certificate)")
        }
        SSL_CTX_set_alpn_select_cb(context, selectProtocol, nil)
        return result
    }

    /// A client's context. Without a file of trusted certificates the system's are used.
    package static func client(trustedCertificatesPath: String?, protocols: [String]) throws(Status) -> TLSContext {
        guard let context = SSL_CTX_new(TLS_client_method()) else { throw lastError("cannot set up TLS") }
        let result = TLSContext(context: context)
        _ = tls_set_minimum_version_1_2(context)
        tls_set_modes(context)
        if let path = trustedCertificatesPath {
            guard SSL_CTX_load_verify_locations(context, path, nil) == 1 else {
                throw lastError("cannot use the trusted certificates \(path)")
            }
        } else {
            SSL_CTX_set_default_verify_paths(context)
        }
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        let wire = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        // Zero means success in this one function.
        guard SSL_CTX_set_alpn_protos(context, wire, UInt32(wire.count)) == 0 else {
            throw lastError("cannot offer \(protocols)")
        }
        return result
    }

    fileprivate static func lastError(_ what: String) -> Status {
        var buffer = [CChar](repeating: 0, count: 256)
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0 else { return Status(.failedPrecondition, what) }
        ERR_error_string_n(code, &buffer, buffer.count)
        return Status(
            .failedPrecondition,
            what + ": "
                + buffer.withUnsafeBufferPointer { string in
                    string.baseAddress.map { String(cString: $0) } ?? ""
                })
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
        guard let session = SSL_new(context.context) else { return nil }
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
    var applicationProtocol: String? {
        var name: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        SSL_get0_alpn_selected(session, &name, &length)
        guard let name, length > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
    }

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

    /// Tells the peer that nothing follows.
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
