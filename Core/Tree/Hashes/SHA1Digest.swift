import COpenSSL

/// The twenty bytes of a SHA-1.
struct SHA1Digest: Sendable {
    private let first: UInt64
    private let second: UInt64
    private let third: UInt32

    static let count = 20

    init(_ bytes: UnsafeBufferPointer<UInt8>) {
        let bytes = UnsafeRawBufferPointer(bytes)
        first = bytes.loadUnaligned(as: UInt64.self)
        second = bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
        third = bytes.loadUnaligned(fromByteOffset: 16, as: UInt32.self)
    }

    /// The standard alphabet, padded.
    func appendBase64(to string: inout [UInt8]) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.count + 29) { space in
            let bytes = UnsafeMutableRawPointer(space.baseAddress!)
            bytes.storeBytes(of: first, as: UInt64.self)
            bytes.storeBytes(of: second, toByteOffset: 8, as: UInt64.self)
            bytes.storeBytes(of: third, toByteOffset: 16, as: UInt32.self)
            let count = Int(EVP_EncodeBlock(space.baseAddress! + Self.count, space.baseAddress!, CInt(Self.count)))
            string.append(contentsOf: space[Self.count..<Self.count + count])
        }
    }
}
