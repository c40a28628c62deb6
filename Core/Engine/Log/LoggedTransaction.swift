import HearthModel

/// The changes of one write, which go to the active trees and into the log's record.
final class LoggedTransaction: LoggedView, StoreTransaction {
    private let editor: TableEditor
    private let record: LogRecord
    private let store: any Store
    private let rangeKeysMin: Int
    private var baseSnapshot: (any Snapshot)?
    /// For each keyspace, bytes of the active tree's entries.
    private(set) var bytes: ContiguousArray<Int>

    var isChanged: Bool { changes > 0 }
    override var isFixed: Bool { false }

    /// - Parameters:
    ///   - record: empty; gets the changes.
    ///   - base: nothing is frozen during the transaction, so that its snapshot may be taken late.
    ///   - bytes: of the active trees before.
    ///   - rangeKeysMin: as in the options.
    init(
        _ version: LoggedVersion, _ editor: TableEditor, _ record: LogRecord, base: any Store,
        bytes: ContiguousArray<Int>, rangeKeysMin: Int, _ life: StoreLife
    ) {
        self.editor = editor
        self.record = record
        store = base
        self.bytes = bytes
        self.rangeKeysMin = rangeKeysMin
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
        case .delete(let keyspace, let key): remove(keyspace, key)
        case .deleteRange(let keyspace, let lower, let upper): remove(keyspace, lower, upper)
        }
        changes += 1
    }

    @inline(__always)
    private func edit(_ keyspace: Keyspace, _ body: (inout TableBlock?) -> Void) {
        edit(LogLayers.activeTree(keyspace), keyspace, body)
    }

    @inline(__always)
    private func edit(_ tree: Int, _ keyspace: Keyspace, _ body: (inout TableBlock?) -> Void) {
        let before = editor.entryBytes
        body(&roots[tree])
        bytes[keyspace.rawValue] += editor.entryBytes - before
    }

    /// - Returns: whether anything has changed.
    @discardableResult
    private func remove(_ keyspace: Keyspace, _ key: RawKey) -> Bool {
        var isChanged = true
        let isHidden = TableRanges(activeRanges(keyspace)).range(with: key) != nil
        edit(keyspace) { root in
            if isHidden {
                isChanged = editor.remove(&root, key)
            } else {
                editor.bury(&root, key)
            }
        }
        return isChanged
    }

    /// Removes the keys of a range, and hides those below the active tree.
    private func remove(_ keyspace: Keyspace, _ lower: RawKey, _ upper: RawKey?) {
        if lower.count == 0, upper == nil {
            editor.removeAll(&roots[LogLayers.activeTree(keyspace)], bytes: bytes[keyspace.rawValue])
            editor.removeAll(&roots[LogLayers.activeRanges(keyspace)])
            bytes[keyspace.rawValue] = 0
        } else {
            for key in activeKeys(keyspace, lower, upper) {
                edit(keyspace) { root in _ = key.withKey { editor.remove(&root, $0) } }
            }
        }
        edit(LogLayers.activeRanges(keyspace), keyspace) { root in TableRanges.add(&root, lower, upper, editor) }
    }

    /// The keys of a range of the active tree, also those of tombstones.
    private func activeKeys(_ keyspace: Keyspace, _ lower: RawKey, _ upper: RawKey?) -> [[UInt8]] {
        var keys: [[UInt8]] = []
        var walk = TableWalk(active(keyspace))
        walk.moveUp(to: lower)
        while let entry = walk.entry, upper.map({ entry.key.compare($0) < 0 }) ?? true {
            keys.append(entry.key.bytes)
            walk.next()
        }
        return keys
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
        if keyspace == .meta { return try put(keyspace, [UInt8](key), [UInt8](value)) }
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
        var keys: [[UInt8]] = []
        let cursor = LoggedCursor(self, keyspace, range, reverse: false, values: false, dropping: 0)
        defer { cursor.close() }
        while keys.count < limit, keys.count + cursor.tombstones < rangeKeysMin, try cursor.next() {
            keys.append(cursor.key)
        }
        if keys.count + cursor.tombstones < rangeKeysMin {
            for key in keys { try delete(keyspace, key) }
            return keys.count
        }
        guard let last = keys.last else {
            // Or else the next deletion would meet all these tombstones, too.
            delete(keyspace, range)
            return 0
        }
        if limit == .max {
            let rest = KeyRange(lower: last + [0], upper: range.upper)
            let count = try keys.count + count(keyspace, rest, limit: .max)
            delete(keyspace, range)
            return count
        }
        var count = keys.count
        var end = last
        while count < limit, try cursor.next() {
            count += 1
            end = cursor.key
        }
        delete(keyspace, count < limit ? range : KeyRange(lower: range.lower, upper: end + [0]))
        return count
    }

    private func delete(_ keyspace: Keyspace, _ range: KeyRange) {
        range.lower.withKey { lower in
            range.upper.withKey { upper in
                remove(keyspace, lower, upper)
                record.deleteRange(keyspace, lower, upper)
            }
        }
        changes += 1
    }

    override func close() {
        super.close()
        baseSnapshot?.close()
        baseSnapshot = nil
    }
}
