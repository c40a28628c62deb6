import HearthEngine
import HearthModel

/// Records, in the transaction of a commit, what others must know of it. Called on the writer's thread.
package protocol EventRecorder: Sendable {
    /// Adds to the transaction that makes a commit.
    /// - Parameter author: who makes it, in a form that only the recorder reads; empty for the server itself.
    /// - Throws: what the store throws; the group fails then.
    func record(_ set: ChangeSet, by author: [UInt8], in transaction: any StoreTransaction) throws(Status)

    /// Ends the transaction of the last calls.
    /// - Throws: what the store throws; the group fails then.
    func finish(in transaction: any StoreTransaction) throws(Status)

    /// The transaction of the last calls is durable, or undone.
    func ended(isDurable: Bool)

    /// Adds to the transaction that deletes everything.
    func clear(in transaction: any StoreTransaction) throws(Status)

    /// The commit from which on the history is still needed, as of the present transaction; nil when none is.
    var neededVersion: Int64? { get }
}

extension EventRecorder {
    package func finish(in transaction: any StoreTransaction) throws(Status) {}
}

/// The keys in the keyspace `meta` that belong to an `EventRecorder`, for the check of a database.
package enum EventKeys {
    /// The number of a trigger, and the next number.
    package static let number = UInt8(ascii: "Q")
    /// How many records a trigger has: nothing, or the trigger's number (4 bytes).
    package static let counts = UInt8(ascii: "p")
    /// An event that waits: the trigger's number (4 bytes), the version (8), the document's key.
    package static let event = UInt8(ascii: "q")
    /// A dead letter: the trigger's number (4 bytes), a time (8), the version (8), the document's key.
    package static let deadLetter = UInt8(ascii: "z")
    /// A piece of a large record: the trigger's number (4 bytes), the record's (8), the piece's (4).
    package static let body = UInt8(ascii: "y")
}
