import COpenSSL

/// OpenSSL's MD5 (RFC 1321). Bloom filters of document names use this hash; it has no security purpose.
enum MD5 {
    private static let byteCount = 16

    /// nil where only approved algorithms are allowed (FIPS 140). Never changed after it is fetched; to fetch it for each
    /// name takes longer than the digest.
    private nonisolated(unsafe) static let algorithm = EVP_MD_fetch(nil, "MD5", nil)

    static var isAvailable: Bool { algorithm != nil }

    /// The sixteen bytes of the digest. Only where MD5 is available.
    static func digest(_ message: String.UTF8View) -> [UInt8] {
        let message = Array(message)
        return [UInt8](unsafeUninitializedCapacity: byteCount) { digest, count in
            let isDone = EVP_Digest(message, message.count, digest.baseAddress, nil, algorithm, nil) == 1
            precondition(isDone, "MD5 failed")
            count = byteCount
        }
    }
}
