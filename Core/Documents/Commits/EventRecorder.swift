import HearthEngine
import HearthModel

/// Records, in the transaction of a commit, what others must know of it. Called on the writer's thread.
package protocol EventRecorder: Sendable {
    /// Adds to the transaction that makes a commit.
    /// - Parameter author: who makes it, in a form that only the recorder reads; empty for the server itself.
    /// - Throws: what the store throws; the group fails then.
    func record(_ set: ChangeSet, by author: [UInt8], in transaction: any StoreTransaction) throws(Status)

    /// The transaction of the last calls is durable, or undone.
    func ended(isDurable: Bool)

    /// Adds to the transaction that deletes everything.
    func clear(in transaction: any StoreTransaction) throws(Status)

    /// The commit from which on the history is still needed; nil when none is.
    func neededVersion(in snapshot: any Snapshot) throws(Status) -> Int64?
}
