/// How the table of a `LoggedStore` lies over its base.
///
/// For each keyspace the table has an active tree, which takes the changes, and a frozen one, which is being applied to
/// the base. Each has a tree of ranges beside it (`TableRanges`), which hide everything below the tree. A key is looked
/// up in the active tree, in its ranges, in the frozen tree, in its ranges, then in the base; a tombstone or a range
/// that has the key ends the search.
struct LogLayers: Sendable {
    /// How often the active trees were frozen. The base contains all frozen trees before this one.
    var number: UInt64 = 0
    /// Whether the base may lack some of the last frozen trees.
    var hasFrozen = false

    private static let keyspaceCount = Keyspace.allCases.count
    static let treeCount = 4 * keyspaceCount

    @inline(__always)
    static func activeTree(_ keyspace: Keyspace) -> Int { keyspace.rawValue }

    @inline(__always)
    static func frozenTree(_ keyspace: Keyspace) -> Int { keyspace.rawValue + keyspaceCount }

    @inline(__always)
    static func activeRanges(_ keyspace: Keyspace) -> Int { keyspace.rawValue + 2 * keyspaceCount }

    @inline(__always)
    static func frozenRanges(_ keyspace: Keyspace) -> Int { keyspace.rawValue + 3 * keyspaceCount }
}

/// A version of a table with its position over the base: what a snapshot shows besides the base.
final class LoggedVersion: Sendable {
    let table: TableVersion
    let layers: LogLayers

    init(_ table: TableVersion, _ layers: LogLayers) {
        self.table = table
        self.layers = layers
    }
}
