import HearthModel
import HearthEngine

/// Reads the tree's keys while not all records are at their final keys.
protocol StoredTreeMap {
    func get(_ snapshot: any Snapshot, _ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]?
    func scan(
        _ snapshot: any Snapshot, _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) throws(Status) -> any KeyCursor
    func count(_ snapshot: any Snapshot, _ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int
}
