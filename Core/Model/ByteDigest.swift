/// A key for bytes of any size: a 128-bit hash with a secret of this process. A client cannot find two strings with the
/// same key.
@usableFromInline package struct ByteDigest: Hashable, Sendable {
    private let first: Int
    private let second: Int

    package init(_ bytes: [UInt8]) {
        (first, second) = (Self.hash(bytes, 1), Self.hash(bytes, 2))
    }

    private static func hash(_ bytes: [UInt8], _ domain: Int) -> Int {
        var hasher = Hasher()
        hasher.combine(domain)
        hasher.combine(bytes: bytes)
        return hasher.finalize()
    }

    @usableFromInline package func hash(into hasher: inout Hasher) { hasher.combine(first) }
}
