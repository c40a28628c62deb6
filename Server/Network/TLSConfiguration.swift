/// Certificate and key of a server, as paths of PEM files.
package struct TLSConfiguration: Sendable {
    /// The server's certificate, followed by the intermediate ones.
    package var certificatePath: String
    package var keyPath: String

    package init(certificatePath: String, keyPath: String) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
    }
}
