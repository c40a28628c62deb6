import HearthModel

/// What snapshots and transactions of a `LoggedStore` share: reads of the active trees, the frozen ones and the base.
class LoggedView {
    private let life: StoreLife
    /// The table's trees; a transaction's, with its own changes.
    final var roots: ContiguousArray<TableBlock?>
    final var layers: LogLayers
    private(set) var isClosed = false
    /// Counts the changes of a transaction.
    final var changes = 0
    /// The first failure of the base.
    final var baseFailure: Status?

    init(_ version: LoggedVersion, _ life: StoreLife) {
        roots = version.table.roots
        layers = version.layers
        self.life = life
    }

    /// The base's snapshot.
    func base() throws(Status) -> any Snapshot { fatalError("for subclasses") }

    /// Whether the entries are those of a snapshot, which don't change.
    var isFixed: Bool { true }

    /// Fails when the view or the store is closed.
    @inline(__always)
    final func check() throws(Status) {
        try life.check()
        if isClosed { throw .internalError("The snapshot is closed.") }
    }

    @inline(__always)
    final func active(_ keyspace: Keyspace) -> TableBlock? { roots[LogLayers.activeTree(keyspace)] }

    /// The frozen tree, unless everything below the active one is hidden.
    @inline(__always)
    final func frozen(_ keyspace: Keyspace) -> TableBlock? {
        layers.activeClears.contains(keyspace) ? nil : roots[LogLayers.frozenTree(keyspace)]
    }

    final func showsBase(_ keyspace: Keyspace) -> Bool {
        !layers.activeClears.contains(keyspace) && !layers.frozenClears.contains(keyspace)
    }

    /// The tables' entry for a key, which may be a tombstone.
    @inline(__always)
    private func find(_ keyspace: Keyspace, _ key: [UInt8]) -> TableEntry? {
        let (active, frozen) = (active(keyspace), frozen(keyspace))
        if active == nil, frozen == nil { return nil }
        return key.withKey { key in TableTree(active).find(key) ?? TableTree(frozen).find(key) }
    }

    @inline(__always)
    private func isInBase(_ keyspace: Keyspace, _ key: [UInt8]) -> Bool {
        showsBase(keyspace) && !LogPosition.isKey(keyspace, key)
    }

    final func get(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? {
        try check()
        if let entry = find(keyspace, key) { return entry.isTombstone ? nil : [UInt8](entry.value) }
        if !isInBase(keyspace, key) { return nil }
        return try onBase { base throws(Status) in try base.get(keyspace, key) }
    }

    final func read(
        _ keyspace: Keyspace, _ key: [UInt8], _ body: (UnsafeRawBufferPointer) throws(Status) -> Void
    ) throws(Status) -> Bool {
        try check()
        if let entry = find(keyspace, key) {
            if entry.isTombstone { return false }
            try body(entry.value)
            return true
        }
        if !isInBase(keyspace, key) { return false }
        // The body's failure isn't the base's.
        var result = Result<Void, Status>.success(())
        let isFound = try onBase { base throws(Status) in
            try base.read(keyspace, key) { bytes throws(Status) in
                result = Result { () throws(Status) in try body(bytes) }
            }
        }
        try result.get()
        return isFound
    }

    /// Reads the base, and notes its failures.
    @inline(__always)
    final func onBase<Value>(_ body: (any Snapshot) throws(Status) -> Value) throws(Status) -> Value {
        do throws(Status) {
            return try body(try base())
        } catch {
            noteBaseFailure(error)
            throw error
        }
    }

    final func noteBaseFailure(_ status: Status) { baseFailure = baseFailure ?? status }

    final func scan(
        _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) throws(Status) -> any KeyCursor {
        try check()
        // A transaction may put keys where there are none now.
        let range = isFixed ? layers.shortened(keyspace, range) : range
        if isFixed, keyspace != .meta, showsBase(keyspace), !hasEntries(keyspace, range) {
            return try base().scan(keyspace, range, reverse: reverse, values: values, dropping: dropping)
        }
        return LoggedCursor(self, keyspace, range, reverse: reverse, values: values, dropping: dropping)
    }

    private func hasEntries(_ keyspace: Keyspace, _ range: KeyRange) -> Bool {
        TableTree(active(keyspace)).hasEntries(range) || TableTree(frozen(keyspace)).hasEntries(range)
    }

    func close() { isClosed = true }

    // MARK: Counting

    /// The tables' entries of a range of which each may cost a read of the base.
    private static let correctionsMax = 16
    /// More are corrected when the base has this many times as many keys.
    private static let keysPerCorrection = 8

    final func count(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        try check()
        let range = layers.shortened(keyspace, range)
        if limit <= 0 || range.isEmpty { return 0 }
        let (active, frozen) = (TableTree(active(keyspace)), TableTree(frozen(keyspace)))
        let activeCount = active.count(range)
        // Nothing is hidden by what has no tombstones.
        if layers.activeClears.contains(keyspace) { return min(limit, activeCount) }
        let frozenCount = frozen.count(range)
        if layers.frozenClears.contains(keyspace), activeCount == 0 { return min(limit, frozenCount) }
        let entryCount = activeCount + frozenCount
        if !showsBase(keyspace) || entryCount > max(Self.correctionsMax, limit / Self.keysPerCorrection) {
            return try countByWalking(keyspace, range, limit: limit)
        }
        // When the base has as many keys as this, there are at least `limit`, whatever the tables hide.
        let enough = limit.addingReportingOverflow(entryCount + 1)
        var count = try onBase { base throws(Status) in
            try base.count(keyspace, range, limit: enough.overflow ? .max : enough.partialValue)
        }
        if entryCount > max(Self.correctionsMax, count / Self.keysPerCorrection) {
            return try countByWalking(keyspace, range, limit: limit)
        }
        if keyspace == .meta, range.contains(LogPosition.key), try baseHas(.meta, LogPosition.key) { count -= 1 }
        count += try correction(keyspace, frozen, range) { key throws(Status) in try baseHas(keyspace, key.bytes) }
        count += try correction(keyspace, active, range) { key throws(Status) in
            if let entry = frozen.find(key) { return !entry.isTombstone }
            return try baseHas(keyspace, key.bytes)
        }
        return min(limit, count)
    }

    /// How many keys a tree adds to those that are below it, or takes from them.
    private func correction(
        _ keyspace: Keyspace, _ tree: TableTree, _ range: KeyRange, isBelow: (RawKey) throws(Status) -> Bool
    ) throws(Status) -> Int {
        var walk = TableWalk(tree.root)
        range.lower.withKey { walk.moveUp(to: $0) }
        var correction = 0
        while let entry = walk.entry, range.upper.map({ $0.withKey { entry.key.compare($0) < 0 } }) ?? true {
            let wasThere = try isBelow(entry.key)
            if wasThere == entry.isTombstone { correction += wasThere ? -1 : 1 }
            walk.next()
        }
        return correction
    }

    private func baseHas(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> Bool {
        try onBase { base throws(Status) in try base.read(keyspace, key) { _ in } }
    }

    private func countByWalking(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        let cursor = LoggedCursor(self, keyspace, range, reverse: false, values: false, dropping: 0)
        defer { cursor.close() }
        var count = 0
        while count < limit, try cursor.next() { count += 1 }
        return count
    }
}

/// A snapshot of the table and of the base.
final class LoggedSnapshot: LoggedView, Snapshot {
    /// Keeps the trees as they are.
    private var version: LoggedVersion?
    private let baseSnapshot: any Snapshot

    init(_ version: LoggedVersion, _ base: any Snapshot, _ life: StoreLife) {
        self.version = version
        baseSnapshot = base
        super.init(version, life)
    }

    deinit { close() }

    override func base() throws(Status) -> any Snapshot { baseSnapshot }

    func becomeLong() { baseSnapshot.becomeLong() }

    override func close() {
        if isClosed { return }
        super.close()
        baseSnapshot.close()
        version = nil
    }
}
