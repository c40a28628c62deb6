import COpenSSL
import HearthModel
import HearthWire

/// A key that signs or verifies tokens, bound to one algorithm: a token cannot have an RSA key used as the secret of an
/// HMAC. Source: RFC 7518.
package final class SigningKey: @unchecked Sendable {
    package enum Algorithm: String, Sendable, CaseIterable {
        case hs256 = "HS256"
        case rs256 = "RS256"
        case es256 = "ES256"
    }

    private enum Material {
        case secret([UInt8])
        /// Never changed after its creation, so threads may share it.
        case key(OpaquePointer)
    }

    package let algorithm: Algorithm
    private let material: Material

    private init(_ algorithm: Algorithm, _ material: Material) {
        self.algorithm = algorithm
        self.material = material
    }

    deinit {
        if case .key(let key) = material { EVP_PKEY_free(key) }
    }

    /// RSA keys of fewer bits have been broken. Source: RFC 7518, 3.3.
    private static let rsaBitsMin = 2048
    /// Source: RFC 7518, 3.2.
    private static let secretBytesMin = 32

    /// - Throws: INVALID_ARGUMENT when the secret is too short.
    package static func secret(_ bytes: [UInt8]) throws(Status) -> SigningKey {
        if bytes.count < secretBytesMin {
            throw .invalidArgument(
                "A secret for HS256 has at least \(secretBytesMin) bytes; this one has \(bytes.count).")
        }
        return SigningKey(.hs256, .secret(bytes))
    }

    /// - Parameter pem: a public key, a certificate, or, when `isPrivate`, a private key.
    /// - Throws: INVALID_ARGUMENT when it is not an RSA or P-256 key.
    package static func pem(_ pem: [UInt8], isPrivate: Bool = false) throws(Status) -> SigningKey {
        let key = pem.withUnsafeBytes { bytes in
            isPrivate
                ? key_private_from_pem(bytes.baseAddress, Int32(clamping: bytes.count))
                : key_public_from_pem(bytes.baseAddress, Int32(clamping: bytes.count))
        }
        return try checked(key, isPrivate ? "a private key in PEM form" : "a public key or a certificate in PEM form")
    }

    private static func checked(_ key: OpaquePointer?, _ expected: String) throws(Status) -> SigningKey {
        guard let key else { throw .invalidArgument("Expected \(expected).") }
        if key_is_p256(key) != 0 { return SigningKey(.es256, .key(key)) }
        let bits = key_bits(key)
        if key_is_rsa(key) != 0, bits >= rsaBitsMin { return SigningKey(.rs256, .key(key)) }
        let isRSA = key_is_rsa(key) != 0
        EVP_PKEY_free(key)
        throw .invalidArgument(
            isRSA
                ? "An RSA key has at least \(rsaBitsMin) bits; this one has \(bits)."
                : "A key is one of RSA or of the curve P-256.")
    }

    /// A JSON Web Key. Source: RFC 7517.
    /// - Returns: nil for a key of another kind, or for another use.
    static func jsonWebKey(_ members: MapValue) -> SigningKey? {
        func string(_ name: String) -> String? { if case .string(let string)? = members[name] { string } else { nil } }
        func bytes(_ name: String) -> [UInt8]? { string(name).flatMap { Base64.decode($0) } }
        if let use = string("use"), use != "sig" { return nil }
        var key: OpaquePointer?
        switch string("kty") {
        case "RSA":
            guard let n = bytes("n"), let e = bytes("e"), !e.isEmpty, e.count <= 8 else { return nil }
            key = key_rsa(n, Int32(clamping: n.count), e, Int32(e.count))
        case "EC" where string("crv") == "P-256":
            guard let x = bytes("x"), let y = bytes("y"), x.count == 32, y.count == 32 else { return nil }
            key = key_p256([4] + x + y, 65)
        default: return nil
        }
        guard let made = try? checked(key, "a key") else { return nil }
        if let algorithm = string("alg"), algorithm != made.algorithm.rawValue { return nil }
        return made
    }

    // MARK: Signatures

    func verifies(_ signature: [UInt8], of string: [UInt8]) -> Bool {
        switch material {
        case .secret(let secret):
            let expected = Self.hmac(secret, string)
            // In constant time, wherever the first difference is.
            return signature.count == expected.count && CRYPTO_memcmp(signature, expected, expected.count) == 0
        case .key(let key):
            guard algorithm == .es256 else {
                return key_verify_sha256(key, signature, signature.count, string, string.count) == 1
            }
            guard signature.count == 64 else { return false }
            var der = [UInt8](repeating: 0, count: 80)
            let size = key_der_signature(signature, &der, Int32(der.count))
            return size > 0 && key_verify_sha256(key, der, Int(size), string, string.count) == 1
        }
    }

    /// - Throws: INVALID_ARGUMENT for a key that can only verify.
    func sign(_ string: [UInt8]) throws(Status) -> [UInt8] {
        switch material {
        case .secret(let secret): return Self.hmac(secret, string)
        case .key(let key):
            var signature = [UInt8](repeating: 0, count: 1024)
            let size = key_sign_sha256(key, string, string.count, &signature, signature.count)
            if size == 0 { throw .invalidArgument("The key can't sign: it is no private key.") }
            guard algorithm == .es256 else { return Array(signature[..<size]) }
            var raw = [UInt8](repeating: 0, count: 64)
            if key_raw_signature(signature, size, &raw) != 1 {
                throw .internalError("The signature can't be converted.")
            }
            return raw
        }
    }

    private static func hmac(_ secret: [UInt8], _ string: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var size: UInt32 = 0
        _ = HMAC(EVP_sha256(), secret, Int32(clamping: secret.count), string, string.count, &digest, &size)
        return digest
    }
}

extension SigningKey: Equatable {
    package static func == (left: SigningKey, right: SigningKey) -> Bool { left === right }
}
