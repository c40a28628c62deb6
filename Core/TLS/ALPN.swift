import COpenSSL

/// The agreement on the protocol over TLS. Source: RFC 7301.
package enum ALPN {
    /// What OpenSSL takes for a client's offer: each name after its length.
    package static func offer(_ protocols: [String]) -> [UInt8] {
        protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
    }

    /// The protocol that both ends of a session agreed on, after the handshake.
    package static func agreed(in session: OpaquePointer) -> String? {
        var name: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(session, &name, &count)
        guard let name, count > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: name, count: Int(count)), as: UTF8.self)
    }
}
