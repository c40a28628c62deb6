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

    /// For each keyspace some ranges that were deleted: a large one is deleted in parts, each of which would meet the
    /// tombstones of all before it.
    var emptied = ContiguousArray<[EmptiedRange]>(repeating: [], count: Keyspace.allCases.count)

    static let treeCount = 2 * Keyspace.allCases.count

    @inline(__always)
    static func activeTree(_ keyspace: Keyspace) -> Int { keyspace.rawValue }

    @inline(__always)
    static func frozenTree(_ keyspace: Keyspace) -> Int { keyspace.rawValue + Keyspace.allCases.count }

    /// A range without a beginning that is known to be empty.
    @inline(__always)
    func shortened(_ keyspace: Keyspace, _ range: KeyRange) -> KeyRange {
        let start = starts[keyspace.rawValue]
        let emptied = emptied[keyspace.rawValue]
        if start.isEmpty && emptied.isEmpty { return range }
        var lower = UTF8Order.compare(start, range.lower) <= 0 ? range.lower : start
        for range in emptied where range.contains(lower) { lower = range.upper }
        return KeyRange(lower: lower, upper: range.upper)
    }

    /// Whether `contain` must be called for a key that is put.
    @inline(__always)
    func notesKeys(_ keyspace: Keyspace) -> Bool {
        !starts[keyspace.rawValue].isEmpty || !emptied[keyspace.rawValue].isEmpty
    }

    /// A key is put.
    @inline(__always)
    mutating func contain(_ keyspace: Keyspace, _ key: [UInt8]) {
        if !notesKeys(keyspace) { return }
        if UTF8Order.compare(key, starts[keyspace.rawValue]) < 0 { starts[keyspace.rawValue] = key }
        for index in emptied[keyspace.rawValue].indices where emptied[keyspace.rawValue][index].contains(key) {
            emptied[keyspace.rawValue][index].upper = key
        }
    }

    /// All keys from a key up to another one were deleted.
    mutating func empty(_ keyspace: Keyspace, from lower: [UInt8], to upper: [UInt8]) {
        let start = starts[keyspace.rawValue]
        if UTF8Order.compare(lower, start) <= 0 {
            if UTF8Order.compare(start, upper) < 0 { starts[keyspace.rawValue] = upper }
            return
        }
        var ranges = emptied[keyspace.rawValue].filter { UTF8Order.compare($0.lower, $0.upper) < 0 }
        if let index = ranges.firstIndex(where: { $0.touches(lower) }) {
            if UTF8Order.compare(ranges[index].upper, upper) < 0 { ranges[index].upper = upper }
        } else {
            if ranges.count == Self.emptiedMax { ranges.removeFirst() }
            ranges.append(EmptiedRange(lower: lower, upper: upper))
        }
        emptied[keyspace.rawValue] = ranges
    }

    private static let emptiedMax = 64
}

/// A range without keys.
struct EmptiedRange: Sendable {
    var lower: [UInt8]
    var upper: [UInt8]

    func contains(_ key: [UInt8]) -> Bool {
        UTF8Order.compare(lower, key) <= 0 && UTF8Order.compare(key, upper) < 0
    }

    /// Whether a range that begins at a key continues this one.
    func touches(_ key: [UInt8]) -> Bool {
        UTF8Order.compare(lower, key) <= 0 && UTF8Order.compare(key, upper) <= 0
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
