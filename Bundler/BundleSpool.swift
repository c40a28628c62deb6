import HearthModel

/// Where a builder keeps the documents until all of the bundle is known: what stands in front of them needs their number
/// and size. A file keeps large bundles out of memory.
package protocol BundleSpool {
    /// Adds bytes behind those that are there.
    mutating func append(_ bytes: [UInt8]) throws(Status)
    /// Bytes that were added before.
    mutating func read(_ range: Range<Int64>) throws(Status) -> [UInt8]
}

/// Keeps the documents in memory.
package struct BundleMemorySpool: BundleSpool {
    private var bytes: [UInt8] = []

    package init() {}

    package mutating func append(_ bytes: [UInt8]) throws(Status) { self.bytes += bytes }

    package mutating func read(_ range: Range<Int64>) throws(Status) -> [UInt8] {
        Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
    }
}
