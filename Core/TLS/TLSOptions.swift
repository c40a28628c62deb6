/// Whom a client trusts on connections with TLS, and how it shows who it is.
package struct TLSOptions: Sendable, Hashable {
    /// A PEM file with the authorities to trust; nil: the system's, which `SSL_CERT_FILE` and `SSL_CERT_DIR` replace.
    package var authoritiesPath: String?
    /// PEM files of a client's certificate and its key.
    package var clientCertificatePath: String?
    package var clientKeyPath: String?
    package var clientKeyPassword: String?
    /// Takes any certificate for any name. For tests only.
    package var trustsAnyCertificate: Bool

    package init(
        authoritiesPath: String? = nil, clientCertificatePath: String? = nil, clientKeyPath: String? = nil,
        clientKeyPassword: String? = nil, trustsAnyCertificate: Bool = false
    ) {
        self.authoritiesPath = authoritiesPath
        self.clientCertificatePath = clientCertificatePath
        self.clientKeyPath = clientKeyPath
        self.clientKeyPassword = clientKeyPassword
        self.trustsAnyCertificate = trustsAnyCertificate
    }
}
