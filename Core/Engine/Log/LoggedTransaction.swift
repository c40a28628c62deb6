import HearthModel

/// The changes of one write, which go to the active trees and into the log's record.
final class LoggedTransaction: LoggedView, StoreTransaction {
    private let editor: TableEditor
    private let record: LogRecord
    private let store: any Store
    private var baseSnapshot: (any Snapshot)?
    /// For each keyspace, bytes of the active tree's entries.
    private(set) var bytes: ContiguousArray<Int>

    var isChanged: Bool { changes > 0 }
    override var isFixed: Bool { false }

    /// - Parameters:
    ///   - record: empty; gets the changes.
    ///   - base: nothing is frozen during the transaction, so that its snapshot may be taken late.
    ///   - bytes: of the active trees before.
    init(
        _ version: LoggedVersion, _ editor: TableEditor, _ record: LogRecord, base: any Store,
        bytes: ContiguousArray<Int>, _ life: StoreLife
    ) {
        self.editor = editor
        self.record = record
        store = base
        self.bytes = bytes
        super.init(version, life)
    }

    override func base() throws(Status) -> any Snapshot {
        if let baseSnapshot { return baseSnapshot }
        let snapshot: any Snapshot
        do throws(Status) {
            snapshot = try store.snapshot(.short)
        } catch {
            // Readers must not keep the writer out.
            guard error.code == .resourceExhausted else { throw error }
            snapshot = try store.snapshot(.long)
        }
        baseSnapshot = snapshot
        return snapshot
    }

    /// Applies a change of the log's as if it were made now.
    func replay(_ change: LogChange) {
        switch change {
        case .put(let keyspace, let key, let value):
            edit(keyspace) { root in editor.put(&root, key, value) }
            layers.contain(keyspace, key.bytes)
        case .delete(let keyspace, let key): remove(keyspace, key)
        case .clear(let keyspace): clear(keyspace)
        }
        changes += 1
    }

    @inline(__always)
    private func edit(_ keyspace: Keyspace, _ body: (inout TableBlock?) -> Void) {
        let before = editor.entryBytes
        body(&roots[LogLayers.activeTree(keyspace)])
        bytes[keyspace.rawValue] += editor.entryBytes - before
    }

    /// - Returns: whether anything has changed.
    @discardableResult
    private func remove(_ keyspace: Keyspace, _ key: RawKey) -> Bool {
        var isChanged = true
        edit(keyspace) { root in
            if layers.activeClears.contains(keyspace) {
                isChanged = editor.remove(&root, key)
            } else {
                editor.bury(&root, key)
            }
        }
        return isChanged
    }

    private func clear(_ keyspace: Keyspace) {
        editor.removeAll(&roots[LogLayers.activeTree(keyspace)])
        layers.activeClears.insert(keyspace)
        bytes[keyspace.rawValue] = 0
    }

    func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) throws(Status) {
        try check()
        if LogPosition.isKey(keyspace, key) { throw .internalError("The record's name is the log's.") }
        key.withKey { key in
            value.withUnsafeBytes { value in
                edit(keyspace) { root in editor.put(&root, key, value) }
                record.put(keyspace, key, value)
            }
        }
        layers.contain(keyspace, key)
        changes += 1
    }

    func delete(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) {
        try check()
        if LogPosition.isKey(keyspace, key) { return }
        key.withKey { key in
            guard remove(keyspace, key) else { return }
            record.delete(keyspace, key)
            changes += 1
        }
    }

    func put(_ keyspace: Keyspace, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(Status) {
        // These need the key as an array.
        if keyspace == .meta || layers.notesKeys(keyspace) {
            return try put(keyspace, [UInt8](key), [UInt8](value))
        }
        try check()
        let key = RawKey(key)
        edit(keyspace) { root in editor.put(&root, key, value) }
        record.put(keyspace, key, value)
        changes += 1
    }

    func delete(_ keyspace: Keyspace, _ key: UnsafeRawBufferPointer) throws(Status) {
        if keyspace == .meta { return try delete(keyspace, [UInt8](key)) }
        try check()
        let key = RawKey(key)
        guard remove(keyspace, key) else { return }
        record.delete(keyspace, key)
        changes += 1
    }

    func delete(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        try check()
        if limit <= 0 || range.isEmpty { return 0 }
        if range.lower.isEmpty, range.upper == nil, limit == .max { return try deleteAll(keyspace) }
        var keys: [[UInt8]] = []
        let cursor = LoggedCursor(
            self, keyspace, layers.shortened(keyspace, range), reverse: false, values: false, dropping: 0)
        while keys.count < limit, try cursor.next() { keys.append(cursor.key) }
        cursor.close()
        for key in keys { try delete(keyspace, key) }
        if keys.count < limit, let upper = range.upper {
            layers.empty(keyspace, from: range.lower, to: upper)
        } else if let last = keys.last {
            layers.empty(keyspace, from: range.lower, to: last + [0])
        }
        return keys.count
    }

    private func deleteAll(_ keyspace: Keyspace) throws(Status) -> Int {
        let count = try count(keyspace, KeyRange(lower: [], upper: nil), limit: .max)
        if count > 0 {
            clear(keyspace)
            record.clear(keyspace)
            changes += 1
        }
        return count
    }

    override func close() {
        super.close()
        baseSnapshot?.close()
        baseSnapshot = nil
    }
}
