import HearthModel
import Synchronization

/// A store without a disk: for `--memory` and for tests. Its contents live as long as its provider.
///
/// The present state is four trees that share nodes with the states before (`MemoryStoreTree`). A snapshot retains
/// them; a transaction changes a copy, which becomes the present state when it succeeds.
package final class MemoryStore: Store {
    private let contents: MemoryStoreContents
    private let life = MemoryStoreLife()

    package convenience init() {
        self.init(MemoryStoreContents())
    }

    fileprivate init(_ contents: MemoryStoreContents) {
        self.contents = contents
    }

    package func snapshot() throws(Status) -> any Snapshot {
        try life.check()
        return MemoryStoreSnapshot(contents.trees.withLock { $0 }, life)
    }

    package func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        // Mutex can't return a value that isn't Sendable.
        var result: Result?
        try contents.writer.withLock { _ throws(Status) in
            try life.check()
            let transaction = MemoryStoreTransaction(contents.trees.withLock { $0 }, life)
            defer { transaction.close() }
            result = try body(transaction)
            if !transaction.isChanged { return }
            let trees = transaction.trees
            contents.trees.withLock { $0 = trees }
            contents.changes.add(1, ordering: .relaxed)
        }
        guard let result else { preconditionFailure("a body that didn't throw has a result") }
        return result
    }

    package func maintain() {}

    package func close() { life.end() }
    package func close(because reason: Status) { life.end(reason) }

    /// A store of its own with the same contents, in constant time.
    func copied() -> MemoryStore {
        let copy = MemoryStoreContents()
        let trees = contents.trees.withLock { $0 }
        copy.trees.withLock { $0 = trees }
        return MemoryStore(copy)
    }

    /// How many transactions put or deleted something.
    var changeCount: Int { contents.changes.load(ordering: .relaxed) }

    var isOpen: Bool { life.isOpen }
    /// Another handle for the same contents.
    func reopened() -> MemoryStore { MemoryStore(contents) }
}

/// What all handles of a database share.
private final class MemoryStoreContents: Sendable {
    /// Held during a transaction.
    let writer = Mutex<Void>(())
    /// One tree a keyspace, by its raw value.
    let trees = Mutex(Array(repeating: MemoryStoreTree(), count: Keyspace.allCases.count))
    let changes = Atomic(0)
}

/// Whether a store is open; checked by its snapshots and cursors.
final class MemoryStoreLife: Sendable {
    private let ended = Atomic(false)
    private let reason = Mutex(Status.unavailable("The database is closed."))

    var isOpen: Bool { !ended.load(ordering: .acquiring) }

    func end() { ended.store(true, ordering: .releasing) }

    func end(_ reason: Status) {
        self.reason.withLock { if isOpen { $0 = reason } }
        end()
    }

    @inline(__always)
    func check() throws(Status) {
        if !isOpen { throw reason.withLock { $0 } }
    }
}

private class MemoryStoreSnapshot: Snapshot {
    fileprivate var trees: [MemoryStoreTree]
    fileprivate let life: MemoryStoreLife

    init(_ trees: [MemoryStoreTree], _ life: MemoryStoreLife) {
        self.trees = trees
        self.life = life
    }

    /// The trees, or an error when the snapshot or the store is closed.
    @inline(__always)
    final func check() throws(Status) {
        try life.check()
        if trees.isEmpty { throw .internalError("The snapshot is closed.") }
    }

    final func get(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? {
        try check()
        return trees[keyspace.rawValue].get(key)
    }

    final func scan(
        _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) throws(Status) -> any KeyCursor {
        try check()
        return MemoryStoreCursor(
            trees[keyspace.rawValue], range, reverse: reverse, values: values, dropping: dropping, life: life)
    }

    final func count(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        try check()
        let tree = trees[keyspace.rawValue]
        let end = range.upper.map { tree.rank($0) } ?? tree.count
        return max(0, min(limit, end - tree.rank(range.lower)))
    }

    final func close() { trees = [] }
}

private final class MemoryStoreTransaction: MemoryStoreSnapshot, StoreTransaction {
    private(set) var isChanged = false

    func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) throws(Status) {
        try check()
        isChanged = true
        trees[keyspace.rawValue].put(key, value)
    }

    func delete(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) {
        try check()
        isChanged = true
        trees[keyspace.rawValue].remove(key)
    }

    func delete(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        if range.lower.isEmpty, range.upper == nil, limit == .max { return try deleteAll(keyspace) }
        let keys = try keys(keyspace, range, limit: limit)
        if !keys.isEmpty { isChanged = true }
        for key in keys { trees[keyspace.rawValue].remove(key) }
        return keys.count
    }

    private func deleteAll(_ keyspace: Keyspace) throws(Status) -> Int {
        try check()
        let count = trees[keyspace.rawValue].count
        if count > 0 {
            isChanged = true
            trees[keyspace.rawValue] = MemoryStoreTree()
        }
        return count
    }

    /// In a function of its own, so that no cursor holds the nodes while they are changed.
    private func keys(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> [[UInt8]] {
        var keys: [[UInt8]] = []
        let cursor = try scan(keyspace, range, reverse: false, values: false)
        while keys.count < limit, try cursor.next() { keys.append(cursor.key) }
        return keys
    }
}
