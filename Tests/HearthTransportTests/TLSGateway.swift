import COpenSSL
import Glibc
import HearthModel
import HearthTestCertificates
import HearthTestSupport
import Synchronization

/// A TLS server that forwards decrypted data to a plaintext server, and records the parameters of the handshake.
final class TLSGateway: Sendable {
    /// Its answer to ALPN.
    enum Agreement: Sendable { case http2, http1, nothing }

    struct Notes: Sendable {
        /// The agreed protocol, as OpenSSL reports it.
        var agreed: [String] = []
        /// The client's certificate.
        var clients: [String] = []
        /// The server name of SNI.
        var serverNames: [String] = []
        var orderlyEnds = 0
    }

    private final class Shared: @unchecked Sendable {
        // Set before the threads start; OpenSSL's reference count is atomic.
        let context: OpaquePointer
        let notes = Mutex(Notes())

        init(_ context: OpaquePointer) { self.context = context }
        deinit { SSL_CTX_free(context) }
    }

    private let shared: Shared
    private let listener: TestListener

    /// - Parameter clientAuthorityPath: the authority of required client certificates; nil: none is required.
    init(
        to port: Int, files: Certificates.Files = Certificates.shared.server, agreement: Agreement = .http2,
        clientAuthorityPath: String? = nil, cutsAfterBytes: Int? = nil
    ) throws {
        guard let context = SSL_CTX_new(TLS_server_method()),
            SSL_CTX_use_certificate_chain_file(context, files.certificatePath) == 1,
            SSL_CTX_use_PrivateKey_file(context, files.keyPath, SSL_FILETYPE_PEM) == 1
        else { throw Status.internalError("no TLS") }
        tls_set_server_options(context)
        if let clientAuthorityPath {
            guard SSL_CTX_load_verify_file(context, clientAuthorityPath) == 1 else {
                throw Status.internalError("no authority")
            }
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        }
        switch agreement {
        case .http2: SSL_CTX_set_alpn_select_cb(context, { agree("h2", $1, $2, $5) }, nil)
        case .http1: SSL_CTX_set_alpn_select_cb(context, { agree("http/1.1", $1, $2, $5) }, nil)
        case .nothing: break
        }
        let shared = Shared(context)
        self.shared = shared
        listener = try TestListener { Self.serve($0, shared, port, cutsAfterBytes) }
    }

    var port: Int { listener.port }
    var notes: Notes { shared.notes.withLock { $0 } }

    private static func serve(_ client: Int32, _ shared: Shared, _ port: Int, _ cutsAfterBytes: Int?) {
        guard let session = SSL_new(shared.context) else { return }
        defer { SSL_free(session) }
        SSL_set_fd(session, client)
        let result = SSL_accept(session)
        note(session, shared)
        guard result == 1, let server = TestSocket.connect(port: port) else {
            // So that the alert arrives, and is not lost in a reset.
            shutdown(client, Int32(SHUT_WR))
            while !TestSocket.receive(client).isEmpty {}
            return
        }
        defer { close(server) }
        relay(session, client, server, shared, cutsAfterBytes)
    }

    private static func note(_ session: OpaquePointer, _ shared: Shared) {
        var name: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(session, &name, &count)
        let agreed = String(decoding: UnsafeBufferPointer(start: name, count: Int(count)), as: UTF8.self)
        let serverName = SSL_get_servername(session, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
        var subject: String?
        if let certificate = SSL_get0_peer_certificate(session) {
            var string = [CChar](repeating: 0, count: 256)
            X509_NAME_oneline(X509_get_subject_name(certificate), &string, Int32(string.count))
            subject = String(decoding: string.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
        shared.notes.withLock { notes in
            notes.agreed.append(agreed)
            notes.serverNames.append(serverName ?? "")
            if let subject { notes.clients.append(subject) }
        }
    }

    private static func relay(
        _ session: OpaquePointer, _ client: Int32, _ server: Int32, _ shared: Shared, _ cutsAfterBytes: Int?
    ) {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        var carried = 0
        while true {
            guard let ready = TestSocket.waitForEither(client, server, milliseconds: Int32(Patience.milliseconds))
            else { return }
            if ready.0 {
                repeat {
                    let count = SSL_read(session, &chunk, Int32(chunk.count))
                    guard count > 0 else {
                        if SSL_get_error(session, count) == SSL_ERROR_ZERO_RETURN {
                            shared.notes.withLock { $0.orderlyEnds += 1 }
                        }
                        return
                    }
                    guard TestSocket.sendAll(server, Array(chunk[..<Int(count)])) else { return }
                } while SSL_pending(session) > 0
            }
            if ready.1 {
                let bytes = TestSocket.receive(server)
                guard !bytes.isEmpty else {
                    SSL_shutdown(session)
                    return
                }
                guard SSL_write(session, bytes, Int32(bytes.count)) == bytes.count else { return }
                carried += bytes.count
                // Closes without a TLS close alert.
                if let cutsAfterBytes, carried >= cutsAfterBytes { return }
            }
        }
    }
}

/// Selects the protocol, whether it was offered or not.
private func agree(
    _ name: StaticString, _ selected: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
    _ selectedCount: UnsafeMutablePointer<UInt8>?, _ unused: UnsafeMutableRawPointer?
) -> Int32 {
    selected?.pointee = name.utf8Start
    selectedCount?.pointee = UInt8(name.utf8CodeUnitCount)
    return SSL_TLSEXT_ERR_OK
}
