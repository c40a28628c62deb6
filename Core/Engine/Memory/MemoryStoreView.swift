import HearthModel

/// What snapshots and transactions share: reads of the trees.
class MemoryStoreView {
    private let life: StoreLife
    /// A tree's root for each keyspace; a transaction's, with its own changes.
    fileprivate(set) var roots: ContiguousArray<TableBlock?>
    private(set) var isClosed = false
    /// Counts the changes of a transaction.
    fileprivate(set) var changes = 0

    fileprivate init(_ roots: ContiguousArray<TableBlock?>, _ life: StoreLife) {
        self.roots = roots
        self.life = life
    }

    /// Fails when the view or the store is closed.
    @inline(__always)
    final func check() throws(Status) {
        try life.check()
        if isClosed { throw .internalError("The snapshot is closed.") }
    }

    @inline(__always)
    final func root(_ keyspace: Keyspace) -> TableBlock? { roots[keyspace.rawValue] }

    final func get(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? {
        try check()
        return find(keyspace, key).map { [UInt8]($0.value) }
    }

    final func read(
        _ keyspace: Keyspace, _ key: [UInt8], _ body: (UnsafeRawBufferPointer) throws(Status) -> Void
    ) throws(Status) -> Bool {
        try check()
        guard let entry = find(keyspace, key) else { return false }
        try body(entry.value)
        return true
    }

    @inline(__always)
    private func find(_ keyspace: Keyspace, _ key: [UInt8]) -> TableEntry? {
        let tree = TableTree(root(keyspace))
        return key.withKey { tree.find($0) }
    }

    final func scan(
        _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) throws(Status) -> any KeyCursor {
        try check()
        return MemoryStoreCursor(self, keyspace, range, reverse: reverse, values: values, dropping: dropping)
    }

    final func count(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        try check()
        let tree = TableTree(root(keyspace))
        let end = range.upper.map { $0.withKey { tree.rank($0) } } ?? tree.count
        return max(0, min(limit, end - range.lower.withKey { tree.rank($0) }))
    }

    func close() { isClosed = true }
}

final class MemoryStoreSnapshot: MemoryStoreView, Snapshot {
    /// Keeps the trees as they are.
    private var version: TableVersion?

    init(_ version: TableVersion, _ life: StoreLife) {
        self.version = version
        super.init(version.roots, life)
    }

    override func close() {
        super.close()
        version = nil
    }
}

final class MemoryStoreTransaction: MemoryStoreView, StoreTransaction {
    private let editor: TableEditor

    var isChanged: Bool { changes > 0 }

    init(_ table: Table, _ life: StoreLife) {
        let (editor, roots) = table.begin()
        self.editor = editor
        super.init(roots, life)
    }

    func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) throws(Status) {
        try check()
        key.withKey { key in
            value.withUnsafeBytes { value in editor.put(&roots[keyspace.rawValue], key, value) }
        }
        changes += 1
    }

    func delete(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) {
        try check()
        if key.withKey({ editor.remove(&roots[keyspace.rawValue], $0) }) { changes += 1 }
    }

    func put(_ keyspace: Keyspace, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(Status) {
        try check()
        editor.put(&roots[keyspace.rawValue], RawKey(key), value)
        changes += 1
    }

    func delete(_ keyspace: Keyspace, _ key: UnsafeRawBufferPointer) throws(Status) {
        try check()
        if editor.remove(&roots[keyspace.rawValue], RawKey(key)) { changes += 1 }
    }

    func delete(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        try check()
        if range.lower.isEmpty, range.upper == nil, limit == .max { return deleteAll(keyspace) }
        var keys: [[UInt8]] = []
        let cursor = MemoryStoreCursor(self, keyspace, range, reverse: false, values: false, dropping: 0)
        while keys.count < limit, try cursor.next() { keys.append(cursor.key) }
        for key in keys { try delete(keyspace, key) }
        return keys.count
    }

    private func deleteAll(_ keyspace: Keyspace) -> Int {
        let count = TableTree(roots[keyspace.rawValue]).count
        if count > 0 {
            editor.removeAll(&roots[keyspace.rawValue])
            changes += 1
        }
        return count
    }
}
