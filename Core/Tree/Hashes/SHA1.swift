import COpenSSL

/// OpenSSL's SHA-1, reused for many short strings.
final class SHA1 {
    /// Never changed after it is fetched.
    private nonisolated(unsafe) static let algorithm: OpaquePointer = {
        guard let algorithm = EVP_MD_fetch(nil, "SHA1", nil) else {
            fatalError("OpenSSL has no SHA-1, which clients use to compare their data with the server's")
        }
        return algorithm
    }()

    private let context: OpaquePointer

    init() {
        guard let context = EVP_MD_CTX_new() else { fatalError("no memory for a digest") }
        self.context = context
    }

    deinit { EVP_MD_CTX_free(context) }

    func digest(of string: ArraySlice<UInt8>) -> SHA1Digest {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: SHA1Digest.count) { space in
            let isDone = string.withUnsafeBufferPointer { bytes in
                EVP_DigestInit_ex2(context, Self.algorithm, nil) == 1
                    && EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1
                    && EVP_DigestFinal_ex(context, space.baseAddress, nil) == 1
            }
            precondition(isDone, "SHA-1 failed")
            return SHA1Digest(UnsafeBufferPointer(space))
        }
    }

    // MARK: A string in parts

    func begin() { precondition(EVP_DigestInit_ex2(context, Self.algorithm, nil) == 1, "SHA-1 failed") }

    func update(_ part: ArraySlice<UInt8>) {
        part.withUnsafeBufferPointer { bytes in
            precondition(EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1, "SHA-1 failed")
        }
    }

    func end() -> SHA1Digest {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: SHA1Digest.count) { space in
            precondition(EVP_DigestFinal_ex(context, space.baseAddress, nil) == 1, "SHA-1 failed")
            return SHA1Digest(UnsafeBufferPointer(space))
        }
    }
}
