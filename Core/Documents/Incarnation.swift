import HearthEngine
import HearthModel
import Synchronization

/// Distinguishes a database's history from every other, also from that of an earlier database of the same name.
/// Versions are times, so a version alone does not identify its history.
///
/// A random number that the first commit stores with it; 0 until then, when there is no history.
final class Incarnation: Sendable {
    static let key = Array("incarnation".utf8)

    private let stored: Atomic<Int64>

    init(from snapshot: any Snapshot) throws(Status) {
        stored = Atomic(try snapshot.get(.meta, Self.key).map(Database.decode) ?? 0)
    }

    var value: Int64 { stored.load(ordering: .acquiring) }

    /// Stores a number with the first commit. Must be called on the writer's thread.
    /// - Returns: the number to `set` when the commit is durable; nil when there is one already.
    func begin(in transaction: any StoreTransaction) throws(Status) -> Int64? {
        if value != 0 { return nil }
        let new = Int64.random(in: 1 ... .max)
        try transaction.put(.meta, Self.key, Database.encode(new))
        return new
    }

    func set(_ value: Int64) { stored.store(value, ordering: .releasing) }
}
