import HearthModel

/// How a transaction was begun. Source: google.firestore.v1.TransactionOptions.
package enum TransactionMode: Sendable {
    /// - Parameter retry: the id of an earlier attempt, whose age the new one inherits.
    case readWrite(retry: [UInt8]?, concurrency: TransactionConcurrency = .pessimistic)
    /// - Parameter readTime: nil for the time of the beginning.
    case readOnly(readTime: Timestamp?)
}

/// How a read-write transaction treats others that change the data that it has read. Its commit fails with ABORTED when
/// that was changed, in both modes. Source: google.firestore.v1.TransactionOptions.ConcurrencyMode.
package enum TransactionConcurrency: Sendable {
    /// Makes no client wait.
    case optimistic
    /// Locks what it reads: others wait to write it, for a bounded time.
    case pessimistic
}

/// An open transaction.
struct Transaction: Sendable {
    var owner: LockTable.Owner
    var age: UInt64
    var isReadOnly: Bool
    /// Whether it takes locks on what it reads.
    var isLocking: Bool
    /// All reads show the state at this version; nil before the first read of a read-write transaction.
    var version: Int64?
    /// For a read-only transaction from the beginning, for a read-write one the time of its last read.
    var readTime: Timestamp?
    var readSet = ReadSet()
    /// Counts the reads.
    var revision = 0
    /// Whether it was used for anything since its beginning.
    var isUsed = false
    var requester: Requester
    var startedNanoseconds: UInt64
    var usedNanoseconds: UInt64
}
