import COpenSSL
import Glibc
import HearthModel

// HearthTLS: what both ends of a connection share of OpenSSL. No sockets: the sessions are the server's and the client's own.
//
// - `TLSContext` has the minimum version, the modes and the certificates.
// - `TLSOptions` says what a client trusts and shows.
// - `TLSFailure` puts OpenSSL's errors into words.
// - `ALPN` is the agreement on the application's protocol.

/// What TLS connections share: certificate, key, authorities, protocol versions. TLS 1.2 is the oldest version; the ciphers
/// are OpenSSL's own choice. Nobody may renegotiate or compress.
///
/// `@unchecked Sendable`: an `SSL_CTX` that is no longer changed is used by many threads (its reference count is
/// atomic); whoever makes one configures it fully before anyone else sees it.
package final class TLSContext: @unchecked Sendable {
    package enum Role: Sendable { case server, client }

    /// Where the password of an encrypted key comes from.
    package enum KeyPassword: Sendable {
        /// OpenSSL asks the user at the terminal.
        case terminal
        /// The empty string for a key that is not encrypted.
        case given(String)
    }

    package let pointer: OpaquePointer

    package init(_ role: Role) throws(Status) {
        ERR_clear_error()
        guard let pointer = SSL_CTX_new(role == .server ? TLS_server_method() : TLS_client_method()) else {
            throw TLSFailure.status("TLS cannot be set up")
        }
        self.pointer = pointer
        guard tls_set_minimum_version_1_2(pointer) == 1 else { throw TLSFailure.status("TLS 1.2 cannot be had") }
        tls_set_modes(pointer)
        switch role {
        case .server: tls_set_server_options(pointer)
        case .client:
            tls_set_client_options(pointer)
            // OpenSSL accepts every server by default. A caller that wants that must ask for it.
            SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
        }
    }

    deinit { SSL_CTX_free(pointer) }

    /// Shows a certificate to peers.
    /// - Parameters:
    ///   - owner: "server" or "client", for the errors.
    ///   - certificatePath: a PEM file with the certificate and the intermediate ones.
    /// - Throws: FAILED_PRECONDITION, naming the file that cannot be used.
    package func use(
        _ owner: String, certificatePath: String, keyPath: String, password: KeyPassword
    ) throws(Status) {
        guard SSL_CTX_use_certificate_chain_file(pointer, certificatePath) == 1 else {
            throw TLSFailure.status("the \(owner) certificate \(certificatePath) cannot be used")
        }
        guard readKey(keyPath, password) else {
            throw TLSFailure.status("the \(owner) key \(keyPath) cannot be used")
        }
        guard SSL_CTX_check_private_key(pointer) == 1 else {
            throw TLSFailure.status("the \(owner) key \(keyPath) does not belong to the certificate \(certificatePath)")
        }
    }

    /// Seconds until the certificate that is shown expires, negative afterwards; nil without one.
    package var certificateSecondsLeft: Int? {
        var seconds = 0
        return tls_certificate_seconds_left(pointer, &seconds) == 1 ? seconds : nil
    }

    private func readKey(_ path: String, _ password: KeyPassword) -> Bool {
        guard case .given(let string) = password else {
            return SSL_CTX_use_PrivateKey_file(pointer, path, SSL_FILETYPE_PEM) == 1
        }
        SSL_CTX_set_default_passwd_cb(pointer, providePassword)
        return string.withCString { characters in
            SSL_CTX_set_default_passwd_cb_userdata(pointer, UnsafeMutableRawPointer(mutating: characters))
            defer { SSL_CTX_set_default_passwd_cb_userdata(pointer, nil) }
            return SSL_CTX_use_PrivateKey_file(pointer, path, SSL_FILETYPE_PEM) == 1
        }
    }

    /// Trusts the authorities of a PEM file; nil: the system's, which `SSL_CERT_FILE` and `SSL_CERT_DIR` replace.
    /// - Throws: FAILED_PRECONDITION, naming the file that cannot be used.
    package func trust(_ authoritiesPath: String?) throws(Status) {
        guard let authoritiesPath else {
            guard SSL_CTX_set_default_verify_paths(pointer) == 1 else {
                throw TLSFailure.status("the system's trusted certificates cannot be used")
            }
            return
        }
        guard SSL_CTX_load_verify_file(pointer, authoritiesPath) == 1 else {
            throw TLSFailure.status("the trusted certificates \(authoritiesPath) cannot be used")
        }
    }
}

private func providePassword(
    _ buffer: UnsafeMutablePointer<CChar>?, _ count: Int32, _ isWriting: Int32, _ password: UnsafeMutableRawPointer?
) -> Int32 {
    guard let buffer, let password else { return 0 }
    let length = strlen(password.assumingMemoryBound(to: CChar.self))
    guard length <= Int(count) else { return 0 }
    memcpy(buffer, password, length)
    return Int32(length)
}
