import HearthModel
import Synchronization

/// A store without a disk: for `--memory` and for tests. Its contents live as long as its provider.
///
/// A `Table` with a tree for each keyspace. A snapshot holds a version of it; a transaction makes the next one.
package final class MemoryStore: Store {
    private let contents: MemoryStoreContents
    private let life = StoreLife()

    /// Each takes about a millisecond of the writer's thread.
    private static let partsFreedMax = 20

    package convenience init() {
        self.init(MemoryStoreContents())
    }

    fileprivate init(_ contents: MemoryStoreContents) {
        self.contents = contents
    }

    package func snapshot() throws(Status) -> any Snapshot {
        try life.check()
        return MemoryStoreSnapshot(contents.table.present, life)
    }

    package func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        // Mutex can't return a value that isn't Sendable.
        var result: Result?
        try contents.table.writer.withLock { _ throws(Status) in
            try life.check()
            let transaction = MemoryStoreTransaction(contents.table, life)
            defer { transaction.close() }
            do throws(Status) {
                result = try body(transaction)
            } catch {
                contents.table.rollBack()
                throw error
            }
            guard transaction.isChanged else { return contents.table.rollBack() }
            contents.table.commit(transaction.roots)
            contents.changes.add(1, ordering: .relaxed)
        }
        guard let result else { preconditionFailure("a body that didn't throw has a result") }
        return result
    }

    package func maintain() {
        // What is left is freed by the next commits.
        for _ in 0..<Self.partsFreedMax {
            guard contents.table.writer.withLock({ _ in contents.table.freePart() }) else { return }
        }
    }

    package func close() { life.end() }
    package func close(because reason: Status) { life.end(reason) }

    /// A store of its own with the same contents; costs as much as these are.
    func copied() throws(Status) -> MemoryStore {
        let copy = MemoryStore()
        let snapshot = try snapshot()
        defer { snapshot.close() }
        try copy.write { transaction throws(Status) in
            for keyspace in Keyspace.allCases {
                let cursor = try snapshot.scan(keyspace, KeyRange(lower: [], upper: nil), reverse: false, values: true)
                while try cursor.next() { try transaction.put(keyspace, cursor.key, cursor.value) }
            }
        }
        copy.contents.changes.store(0, ordering: .relaxed)
        return copy
    }

    /// How many transactions put or deleted something.
    var changeCount: Int { contents.changes.load(ordering: .relaxed) }

    var isOpen: Bool { life.isOpen }
    /// Another handle for the same contents.
    func reopened() -> MemoryStore { MemoryStore(contents) }
}

/// What all handles of a database share.
private final class MemoryStoreContents: Sendable {
    let table = Table(trees: Keyspace.allCases.count)
    let changes = Atomic(0)
}
