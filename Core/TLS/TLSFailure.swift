import COpenSSL
import HearthModel

/// OpenSSL's failures, which it leaves in a queue of the thread.
package enum TLSFailure {
    /// About a file or a setting, not about the peer.
    package static func status(_ what: String) -> Status {
        let reason = ERR_peek_error() == 0 ? "" : ": " + reason()
        return Status(.failedPrecondition, what + reason)
    }

    /// Whether the peer answered with something that is not TLS.
    package static var isForeignProtocol: Bool {
        let code = ERR_peek_error()
        return tls_error_is_of_tls(code) != 0
            && [SSL_R_WRONG_VERSION_NUMBER, SSL_R_UNKNOWN_PROTOCOL, SSL_R_HTTP_REQUEST].contains(
                tls_error_reason(code))
    }

    /// The first failure in words. Empties the queue.
    package static func reason() -> String {
        let code = ERR_get_error()
        ERR_clear_error()
        // Without an error it is the network that ended.
        guard code != 0 else { return "the connection ended" }
        if let string = ERR_reason_error_string(code) { return String(cString: string) }
        // Of the system's errors OpenSSL has only the long form.
        var buffer = [CChar](repeating: 0, count: 256)
        ERR_error_string_n(code, &buffer, buffer.count)
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
