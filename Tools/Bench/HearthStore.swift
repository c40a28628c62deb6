import HearthModel
import HearthSQLite
import HearthEngine

/// Hearth's own store, as the server uses it.
struct HearthStore: StorageEngine {
    private let store: SQLiteStore

    init(folder: String) throws(Status) { store = try SQLiteStore(path: folder + "/data.sqlite") }

    func transaction(_ body: (any RowWriter) throws(Status) -> Void) throws(Status) {
        try store.write { transaction throws(Status) in try body(Writer(transaction: transaction)) }
    }

    func close() { store.close() }

    private struct Writer: RowWriter {
        let transaction: any StoreTransaction

        func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) throws(Status) {
            try transaction.put(keyspace, key, value)
        }

        func delete(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) { try transaction.delete(keyspace, key) }
    }
}
