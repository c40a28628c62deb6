import COpenSSL
import HearthModel
import HearthTLS

extension TLSContext {
    /// A server's context. Throws a sentence that names the file when the certificate or key can't be used.
    static func server(
        _ configuration: TLSConfiguration, password: KeyPassword = .terminal
    ) throws(Status) -> TLSContext {
        let context = try TLSContext(.server)
        try context.use(
            "server", certificatePath: configuration.certificatePath, keyPath: configuration.keyPath,
            password: password)
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
