import HearthModel

/// The bounds of this module and of its dependents. A bound marked "ours" protects memory or time and is not part of
/// the service's contract.
extension Limits {
    // MARK: Realtime Database: trees

    /// Keys from the root down to a leaf.
    package static let treeDepthMax = 32
    /// The UTF-8 length of a key.
    package static let treeKeySizeBytesMax = 768
    /// The UTF-8 length of a path that an SDK writes to.
    package static let treeClientPathSizeBytesMax = 768
    /// The UTF-8 length of a string.
    package static let treeStringSizeBytesMax = 10 << 20
    /// Arrays and objects within each other in any JSON, envelopes included (ours).
    package static let treeNestingMax = 100
    /// The names that are read in one step when the remaining children of a location are searched (ours).
    package static let treeKeysPerReadMax = 64
    /// Ranges of a compound hash (ours): a client with a gigabyte makes some three thousand.
    package static let treeHashRangesMax = 10_000
}
