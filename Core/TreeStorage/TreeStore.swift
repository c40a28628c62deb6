import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTree
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
    fileprivate func begin(_ graft: TreeGraft) { set(graft) }

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
        for record in records {
            try transaction.put(boundary.keyspace, record.key, record.value)
            try transaction.delete(boundary.keyspace, graft.prefix + record.key)
        }
        if let last = records.last { boundary.key = last.key + [0] }
        if isWhole, let upper = rest.upper { boundary.key = upper }
        return isWhole
    }
}

/// The limits of one transaction of background work.
struct SliceBounds: Sendable {
    var recordsMax = Limits.treeSliceRecordsMax
    var bytesMax = Limits.treeSliceBytesMax
    var milliseconds = Limits.treeSliceMilliseconds
}

/// The work of one transaction in the background.
package struct Slice {
    private let bounds: SliceBounds
    private let end: MonotonicTime
    private var records = 0
    private var bytes = 0
    private(set) var isFull = false

    init(_ bounds: SliceBounds) {
        self.bounds = bounds
        end = MonotonicTime.now.advanced(milliseconds: bounds.milliseconds)
    }

    var recordsLeft: Int { max(0, bounds.recordsMax - records) }

    /// Whether the time is over, too.
    mutating func readClock() {
        if MonotonicTime.now >= end { isFull = true }
    }

    /// Counts a written record of a number of bytes.
    mutating func add(_ size: Int) {
        bytes += size
        add(records: 1)
    }

    /// Deletes records of a range until the slice is full. Strings are deleted a few at a time, and the clock is read
    /// between: each may be very long, and the store visits all of it.
    mutating func delete(
        _ keyspace: Keyspace, _ range: KeyRange, in transaction: any StoreTransaction
    ) throws(Status) {
        while !isFull {
            let limit = keyspace == .documents ? min(Self.stringsAtATime, recordsLeft) : recordsLeft
            let count = try transaction.delete(keyspace, range, limit: limit)
            add(records: count)
            if count < limit { return }
            if MonotonicTime.now >= end { isFull = true }
        }
    }

    static let stringsAtATime = 4

    mutating func add(records count: Int) {
        let before = records
        records += count
        if records >= bounds.recordsMax || bytes >= bounds.bytesMax {
            isFull = true
        } else if before / 64 != records / 64, MonotonicTime.now >= end {
            isFull = true
        }
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

/// A transaction that sees the complete tree; a graft may be made in it.
final class TreeTransaction: StoreTransaction {
    private enum Form {
        case plain
        case ranges(GraftMap)
        case delta(TreeDeltaMap)
        /// The tree, beside a shadow of it that must not change with it.
        case beside(TreeShadow)
    }

    private let inner: any StoreTransaction
    private let store: TreeStore
    private var form = Form.plain

    fileprivate init(_ inner: any StoreTransaction, _ store: TreeStore) {
        self.inner = inner
        self.store = store
    }

    fileprivate func show(_ graft: TreeGraft, _ boundary: GraftBoundary) throws(Status) {
        if let delta = graft.delta {
            form = .delta(try TreeDeltaMap(delta, in: inner))
        } else {
            form = .ranges(GraftMap(graft: graft, boundary: boundary))
        }
    }

    /// From here on the ranges of a graft contain their staged records.
    func begin(_ graft: TreeGraft) throws(Status) {
        store.begin(graft)
        try show(graft, try graft.begin(inner))
    }

    /// Runs an operation on a shadow of the tree.
    func work<Result>(
        on shadow: TreeShadow, _ body: (ShadowTransaction) throws(Status) -> Result
    ) throws(Status) -> Result {
        try body(ShadowTransaction(inner, shadow))
    }

    /// Runs an operation whose changes must not appear in a shadow, except those that the shadow has made itself.
    func work<Result>(beside shadow: TreeShadow, _ body: () throws(Status) -> Result) throws(Status) -> Result {
        form = .beside(shadow)
        defer { form = .plain }
        return try body()
    }

    private var map: (any StoredTreeMap)? {
        switch form {
        case .plain, .beside: nil
        case .ranges(let map): map
        case .delta(let map): map
        }
    }

    func get(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? {
        guard let map else { return try inner.get(keyspace, key) }
        return try map.get(inner, keyspace, key)
    }

    func scan(
        _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) throws(Status) -> any KeyCursor {
        guard let map else {
            return try inner.scan(keyspace, range, reverse: reverse, values: values, dropping: dropping)
        }
        return try map.scan(inner, keyspace, range, reverse: reverse, values: values, dropping: dropping)
    }

    func count(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        guard let map else { return try inner.count(keyspace, range, limit: limit) }
        return try map.count(inner, keyspace, range, limit: limit)
    }

    func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) throws(Status) {
        if TreeDelta.isOfTree(keyspace) {
            switch form {
            case .plain: break
            case .ranges(let map):
                if map.isStaged(keyspace, key) { return try inner.put(keyspace, map.staged(key), value) }
            case .delta(let map):
                let staged = map.delta.staged(key)
                if try map.isHidden(key, inner, keyspace) { return try inner.put(keyspace, staged, value) }
                try inner.delete(keyspace, staged)
            case .beside(let shadow): try shadow.keep(keyspace, key, before: value, inner)
            }
        }
        try inner.put(keyspace, key, value)
    }

    func delete(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) {
        if TreeDelta.isOfTree(keyspace) {
            switch form {
            case .plain: break
            case .ranges(let map):
                if map.isStaged(keyspace, key) { return try inner.delete(keyspace, map.staged(key)) }
            case .delta(let map): try inner.delete(keyspace, map.delta.staged(key))
            case .beside(let shadow): try shadow.keep(keyspace, key, before: nil, inner)
            }
        }
        // The records that are hidden here will be deleted anyway.
        try inner.delete(keyspace, key)
    }

    func delete(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        guard TreeDelta.isOfTree(keyspace) else { return try inner.delete(keyspace, range, limit: limit) }
        switch form {
        case .plain: return try inner.delete(keyspace, range, limit: limit)
        case .ranges(let map):
            var count = 0
            for segment in map.segments(keyspace, range) {
                if count >= limit { break }
                count += try inner.delete(keyspace, map.location(segment), limit: limit == .max ? .max : limit - count)
            }
            return count
        case .delta: return try deleteEach(keyspace, range, limit: limit)
        case .beside(let shadow):
            if limit < .max { return try deleteEach(keyspace, range, limit: limit) }
            try shadow.keep(keyspace, range, inner)
            return try inner.delete(keyspace, range, limit: limit)
        }
    }

    /// Deletes the visible records; hidden ones cost nothing.
    private func deleteEach(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        var keys: [[UInt8]] = []
        do {
            let cursor = try scan(keyspace, range, reverse: false, values: false, dropping: 0)
            defer { cursor.close() }
            while keys.count < limit, try cursor.next() { keys.append(cursor.key) }
        }
        for key in keys { try delete(keyspace, key) }
        return keys.count
    }

    func close() { inner.close() }
}
