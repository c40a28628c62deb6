import HearthModel
import HearthEngine

/// The shadow as a transaction: puts and deletes change it, and not the tree.
final class ShadowTransaction: StoreTransaction {
    private let inner: any StoreTransaction
    private let shadow: TreeShadow

    init(_ inner: any StoreTransaction, _ shadow: TreeShadow) {
        self.inner = inner
        self.shadow = shadow
    }

    func get(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? {
        try shadow.map.get(inner, keyspace, key)
    }

    func scan(
        _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) throws(Status) -> any KeyCursor {
        try shadow.map.scan(inner, keyspace, range, reverse: reverse, values: values, dropping: dropping)
    }

    func count(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        try shadow.map.count(inner, keyspace, range, limit: limit)
    }

    func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) throws(Status) {
        try shadow.put(keyspace, key, value, inner)
    }

    func delete(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) { try shadow.delete(keyspace, key, inner) }

    /// A range is hidden as one, so that only the deleted records of the shadow itself count.
    func delete(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        let count = try count(keyspace, range, limit: 1)
        if count > 0 { try shadow.delete(keyspace, range, inner) }
        return count
    }

    func close() {}
}
