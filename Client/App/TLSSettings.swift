public import Foundation
package import HearthTLS

/// The trusted authorities and the client's certificate for TLS, for calls and for streams. Set it as
/// `FirestoreSettings.tls` or `Database.tls` before the first use. Apple's library has no such type.
public struct TLSSettings: Hashable, Sendable {
    /// A PEM file with the certificates of the trusted authorities, instead of the system's. By default `SSL_CERT_FILE`
    /// and `SSL_CERT_DIR` replace the system's.
    public var authorities: URL?
    /// A PEM file with the client's certificate, for servers that request one. It may also contain the key.
    public var clientCertificate: URL?
    /// A PEM file with the key of `clientCertificate`, when that file does not contain it.
    public var clientKey: URL?
    /// The password of an encrypted key.
    public var clientKeyPassword: String?

    /// Settings with the given files.
    /// - Parameters:
    ///   - authorities: a PEM file with the trusted authorities; nil for the system's.
    ///   - clientCertificate: a PEM file with the client's certificate.
    ///   - clientKey: a PEM file with the key.
    ///   - clientKeyPassword: the password of an encrypted key.
    public init(
        authorities: URL? = nil, clientCertificate: URL? = nil, clientKey: URL? = nil, clientKeyPassword: String? = nil
    ) {
        self.authorities = authorities
        self.clientCertificate = clientCertificate
        self.clientKey = clientKey
        self.clientKeyPassword = clientKeyPassword
    }
}

extension TLSSettings {
    /// As the connections take them.
    package var options: TLSOptions {
        TLSOptions(
            authoritiesPath: authorities?.path, clientCertificatePath: clientCertificate?.path,
            clientKeyPath: clientKey?.path, clientKeyPassword: clientKeyPassword)
    }
}
