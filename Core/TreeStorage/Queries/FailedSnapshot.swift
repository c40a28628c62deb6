import HearthModel
import HearthEngine

/// A snapshot of a store that cannot be read: every read throws the error.
final class FailedSnapshot: Snapshot {
    private let error: Status

    init(_ error: Status) { self.error = error }

    func get(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? { throw error }

    func scan(
        _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) throws(Status) -> any KeyCursor { throw error }

    func count(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int { throw error }

    func close() {}
}
