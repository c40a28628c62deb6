import COpenSSL
import HearthModel

/// Hashes a document's name for a Bloom filter.
package enum DocumentNameHash {
    /// - Parameter name: the full name, as in messages.
    /// - Returns: nil when OpenSSL has no MD5, as with some policies of cryptography.
    package static func md5(_ name: String) -> BloomFilter.Hash? {
        var name = name
        var digest = [UInt8](repeating: 0, count: 16)
        let isDone = name.withUTF8 { bytes in
            EVP_Digest(bytes.baseAddress, bytes.count, &digest, nil, EVP_md5(), nil) == 1
        }
        return isDone ? BloomFilter.Hash(digest: digest) : nil
    }
}
