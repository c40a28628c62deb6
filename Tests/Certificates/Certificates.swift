import COpenSSL
import Foundation
import HearthModel
import HearthNetwork
import HearthTLS
import HearthHTTPClient

/// The tests' authorities and certificates, created once in a temporary folder.
package struct Certificates: Sendable {
    /// The issuer of all of the following.
    package let authority: Files
    /// An authority that issued none of them.
    package let stranger: Files
    /// For localhost and 127.0.0.1, and for a name that only a proxy resolves.
    package let server: Files
    package let otherName: Files
    package let expired: Files
    package let client: Files
    /// The client's key again, encrypted with `secret`.
    package let encryptedClientKeyPath: String

    package struct Files: Sendable {
        package var certificatePath: String
        package var keyPath: String
        package var server: TLSConfiguration { TLSConfiguration(certificatePath: certificatePath, keyPath: keyPath) }
    }

    package static let shared: Certificates = {
        do { return try Certificates() } catch { fatalError("no certificates can be made: \(error)") }
    }()

    package var trusting: TransportSecurity { .tls(TLSOptions(authoritiesPath: authority.certificatePath)) }

    private init() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let root = try Certificate(name: "Hearth Test Authority", issuer: nil)
        authority = try root.write(to: folder, "authority")
        stranger = try Certificate(name: "Stranger", issuer: nil).write(to: folder, "stranger")
        server = try Certificate(
            name: "server", names: "DNS:localhost,IP:127.0.0.1,IP:::1,DNS:hearth.example", issuer: root
        ).write(to: folder, "server")
        otherName = try Certificate(name: "other", names: "DNS:other.example,IP:127.0.0.9", issuer: root)
            .write(to: folder, "other")
        expired = try Certificate(name: "late", names: "DNS:localhost", daysLeft: -1, issuer: root)
            .write(to: folder, "expired")
        let client = try Certificate(name: "a client", issuer: root)
        self.client = try client.write(to: folder, "client")
        encryptedClientKeyPath = folder.appendingPathComponent("client-encrypted.pem").path
        try client.writeKey(encryptedClientKeyPath, password: "secret")
    }
}

/// One certificate and its key during creation.
private final class Certificate {
    private let certificate: OpaquePointer
    private let key: OpaquePointer

    /// - Parameters:
    ///   - names: alternative names in OpenSSL's format; nil for an authority or a client.
    ///   - issuer: nil: self-signed, as an authority.
    init(name: String, names: String? = nil, daysLeft: Int = 2, issuer: Certificate?) throws {
        let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil)
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_group_name(context, "P-256") == 1,
            EVP_PKEY_generate(context, &key) == 1, let key, let certificate = X509_new()
        else { throw Status.internalError("no key") }
        self.certificate = certificate
        self.key = key
        X509_set_version(certificate, 2)
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), Int.random(in: 1..<(1 << 31)))
        X509_gmtime_adj(X509_getm_notBefore(certificate), -10 * 86_400)
        X509_gmtime_adj(X509_getm_notAfter(certificate), daysLeft * 86_400)
        X509_set_pubkey(certificate, key)
        X509_NAME_add_entry_by_txt(
            X509_get_subject_name(certificate), "CN", 0x1000 | 1, Array(name.utf8), Int32(name.utf8.count), -1, 0)
        let issuing = issuer ?? self
        X509_set_issuer_name(certificate, X509_get_subject_name(issuing.certificate))
        try add("basicConstraints", issuer == nil ? "critical,CA:TRUE" : "CA:FALSE")
        if issuer == nil { try add("keyUsage", "critical,keyCertSign,digitalSignature") }
        if let names { try add("subjectAltName", names) }
        guard X509_sign(certificate, issuing.key, EVP_sha256()) > 0 else { throw Status.internalError("not signed") }
    }

    deinit {
        X509_free(certificate)
        EVP_PKEY_free(key)
    }

    private func add(_ name: String, _ value: String) throws {
        guard let part = X509V3_EXT_nconf(nil, nil, name, value) else {
            throw Status.internalError("no extension \(name)")
        }
        defer { X509_EXTENSION_free(part) }
        guard X509_add_ext(certificate, part, -1) == 1 else { throw Status.internalError("no extension \(name)") }
    }

    func write(to folder: URL, _ name: String) throws -> Certificates.Files {
        let files = Certificates.Files(
            certificatePath: folder.appendingPathComponent("\(name).pem").path,
            keyPath: folder.appendingPathComponent("\(name)-key.pem").path)
        guard let file = BIO_new_file(files.certificatePath, "w"), PEM_write_bio_X509(file, certificate) == 1 else {
            throw Status.internalError("cannot write \(files.certificatePath)")
        }
        BIO_free(file)
        try writeKey(files.keyPath, password: nil)
        return files
    }

    func writeKey(_ path: String, password: String?) throws {
        guard let file = BIO_new_file(path, "w") else { throw Status.internalError("cannot write \(path)") }
        defer { BIO_free(file) }
        let string = password.map { Array($0.utf8) } ?? []
        let cipher = password == nil ? nil : EVP_aes_128_cbc()
        guard
            PEM_write_bio_PKCS8PrivateKey(
                file, key, cipher, string.map { CChar(bitPattern: $0) }, Int32(string.count), nil, nil) == 1
        else { throw Status.internalError("cannot write \(path)") }
    }
}
