/// Bytes as the key of a table. `[UInt8]` hashes one byte at a time; this type hashes all bytes in one call.
@usableFromInline package struct ByteKey: Hashable, Sendable {
    @usableFromInline package let bytes: [UInt8]

    @inlinable package init(_ bytes: [UInt8]) { self.bytes = bytes }

    @inlinable package static func == (left: ByteKey, right: ByteKey) -> Bool {
        left.bytes.count == right.bytes.count && UTF8Order.compare(left.bytes, right.bytes) == 0
    }

    @inlinable package func hash(into hasher: inout Hasher) { hasher.combine(bytes: bytes) }
}

extension Hasher {
    /// Feeds the number of bytes and all bytes in one call.
    @inlinable package mutating func combine(bytes: [UInt8]) {
        combine(bytes.count)
        bytes.withUnsafeBytes { combine(bytes: $0) }
    }
}
