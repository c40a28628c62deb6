import HearthEngine
import HearthModel
import HearthTree

/// Records, in the transaction of a commit, what others must know of it. Called on the writer's thread, which it blocks.
package protocol TreeRecorder: Sendable {
    /// Adds to the transaction that makes a commit. It may only use names in keyspace `meta` that `TreeMeta` leaves free.
    /// - Parameters:
    ///   - changes: which are made at once, as `ChangeTree` describes; with all deferred values computed.
    ///   - version: greater than those of all commits before.
    ///   - author: returns what `TreeWrite.author` returns, or nothing for the server itself.
    ///   - view: the tree without the changes. Only valid during the call.
    /// - Throws: what the store throws; the group fails then.
    func record(
        _ changes: [TreeChange], version: Int64, by author: () -> [UInt8], before view: TreeView,
        in transaction: any StoreTransaction
    ) throws(Status)

    /// Ends the transaction of the last calls, and of changes of the recorder's own records.
    /// - Throws: what the store throws; the group fails then.
    func finish(in transaction: any StoreTransaction) throws(Status)

    /// The transaction of the last calls is durable, or undone. Called before observers and clients know of it.
    func ended(isDurable: Bool)
}

extension TreeRecorder {
    package func finish(in transaction: any StoreTransaction) throws(Status) {}
}
