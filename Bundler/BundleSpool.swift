import HearthModel

/// Stores a builder's documents until the whole bundle is known: the metadata, which comes first, contains their number
/// and size. A file keeps large bundles out of memory.
package protocol BundleSpool {
    /// Appends bytes.
    /// - Parameter bytes: the bytes to store.
    /// - Throws: the error of the storage.
    mutating func append(_ bytes: [UInt8]) throws(Status)
    /// Reads bytes that were appended before.
    /// - Parameter range: their offsets from the first byte that was appended.
    /// - Returns: the bytes.
    /// - Throws: the error of the storage.
    mutating func read(_ range: Range<Int64>) throws(Status) -> [UInt8]
}

/// Stores the documents in memory.
package struct BundleMemorySpool: BundleSpool {
    private var bytes: [UInt8] = []

    /// An empty spool.
    package init() {}

    /// Appends bytes.
    /// - Parameter bytes: the bytes to store.
    /// - Throws: nothing.
    package mutating func append(_ bytes: [UInt8]) throws(Status) { self.bytes += bytes }

    /// Reads bytes that were appended before.
    /// - Parameter range: their offsets from the first byte that was appended.
    /// - Returns: the bytes.
    /// - Throws: nothing.
    package mutating func read(_ range: Range<Int64>) throws(Status) -> [UInt8] {
        Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
    }
}
