import HearthModel
import Synchronization

/// The stores of `--memory`: like those of a folder, a database keeps its contents while its store is closed.
package final class MemoryStoreProvider: StoreProvider {
    // By the bytes of the name: to Swift, two spellings of "é" are one string.
    private let entries = Mutex<[[UInt8]: (name: DatabaseName, store: MemoryStore)]>([:])

    package init() {}

    package func open(_ database: DatabaseName) throws(Status) -> any Store {
        entries.withLock { entries in
            let key = Array(database.string.utf8)
            if let store = entries[key]?.store, store.isOpen { return store }
            let store = entries[key]?.store.reopened() ?? MemoryStore()
            entries[key] = (database, store)
            return store
        }
    }

    package func contains(_ database: DatabaseName) throws(Status) -> Bool {
        entries.withLock { $0[Array(database.string.utf8)] != nil }
    }

    package func databases() throws(Status) -> [DatabaseName] {
        entries.withLock { $0.values.map(\.name) }
    }

    package func delete(_ database: DatabaseName) throws(Status) {
        try entries.withLock { entries throws(Status) in
            let key = Array(database.string.utf8)
            guard let store = entries[key]?.store else {
                throw .notFound("The database \(database) does not exist.")
            }
            if store.isOpen {
                throw .failedPrecondition("The database \(database) is open; close it before it is deleted.")
            }
            entries[key] = nil
        }
    }
}
