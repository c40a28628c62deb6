import COpenSSL

/// SHA-256 of bytes that arrive in pieces.
package final class SHA256Digest {
    private let context = EVP_MD_CTX_new()

    package init() { EVP_DigestInit_ex(context, EVP_sha256(), nil) }

    deinit { EVP_MD_CTX_free(context) }

    package func add(_ piece: UnsafeRawBufferPointer) { EVP_DigestUpdate(context, piece.baseAddress, piece.count) }

    /// In hexadecimal digits. Ends the digest.
    package func finish() -> String {
        var digest = [UInt8](repeating: 0, count: 32)
        EVP_DigestFinal_ex(context, &digest, nil)
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
