import COpenSSL
import HearthModel

/// Hashes a document's name for a Bloom filter.
package enum DocumentNameHash {
    /// - Parameter name: the full name, as in messages.
    package static func md5(_ name: String) -> BloomFilter.Hash {
        var name = name
        var digest = [UInt8](repeating: 0, count: 16)
        name.withUTF8 { bytes in
            let isDone = EVP_Digest(bytes.baseAddress, bytes.count, &digest, nil, EVP_md5(), nil) == 1
            precondition(isDone, "MD5 is part of every OpenSSL")
        }
        return BloomFilter.Hash(digest: digest)
    }
}
