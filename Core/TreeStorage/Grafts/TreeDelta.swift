import HearthModel
import HearthEngine

/// The difference between the tree and another tree: records that replace or extend its own, and ranges of its keys
/// that are hidden.
///
///     04, ID, the whole key         a record of the other tree, in the same keyspace
///     04, ID, FF, the first key     a range of the tree's keys that the other lacks; the value is the key at its end
///
/// A record is visible whatever is hidden. Ranges don't overlap, and each extends to the next key of the tree that was
/// not hidden when it was made. So there is a visible key between two ranges, and a reader that skips a range by one
/// search does not pay for deleted records. Nothing of a delta is held in memory.
struct TreeDelta: Sendable {
    /// The first bytes of the records' keys.
    let prefix: [UInt8]
    private let hiddenPrefix: [UInt8]

    /// Behind the first bytes of all keys of the tree.
    private static let hiddenMark: UInt8 = 0xFF
    /// The end of the tree's keys.
    private static let end: [UInt8] = [PathCode.Space.staged]

    init(id: UInt32) {
        prefix = TreeGraft.prefix(id)
        hiddenPrefix = prefix + [Self.hiddenMark]
    }

    /// The keyspaces of a tree.
    static let keyspaces = [Keyspace.documents, .entries]

    static func isOfTree(_ keyspace: Keyspace) -> Bool { keyspace == .documents || keyspace == .entries }

    func staged(_ key: [UInt8]) -> [UInt8] { prefix + key }

    /// A range of the tree's keys, without the staging area.
    static func clipped(_ range: KeyRange) -> (lower: [UInt8], upper: [UInt8]) {
        (range.lower, range.upper.map { UTF8Order.compare($0, end) < 0 ? $0 : end } ?? end)
    }

    /// The location of a range's records in the store.
    func staged(_ range: KeyRange) -> KeyRange {
        let (lower, upper) = Self.clipped(range)
        return KeyRange(lower: prefix + lower, upper: prefix + upper)
    }

    var records: KeyRange { KeyRange(lower: prefix, upper: hiddenPrefix) }
    var hidden: KeyRange { KeyRange(prefix: hiddenPrefix) }

    // MARK: Hidden ranges

    /// The last hidden range that begins at a key or before it.
    private func last(
        from key: [UInt8], _ snapshot: any Snapshot, _ keyspace: Keyspace
    ) throws(Status) -> (start: [UInt8], end: [UInt8])? {
        let cursor = try hiddenRanges(snapshot, keyspace, from: key, reverse: true)
        defer { cursor.close() }
        return try cursor.next() ? (cursor.key, cursor.value) : nil
    }

    /// Hidden ranges upwards or downwards: those that begin behind a key, or at it and before.
    func hiddenRanges(
        _ snapshot: any Snapshot, _ keyspace: Keyspace, from key: [UInt8], reverse: Bool
    ) throws(Status) -> any KeyCursor {
        let behind = hiddenPrefix + key + [0]
        let range =
            reverse
            ? KeyRange(lower: hiddenPrefix, upper: behind) : KeyRange(lower: behind, upper: hidden.upper)
        return try snapshot.scan(
            keyspace, range, reverse: reverse, values: true, dropping: hiddenPrefix.count)
    }

    func isHidden(_ key: [UInt8], _ snapshot: any Snapshot, _ keyspace: Keyspace) throws(Status) -> Bool {
        guard let (_, end) = try last(from: key, snapshot, keyspace) else { return false }
        return UTF8Order.compare(key, end) < 0
    }

    /// Hides a range up to the next key of the tree behind it.
    func hide(_ range: KeyRange, _ transaction: any StoreTransaction, _ keyspace: Keyspace) throws(Status) {
        var (start, end) = Self.clipped(range)
        if UTF8Order.compare(start, end) >= 0 { return }
        end = try next(from: end, transaction, keyspace)
        if let before = try last(from: start, transaction, keyspace), UTF8Order.compare(before.end, start) >= 0 {
            if UTF8Order.compare(before.end, end) >= 0 { return }
            start = before.start
        }
        if let within = try last(from: end, transaction, keyspace), UTF8Order.compare(within.start, start) > 0 {
            let merged = KeyRange(lower: hiddenPrefix + start + [0], upper: hiddenPrefix + end + [0])
            try transaction.delete(keyspace, merged, limit: .max)
            if UTF8Order.compare(within.end, end) > 0 { end = within.end }
        }
        try transaction.put(keyspace, hiddenPrefix + start, end)
    }

    /// The first key of the tree at a key or behind it.
    private func next(
        from key: [UInt8], _ snapshot: any Snapshot, _ keyspace: Keyspace
    ) throws(Status) -> [UInt8] {
        if UTF8Order.compare(key, Self.end) >= 0 { return Self.end }
        let cursor = try snapshot.scan(
            keyspace, KeyRange(lower: key, upper: Self.end), reverse: false, values: false)
        defer { cursor.close() }
        return try cursor.next() ? cursor.key : Self.end
    }

    // MARK: Moving into the tree

    /// Moves a part of it into the tree, of which it is already a part for all readers.
    /// - Returns: whether no record is left.
    func settle(_ slice: inout Slice, _ transaction: any StoreTransaction) throws(Status) -> Bool {
        for keyspace in Self.keyspaces {
            while let (start, end) = try firstHidden(transaction, keyspace) {
                try slice.delete(keyspace, KeyRange(lower: start, upper: end), in: transaction)
                // A record may be left.
                if slice.isFull { return false }
                try transaction.delete(keyspace, hiddenPrefix + start)
                slice.add(records: 1)
                if slice.isFull { return false }
            }
            if try !moveRecords(keyspace, &slice, transaction) { return false }
        }
        return true
    }

    private func firstHidden(
        _ transaction: any StoreTransaction, _ keyspace: Keyspace
    ) throws(Status) -> (start: [UInt8], end: [UInt8])? {
        let cursor = try transaction.scan(
            keyspace, hidden, reverse: false, values: true, dropping: hiddenPrefix.count)
        defer { cursor.close() }
        return try cursor.next() ? (cursor.key, cursor.value) : nil
    }

    private func moveRecords(
        _ keyspace: Keyspace, _ slice: inout Slice, _ transaction: any StoreTransaction
    ) throws(Status) -> Bool {
        var moved: [StoreRecord] = []
        var isWhole = true
        do {
            let cursor = try transaction.scan(
                keyspace, records, reverse: false, values: true, dropping: prefix.count)
            defer { cursor.close() }
            while isWhole, try cursor.next() {
                moved.append(StoreRecord(key: cursor.key, value: cursor.value))
                slice.add(cursor.key.count + cursor.value.count)
                isWhole = !slice.isFull
            }
        }
        for record in moved { try transaction.put(keyspace, record.key, record.value) }
        if let last = moved.last {
            let range = KeyRange(lower: records.lower, upper: prefix + last.key + [0])
            try transaction.delete(keyspace, range, limit: .max)
        }
        return isWhole
    }
}
