import HearthModel

/// What snapshots and transactions of a `LoggedStore` share: reads of the active trees, the frozen ones and the base.
class LoggedView {
    private let life: StoreLife
    /// Set for a long snapshot.
    final var held: HeldVersion?
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
        if let held { try held.check() }
        if isClosed { throw .internalError("The snapshot is closed.") }
    }

    @inline(__always)
    final func active(_ keyspace: Keyspace) -> TableBlock? { roots[LogLayers.activeTree(keyspace)] }

    @inline(__always)
    final func frozen(_ keyspace: Keyspace) -> TableBlock? { roots[LogLayers.frozenTree(keyspace)] }

    /// What is hidden below the active tree.
    @inline(__always)
    final func activeRanges(_ keyspace: Keyspace) -> TableBlock? { roots[LogLayers.activeRanges(keyspace)] }

    /// What is hidden below the frozen tree.
    @inline(__always)
    final func frozenRanges(_ keyspace: Keyspace) -> TableBlock? { roots[LogLayers.frozenRanges(keyspace)] }

    /// Where a key is looked up further when the tables have no value for it.
    private enum Found {
        case value(TableEntry)
        case nothing
        case below
    }

    @inline(__always)
    private func find(_ keyspace: Keyspace, _ key: [UInt8]) -> Found {
        let (active, frozen) = (active(keyspace), frozen(keyspace))
        let (activeRanges, frozenRanges) = (activeRanges(keyspace), frozenRanges(keyspace))
        let found: Found = key.withKey { key in
            if let entry = TableTree(active).find(key) { return entry.isTombstone ? .nothing : .value(entry) }
            if TableRanges(activeRanges).range(with: key) != nil { return .nothing }
            if let entry = TableTree(frozen).find(key) { return entry.isTombstone ? .nothing : .value(entry) }
            if TableRanges(frozenRanges).range(with: key) != nil { return .nothing }
            return .below
        }
        if case .below = found, LogPosition.isKey(keyspace, key) { return .nothing }
        return found
    }

    final func get(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? {
        try check()
        switch find(keyspace, key) {
        case .value(let entry): return [UInt8](entry.value)
        case .nothing: return nil
        case .below: return try onBase { base throws(Status) in try base.get(keyspace, key) }
        }
    }

    final func read(
        _ keyspace: Keyspace, _ key: [UInt8], _ body: (UnsafeRawBufferPointer) throws(Status) -> Void
    ) throws(Status) -> Bool {
        try check()
        switch find(keyspace, key) {
        case .value(let entry):
            try body(entry.value)
            return true
        case .nothing: return false
        case .below: break
        }
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
        if isFixed, keyspace != .meta, !hasEntries(keyspace, range) {
            return try base().scan(keyspace, range, reverse: reverse, values: values, dropping: dropping)
        }
        return LoggedCursor(self, keyspace, range, reverse: reverse, values: values, dropping: dropping)
    }

    private func hasEntries(_ keyspace: Keyspace, _ range: KeyRange) -> Bool {
        TableTree(active(keyspace)).hasEntries(range) || TableTree(frozen(keyspace)).hasEntries(range)
            || TableRanges(activeRanges(keyspace)).meets(range) || TableRanges(frozenRanges(keyspace)).meets(range)
    }

    func close() { isClosed = true }

    // MARK: Counting

    /// The tables' entries of a range of which each may cost a read of the base.
    private static let correctionsMax = 16
    /// More are corrected when the base has this many times as many keys.
    private static let keysPerCorrection = 8

    final func count(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        try check()
        if limit <= 0 || range.isEmpty { return 0 }
        let (activeRanges, frozenRanges) = (
            TableRanges(activeRanges(keyspace)), TableRanges(frozenRanges(keyspace))
        )
        if activeRanges.isEmpty, frozenRanges.isEmpty {
            return try countOverBase(keyspace, range, limit: limit)
        }
        // Where a range is, a tree has no tombstones, and nothing is below it.
        let active = TableTree(active(keyspace))
        var count = 0
        try activeRanges.forEachPart(of: range) { part, isCovered throws(Status) in
            if isCovered {
                count += active.count(part)
                return count < limit
            }
            try frozenRanges.forEachPart(of: part) { part, isCovered throws(Status) in
                if !isCovered {
                    count += try countOverBase(keyspace, part, limit: limit - count)
                } else if active.count(part) == 0 {
                    count += TableTree(frozen(keyspace)).count(part)
                } else {
                    count += try countByWalking(keyspace, part, limit: limit - count)
                }
                return count < limit
            }
            return count < limit
        }
        return min(limit, count)
    }

    /// The number of keys where the tables have no ranges.
    private func countOverBase(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        let (active, frozen) = (TableTree(active(keyspace)), TableTree(frozen(keyspace)))
        let entryCount = active.count(range) + frozen.count(range)
        if entryCount > max(Self.correctionsMax, limit / Self.keysPerCorrection) {
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
    private let heldVersions: HeldVersions

    init(
        _ version: LoggedVersion, _ base: any Snapshot, _ life: StoreLife, _ held: HeldVersions, _ use: SnapshotUse
    ) {
        self.version = version
        baseSnapshot = base
        heldVersions = held
        super.init(version, life)
        if use == .long { hold() }
    }

    deinit { close() }

    override func base() throws(Status) -> any Snapshot { baseSnapshot }

    func becomeLong() {
        baseSnapshot.becomeLong()
        hold()
    }

    private func hold() {
        guard held == nil, let version else { return }
        let held = HeldVersion(version.table.number, baseSnapshot)
        heldVersions.add(held)
        self.held = held
    }

    func revoke() -> Bool { held?.revoke() ?? true }

    override func close() {
        if isClosed { return }
        super.close()
        if let held { heldVersions.remove(held) }
        baseSnapshot.close()
        version = nil
    }
}
