import HearthModel
import HearthEngine
import Synchronization

/// A store whose snapshots and transactions show the complete tree, also while a graft keeps parts of it in the staging
/// area.
///
/// Without a graft, which is nearly always the case, all operations are those of the inner store. One thread writes.
final class TreeStore: Store {
    private struct State {
        /// The graft that snapshots may show: from before it is made until after it has ended.
        var graft: TreeGraft?
        /// Counts the changes of `graft`.
        var epoch = 0
    }

    private let inner: any Store
    private let state: Mutex<State>

    init(_ inner: any Store) throws(Status) {
        self.inner = inner
        let snapshot = try inner.snapshot()
        defer { snapshot.close() }
        state = Mutex(State(graft: try TreeGraft.load(snapshot)))
    }

    /// Whether parts of the tree are in the staging area.
    var hasGraft: Bool { state.withLock { $0.graft != nil } }

    private func set(_ graft: TreeGraft?) {
        state.withLock { state in
            state.graft = graft
            state.epoch += 1
        }
    }

    // MARK: Store

    func snapshot() throws(Status) -> any Snapshot { try snapshot(.short) }

    func snapshot(_ use: SnapshotUse) throws(Status) -> any Snapshot {
        while true {
            let before = state.withLock { $0 }
            let snapshot = try inner.snapshot(use)
            if state.withLock({ $0.epoch }) != before.epoch {
                snapshot.close()
                continue
            }
            guard let graft = before.graft else { return snapshot }
            do throws(Status) {
                guard let boundary = try TreeGraft.boundary(snapshot) else { return snapshot }
                return GraftSnapshot(snapshot, try graft.map(boundary, in: snapshot))
            } catch {
                snapshot.close()
                throw error
            }
        }
    }

    func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        try writeTree { transaction throws(Status) in try body(transaction) }
    }

    func writeTree<Result>(_ body: (TreeTransaction) throws(Status) -> Result) throws(Status) -> Result {
        let graft = state.withLock { $0.graft }
        return try inner.write { transaction throws(Status) in
            let shown = TreeTransaction(transaction, self)
            if let graft, let boundary = try TreeGraft.boundary(transaction) {
                try shown.show(graft, boundary)
            }
            return try body(shown)
        }
    }

    func maintain() { inner.maintain() }
    func damage(max: Int) throws(Status) -> [String] { try inner.damage(max: max) }
    var sizeBytes: Int? { inner.sizeBytes }
    func close() { inner.close() }
    func close(because reason: Status) { inner.close(because: reason) }

    // MARK: Grafts

    /// Must be called within a transaction, before it makes the graft.
    func begin(_ graft: TreeGraft) { set(graft) }

    /// A transaction that may have made one of these grafts has failed.
    func cancelGraft(ifBegunIn grafts: some Sequence<TreeGraft>) {
        let present = state.withLock { $0.graft }
        if let present, grafts.contains(where: { $0 === present }) { set(nil) }
    }

    /// Puts records into the staging area.
    /// - Parameter fill: returns the next record, nil at the end.
    /// - Returns: whether all of them are stored.
    func stage(
        _ id: UInt32, _ bounds: SliceBounds, _ fill: () -> (keyspace: Keyspace, record: StoreRecord)?
    ) throws(Status) -> Bool {
        let prefix = TreeGraft.prefix(id)
        return try inner.write { transaction throws(Status) in
            var slice = Slice(bounds)
            while let (keyspace, record) = fill() {
                try transaction.put(keyspace, prefix + record.key, record.value)
                slice.add(record.key.count + record.value.count)
                if slice.isFull { return false }
            }
            return true
        }
    }

    /// Makes a part of a shadow of the tree.
    /// - Parameter body: works in the transaction until the slice is full; returns whether all is made.
    func build(
        _ bounds: SliceBounds, _ body: (any StoreTransaction, inout Slice) throws(Status) -> Bool
    ) throws(Status) -> Bool {
        try inner.write { transaction throws(Status) in
            var slice = Slice(bounds)
            return try body(transaction, &slice)
        }
    }

    /// Deletes a part of the staged records that belong to no graft. Must not be called while there is a graft.
    /// - Returns: whether no record is left.
    func sweep(_ bounds: SliceBounds) throws(Status) -> Bool {
        let range = KeyRange(prefix: [PathCode.Space.staged])
        return try inner.write { transaction throws(Status) in
            var slice = Slice(bounds)
            for keyspace in [Keyspace.documents, .entries] {
                try slice.delete(keyspace, range, in: transaction)
                if slice.isFull { return false }
            }
            return true
        }
    }

    /// Whether anything is staged.
    func hasStaged() throws(Status) -> Bool {
        let snapshot = try inner.snapshot()
        defer { snapshot.close() }
        let range = KeyRange(prefix: [PathCode.Space.staged])
        for keyspace in [Keyspace.documents, .entries] where try snapshot.count(keyspace, range, limit: 1) > 0 {
            return true
        }
        return false
    }

    /// Moves a part of a graft's staged records to their final keys, after the earlier records of these keys are
    /// deleted.
    /// - Returns: whether the graft has ended.
    func settle(_ bounds: SliceBounds) throws(Status) -> Bool {
        guard let graft = state.withLock({ $0.graft }) else { return true }
        let isDone = try inner.write { transaction throws(Status) in
            guard var boundary = try TreeGraft.boundary(transaction) else { return true }
            var slice = Slice(bounds)
            if let delta = graft.delta {
                if try !delta.settle(&slice, transaction) { return false }
                try TreeGraft.end(transaction)
                return true
            }
            for keyspace in [Keyspace.documents, .entries] where keyspace.rawValue >= boundary.keyspace.rawValue {
                if keyspace != boundary.keyspace { boundary = GraftBoundary(keyspace: keyspace, key: []) }
                for range in graft.ranges(keyspace) {
                    if try !Self.move(range, &boundary, &slice, graft, transaction) {
                        try TreeGraft.set(boundary, transaction)
                        return false
                    }
                }
            }
            try TreeGraft.end(transaction)
            return true
        }
        if isDone { set(nil) }
        return isDone
    }

    /// - Returns: whether a whole range is at its final keys.
    private static func move(
        _ range: KeyRange, _ boundary: inout GraftBoundary, _ slice: inout Slice, _ graft: TreeGraft,
        _ transaction: any StoreTransaction
    ) throws(Status) -> Bool {
        var rest = range
        if UTF8Order.compare(boundary.key, rest.lower) > 0 { rest.lower = boundary.key }
        if rest.isEmpty { return true }
        if slice.isFull { return false }
        try slice.delete(boundary.keyspace, rest, in: transaction)
        if slice.isFull { return false }
        var records: [StoreRecord] = []
        var isWhole = true
        do {
            let staged = KeyRange(lower: graft.prefix + rest.lower, upper: rest.upper.map { graft.prefix + $0 })
            let cursor = try transaction.scan(
                boundary.keyspace, staged, reverse: false, values: true, dropping: graft.prefix.count)
            defer { cursor.close() }
            while isWhole, try cursor.next() {
                records.append(StoreRecord(key: cursor.key, value: cursor.value))
                slice.add(cursor.key.count + cursor.value.count)
                isWhole = !slice.isFull
            }
        }
        for record in records { try transaction.put(boundary.keyspace, record.key, record.value) }
        if let last = records.last {
            boundary.key = last.key + [0]
            let moved = KeyRange(lower: graft.prefix + rest.lower, upper: graft.prefix + boundary.key)
            try transaction.delete(boundary.keyspace, moved, limit: .max)
        }
        if isWhole, let upper = rest.upper { boundary.key = upper }
        return isWhole
    }
}

private final class GraftSnapshot: Snapshot {
    private let inner: any Snapshot
    private let map: any StoredTreeMap

    init(_ inner: any Snapshot, _ map: any StoredTreeMap) {
        self.inner = inner
        self.map = map
    }

    func get(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? {
        try map.get(inner, keyspace, key)
    }

    func scan(
        _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) throws(Status) -> any KeyCursor {
        try map.scan(inner, keyspace, range, reverse: reverse, values: values, dropping: dropping)
    }

    func count(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        try map.count(inner, keyspace, range, limit: limit)
    }

    func becomeLong() { inner.becomeLong() }
    func close() { inner.close() }
}

extension TreeGraft {
    func map(_ boundary: GraftBoundary, in snapshot: any Snapshot) throws(Status) -> any StoredTreeMap {
        if let delta { return try TreeDeltaMap(delta, in: snapshot) }
        return GraftMap(graft: self, boundary: boundary)
    }
}
