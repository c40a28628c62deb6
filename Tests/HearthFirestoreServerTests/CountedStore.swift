import HearthModel
import HearthEngine
import Synchronization

/// A store in memory that counts the records that its readers read.
final class CountedStore: Store {
    private let inner = MemoryStore()
    /// Records that were looked up or walked over in snapshots.
    let reads = Atomic(0)

    func snapshot() throws(Status) -> any Snapshot { CountedSnapshot(try inner.snapshot(), self) }

    func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        try inner.write(body)
    }

    func maintain() { inner.maintain() }
    func close() { inner.close() }

    fileprivate func count() { reads.add(1, ordering: .relaxed) }
}

private final class CountedSnapshot: Snapshot {
    private let inner: any Snapshot
    private let store: CountedStore

    init(_ inner: any Snapshot, _ store: CountedStore) {
        self.inner = inner
        self.store = store
    }

    func get(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? {
        store.count()
        return try inner.get(keyspace, key)
    }

    func read(
        _ keyspace: Keyspace, _ key: [UInt8], _ body: (UnsafeRawBufferPointer) throws(Status) -> Void
    ) throws(Status) -> Bool {
        store.count()
        return try inner.read(keyspace, key, body)
    }

    func scan(
        _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) throws(Status) -> any KeyCursor {
        CountedCursor(
            try inner.scan(keyspace, range, reverse: reverse, values: values, dropping: dropping), store)
    }

    func count(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        let count = try inner.count(keyspace, range, limit: limit)
        store.reads.add(count, ordering: .relaxed)
        return count
    }

    func becomeLong() { inner.becomeLong() }
    func close() { inner.close() }
}

private final class CountedCursor: KeyCursor {
    private let inner: any KeyCursor
    private let store: CountedStore

    init(_ inner: any KeyCursor, _ store: CountedStore) {
        self.inner = inner
        self.store = store
    }

    var key: [UInt8] { inner.key }
    var value: [UInt8] { inner.value }

    func next() throws(Status) -> Bool {
        store.count()
        return try inner.next()
    }

    func seek(_ key: [UInt8]) throws(Status) {
        store.count()
        try inner.seek(key)
    }

    func close() { inner.close() }
}
