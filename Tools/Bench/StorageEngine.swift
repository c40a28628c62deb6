import HearthModel
import HearthEngine

/// An engine that stores rows in durable transactions.
protocol StorageEngine {
    /// - Parameter folder: an empty one.
    init(folder: String) throws(Status)
    func transaction(_ body: (any RowWriter) throws(Status) -> Void) throws(Status)
    func close()
}

/// A transaction.
protocol RowWriter {
    func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) throws(Status)
    func delete(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status)
}
