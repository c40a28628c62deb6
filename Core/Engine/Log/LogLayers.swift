import HearthModel

/// How the table of a `LoggedStore` lies over its base.
///
/// For each keyspace the table has an active tree, which takes the changes, and a frozen one, which is being applied to
/// the base. A key is looked up in the active tree, then in the frozen one, then in the base; a tombstone ends the
/// search.
struct LogLayers: Sendable {
    /// How often the active trees were frozen. The base contains all frozen trees before this one.
    var number: UInt64 = 0
    /// Whether the base may lack some of the last frozen trees.
    var hasFrozen = false
    /// Keyspaces that were emptied as a whole: their active tree hides everything below it and has no tombstones.
    var activeClears = KeyspaceSet()
    /// The same for the frozen trees.
    var frozenClears = KeyspaceSet()
    /// For each keyspace a key before which there is none. A queue such as the feed is deleted from its start: without
    /// this, each walk from there would meet all tombstones.
    var starts = ContiguousArray<[UInt8]>(repeating: [], count: Keyspace.allCases.count)

    static let treeCount = 2 * Keyspace.allCases.count

    @inline(__always)
    static func activeTree(_ keyspace: Keyspace) -> Int { keyspace.rawValue }

    @inline(__always)
    static func frozenTree(_ keyspace: Keyspace) -> Int { keyspace.rawValue + Keyspace.allCases.count }

    /// A range without the start of the keyspace that is known to be empty.
    @inline(__always)
    func shortened(_ keyspace: Keyspace, _ range: KeyRange) -> KeyRange {
        let start = starts[keyspace.rawValue]
        if start.isEmpty || UTF8Order.compare(start, range.lower) <= 0 { return range }
        return KeyRange(lower: start, upper: range.upper)
    }

    /// A key is put.
    @inline(__always)
    mutating func contain(_ keyspace: Keyspace, _ key: [UInt8]) {
        if starts[keyspace.rawValue].isEmpty { return }
        if UTF8Order.compare(key, starts[keyspace.rawValue]) < 0 { starts[keyspace.rawValue] = key }
    }

    /// All keys from a key up to another one were deleted.
    mutating func empty(_ keyspace: Keyspace, from lower: [UInt8], to upper: [UInt8]) {
        let start = starts[keyspace.rawValue]
        if UTF8Order.compare(lower, start) <= 0, UTF8Order.compare(start, upper) < 0 {
            starts[keyspace.rawValue] = upper
        }
    }
}

/// Some of the keyspaces.
struct KeyspaceSet: Sendable, Equatable {
    private var bits: UInt8 = 0

    var isEmpty: Bool { bits == 0 }

    @inline(__always)
    func contains(_ keyspace: Keyspace) -> Bool { bits & 1 << keyspace.rawValue != 0 }

    mutating func insert(_ keyspace: Keyspace) { bits |= 1 << keyspace.rawValue }
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
