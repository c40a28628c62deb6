import HearthModel
import HearthEngine

/// A tree that is made beside the tree, as a delta to it, and replaces it when it is complete.
///
/// A write to the tree meanwhile must not become visible in the shadow where the shadow has other data (`keep…`).
/// Belongs to the writer's thread.
final class TreeShadow: @unchecked Sendable {
    let delta: TreeDelta
    private(set) var map: TreeDeltaMap

    init(id: UInt32) {
        delta = TreeDelta(id: id)
        map = TreeDeltaMap(delta)
    }

    // MARK: Its own changes

    func put(
        _ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8], _ transaction: any StoreTransaction
    ) throws(Status) {
        try transaction.put(keyspace, delta.staged(key), value)
    }

    func delete(_ keyspace: Keyspace, _ key: [UInt8], _ transaction: any StoreTransaction) throws(Status) {
        try transaction.delete(keyspace, delta.staged(key))
        let range = KeyRange(lower: key, upper: key + [0])
        if try transaction.count(keyspace, range, limit: 1) > 0 { try hide(keyspace, range, transaction) }
    }

    func delete(_ keyspace: Keyspace, _ range: KeyRange, _ transaction: any StoreTransaction) throws(Status) {
        if range.isEmpty { return }
        try transaction.delete(keyspace, delta.staged(range), limit: .max)
        let (lower, upper) = TreeDelta.clipped(range)
        let clipped = KeyRange(lower: lower, upper: upper)
        if try transaction.count(keyspace, clipped, limit: 1) > 0 { try hide(keyspace, clipped, transaction) }
    }

    private func hide(
        _ keyspace: Keyspace, _ range: KeyRange, _ transaction: any StoreTransaction
    ) throws(Status) {
        map.hides[keyspace.rawValue] = true
        try delta.hide(range, transaction, keyspace)
    }

    // MARK: Changes of the tree below

    /// A key of the tree will be put or deleted.
    func keep(
        _ keyspace: Keyspace, _ key: [UInt8], before value: [UInt8]?, _ transaction: any StoreTransaction
    ) throws(Status) {
        if let own = try transaction.get(keyspace, delta.staged(key)) {
            // A record that both have need not be moved later.
            if own == value, try !map.isHidden(key, transaction, keyspace) {
                try transaction.delete(keyspace, delta.staged(key))
            }
            return
        }
        if try map.isHidden(key, transaction, keyspace) { return }
        if let old = try transaction.get(keyspace, key) {
            if old != value { try transaction.put(keyspace, delta.staged(key), old) }
        } else if value != nil {
            try hide(keyspace, KeyRange(lower: key, upper: key + [0]), transaction)
        }
    }

    /// A range of the tree will be deleted. The cost depends on the tree's records there, however many the shadow has.
    func keep(_ keyspace: Keyspace, _ range: KeyRange, _ transaction: any StoreTransaction) throws(Status) {
        let (lower, upper) = TreeDelta.clipped(range)
        var deleted: [StoreRecord] = []
        do {
            let cursor = try transaction.scan(
                keyspace, KeyRange(lower: lower, upper: upper), reverse: false, values: true)
            defer { cursor.close() }
            while try cursor.next() { deleted.append(StoreRecord(key: cursor.key, value: cursor.value)) }
        }
        for record in deleted {
            let staged = delta.staged(record.key)
            let own = KeyRange(lower: staged, upper: staged + [0])
            if try transaction.count(keyspace, own, limit: 1) > 0 { continue }
            if try map.isHidden(record.key, transaction, keyspace) { continue }
            try transaction.put(keyspace, staged, record.value)
        }
    }
}
