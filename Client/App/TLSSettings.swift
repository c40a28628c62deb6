public import Foundation
package import HearthTLS

/// Ours: whom a program trusts, and how it shows who it is, on connections with TLS; of calls and streams alike. Set as
/// `FirestoreSettings.tls` or `Database.tls` before the first use.
public struct TLSSettings: Hashable, Sendable {
    /// A PEM file with the certificates of the authorities to trust, instead of the system's. By default `SSL_CERT_FILE` and
    /// `SSL_CERT_DIR` replace the system's, as with other programs.
    public var authorities: URL?
    /// A PEM file with the client's certificate, for servers that ask for one; it may hold the key as well.
    public var clientCertificate: URL?
    /// A PEM file with the key of `clientCertificate`, when that doesn't hold it.
    public var clientKey: URL?
    /// Of an encrypted key.
    public var clientKeyPassword: String?

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
