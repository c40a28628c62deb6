import COpenSSL

/// OpenSSL's MD5 (RFC 1321). Bloom filters of document names use this hash; it has no security purpose.
enum MD5 {
    private static let byteCount = 16

    /// Never changed after it is fetched. To fetch it for each name takes longer than the digest.
    private nonisolated(unsafe) static let algorithm: OpaquePointer = {
        guard let algorithm = EVP_MD_fetch(nil, "MD5", nil) else {
            fatalError("OpenSSL has no MD5, by which a server names the documents that a client still has")
        }
        return algorithm
    }()

    /// The sixteen bytes of the digest.
    static func digest(_ message: String.UTF8View) -> [UInt8] {
        let message = Array(message)
        return [UInt8](unsafeUninitializedCapacity: byteCount) { digest, count in
            let isDone = EVP_Digest(message, message.count, digest.baseAddress, nil, algorithm, nil) == 1
            precondition(isDone, "MD5 failed")
            count = byteCount
        }
    }
}
