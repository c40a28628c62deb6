import COpenSSL
import Glibc
import HearthHTTPClient
import HearthModel
import HearthTLS

/// TLS of one connection as a client, without I/O: bytes of the network go in and come out, and so do the
/// application's. libcurl 7.88 can't be had for it: asked for ALPN `h2` it begins HTTP/2 itself, and without ALPN some
/// servers, Google's among them, refuse HTTP/2.
///
/// On the loop's thread.
final class TLSClientSession {
    enum Reading {
        case bytes(Int)
        /// Not before more has come from the network.
        case nothing
        /// The peer said that nothing follows.
        case end
        case failed(Status)
    }

    private let session: OpaquePointer
    // Memory that belongs to the session.
    private let incoming: OpaquePointer
    private let outgoing: OpaquePointer
    private let address: ServerAddress
    private let applicationProtocol: String
    private let isVerifying: Bool
    /// Which certificate was refused; noted within OpenSSL.
    fileprivate var refusedCertificate: String?
    private(set) var isEstablished = false

    /// - Parameter applicationProtocol: what ALPN offers.
    /// - Throws: FAILED_PRECONDITION when a file of the options can't be used.
    init(address: ServerAddress, options: TLSOptions, applicationProtocol: String) throws(Status) {
        let context = try TLSClientSession.makeContext(options)
        let memory = BIO_s_mem()
        // The session keeps the context.
        guard let session = SSL_new(context.pointer) else { throw TLSFailure.status("TLS cannot be set up") }
        guard let incoming = BIO_new(memory), let outgoing = BIO_new(memory) else {
            SSL_free(session)
            throw .resourceExhausted("OpenSSL has no memory")
        }
        SSL_set0_rbio(session, incoming)
        SSL_set0_wbio(session, outgoing)
        self.session = session
        self.incoming = incoming
        self.outgoing = outgoing
        self.address = address
        self.applicationProtocol = applicationProtocol
        isVerifying = !options.trustsAnyCertificate
        SSL_set_connect_state(session)
        // Where the verification's callback finds this object: OpenSSL's slot for applications.
        SSL_set_ex_data(session, 0, Unmanaged.passUnretained(self).toOpaque())
        try setNames()
    }

    deinit { SSL_free(session) }

    private static func makeContext(_ options: TLSOptions) throws(Status) -> TLSContext {
        let context = try TLSContext(.client)
        // A file of trusted certificates may hold an intermediate one only, as with libcurl.
        X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context.pointer), UInt(X509_V_FLAG_PARTIAL_CHAIN))
        if options.trustsAnyCertificate {
            SSL_CTX_set_verify(context.pointer, SSL_VERIFY_NONE, nil)
        } else {
            SSL_CTX_set_verify(context.pointer, SSL_VERIFY_PEER, noteRefusedCertificate)
            try context.trust(options.authoritiesPath)
        }
        if let certificate = options.clientCertificatePath {
            // As with libcurl, one file may hold both.
            try context.use(
                "client", certificatePath: certificate, keyPath: options.clientKeyPath ?? certificate,
                password: .given(options.clientKeyPassword ?? ""))
        }
        return context
    }

    /// Whom we want to talk to, and in which protocol.
    private func setNames() throws(Status) {
        let host = address.bareHost
        let parameters = SSL_get0_param(session)
        // An address is verified as such, and never sent by SNI (RFC 6066, 3).
        if X509_VERIFY_PARAM_set1_ip_asc(parameters, host) != 1 {
            ERR_clear_error()
            let name = host.hasSuffix(".") ? String(host.dropLast()) : host
            X509_VERIFY_PARAM_set_hostflags(parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
            guard X509_VERIFY_PARAM_set1_host(parameters, name, 0) == 1, tls_set_server_name(session, name) == 1 else {
                ERR_clear_error()
                throw .invalidArgument("\(host) is no host name")
            }
        }
        let offer = ALPN.offer([applicationProtocol])
        // Zero means success in this one function.
        guard SSL_set_alpn_protos(session, offer, UInt32(offer.count)) == 0 else {
            throw TLSFailure.status("\(applicationProtocol) cannot be offered")
        }
    }

    // MARK: The network

    /// What came.
    func receive(_ bytes: UnsafeRawBufferPointer) {
        let count = BIO_write(incoming, bytes.baseAddress, Int32(bytes.count))
        // Its memory only ends with the process's.
        precondition(Int(count) == bytes.count, "OpenSSL has no memory")
    }

    /// Bytes that are to be sent.
    var outputCount: Int { BIO_ctrl_pending(outgoing) }

    func takeOutput(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        max(0, Int(BIO_read(outgoing, buffer.baseAddress, Int32(clamping: buffer.count))))
    }

    // MARK: The application

    /// True when it is done. Goes on as far as what was received allows.
    func handshake() throws(Status) -> Bool {
        ERR_clear_error()
        let result = SSL_do_handshake(session)
        guard result == 1 else {
            if SSL_get_error(session, result) == SSL_ERROR_WANT_READ { return false }
            throw handshakeFailure()
        }
        let agreed = ALPN.agreed(in: session)
        // HTTP/1.1 is what is spoken without an agreement; HTTP/2 is not (RFC 9113, 3.2).
        guard agreed == applicationProtocol || (agreed == nil && applicationProtocol != "h2") else {
            throw .unavailable(
                "\(address.string): by ALPN the server agreed on \(agreed ?? "no protocol"), not on \(applicationProtocol)"
            )
        }
        isEstablished = true
        return true
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Reading {
        ERR_clear_error()
        let result = SSL_read(session, buffer.baseAddress, Int32(clamping: buffer.count))
        if result > 0 { return .bytes(Int(result)) }
        switch SSL_get_error(session, result) {
        case SSL_ERROR_WANT_READ: return .nothing
        case SSL_ERROR_ZERO_RETURN: return .end
        default: return .failed(.unavailable("\(address.string): TLS broke: \(TLSFailure.reason())"))
        }
    }

    /// Encrypts all of it, into the output. Gives what broke, when something did.
    func write(_ bytes: UnsafeRawBufferPointer) -> Status? {
        var position = 0
        while position < bytes.count {
            ERR_clear_error()
            let rest = UnsafeRawBufferPointer(rebasing: bytes[position...])
            let result = SSL_write(session, rest.baseAddress, Int32(clamping: rest.count))
            guard result > 0 else { return .unavailable("\(address.string): TLS broke: \(TLSFailure.reason())") }
            position += Int(result)
        }
        return nil
    }

    /// Notifies the peer that nothing follows.
    func sendEnd() {
        guard isEstablished else { return }
        ERR_clear_error()
        // The peer's own end isn't waited for.
        _ = SSL_shutdown(session)
        ERR_clear_error()
    }

    private func handshakeFailure() -> Status {
        let verification = SSL_get_verify_result(session)
        if isVerifying, verification != Int(X509_V_OK), let refusedCertificate {
            ERR_clear_error()
            let reason = String(cString: X509_verify_cert_error_string(verification))
            return .unavailable(
                "\(address.string): the server's certificate is refused: \(reason) (of \(refusedCertificate), for the host "
                    + "\(address.bareHost))")
        }
        let isForeign = TLSFailure.isForeignProtocol
        let reason = TLSFailure.reason()
        let what = isForeign ? "the server does not speak TLS" : "the TLS handshake failed"
        return .unavailable("\(address.string): \(what): \(reason)")
    }
}

private func noteRefusedCertificate(_ isGood: Int32, _ verification: OpaquePointer?) -> Int32 {
    guard isGood != 1,
        let session = X509_STORE_CTX_get_ex_data(verification, SSL_get_ex_data_X509_STORE_CTX_idx()),
        let owner = SSL_get_ex_data(OpaquePointer(session), 0)
    else { return isGood }
    var string = [CChar](repeating: 0, count: 256)
    let certificate = X509_STORE_CTX_get_current_cert(verification)
    if let certificate {
        X509_NAME_oneline(X509_get_subject_name(certificate), &string, Int32(string.count))
    }
    let name = String(decoding: string.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    Unmanaged<TLSClientSession>.fromOpaque(owner).takeUnretainedValue().refusedCertificate =
        name.isEmpty ? "a nameless certificate" : name
    return isGood
}
