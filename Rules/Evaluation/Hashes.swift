import COpenSSL
import CZlib

/// The digests of the `hashing` namespace.
enum Hashes {
    /// nil where OpenSSL has no MD5: where only approved algorithms are allowed (FIPS 140).
    static func md5(_ bytes: [UInt8]) -> [UInt8]? { md5Algorithm.map { digest(bytes, $0, byteCount: 16) } }
    static func sha256(_ bytes: [UInt8]) -> [UInt8]? { sha256Algorithm.map { digest(bytes, $0, byteCount: 32) } }

    /// CRC-32 of zlib, the least significant byte first.
    static func crc32(_ bytes: [UInt8]) -> [UInt8] {
        littleEndian(UInt32(truncatingIfNeeded: crc32_z(0, bytes, bytes.count)))
    }

    /// CRC-32 of Castagnoli, which neither OpenSSL nor zlib has.
    static func crc32c(_ bytes: [UInt8]) -> [UInt8] {
        littleEndian(
            ~bytes.reduce(~UInt32(0)) { value, byte in
                value >> 8 ^ castagnoliTable[Int((value ^ UInt32(byte)) & 0xFF)]
            })
    }

    /// Of the reflected polynomial.
    private static let castagnoliTable: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? value >> 1 ^ 0x82f6_3b78 : value >> 1 }
    }

    private static func littleEndian(_ crc: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: crc >> (8 * $0)) }
    }

    // MARK: OpenSSL

    // Never changed after they are fetched. To fetch one for each call takes longer than the digest of a short string.
    private nonisolated(unsafe) static let md5Algorithm = EVP_MD_fetch(nil, "MD5", nil)
    private nonisolated(unsafe) static let sha256Algorithm = EVP_MD_fetch(nil, "SHA256", nil)

    private static func digest(_ bytes: [UInt8], _ algorithm: OpaquePointer, byteCount: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: byteCount) { digest, count in
            let isDone = EVP_Digest(bytes, bytes.count, digest.baseAddress, nil, algorithm, nil) == 1
            precondition(isDone, "the digest failed")
            count = byteCount
        }
    }
}
