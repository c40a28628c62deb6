import HearthConcurrency
import HearthModel

/// A commit on its way through the pipeline.
struct QueuedCommit: Sendable {
    var writes: [Write]
    /// The transaction's id and the state that it read.
    var transaction: (id: [UInt8], version: Int64?, readSet: ReadSet)?
    /// The owner of the locks that the commit must wait for.
    var owner: LockTable.Owner
    var requestTime: Timestamp
    /// Called before the commit is made; nil for administrators.
    var `guard`: (any CommitGuard)?
    var sizeBytes: Int
    /// The requester to whom the writer's time is charged.
    var requester = Requester.server
    /// Who makes it, for an `EventRecorder`.
    var author: [UInt8] = []
    /// Returns false when no caller waits for the answer any more; nil when one always does.
    var isWanted: (@Sendable () -> Bool)?
    /// The write whose outcome includes the document.
    var returning: Int?
    /// Its position in a resumable Write stream; nil for any other commit.
    var streamPosition: StreamPosition?
    /// When waiting for locks ends, in monotonic nanoseconds.
    var waitUntil: UInt64
    /// When it arrived.
    var submittedAt: UInt64 { waitUntil - min(waitUntil, UInt64(Limits.lockWaitSeconds * 1e9)) }
    var completion: @Sendable (Result<CommitOutcome, Status>) -> Void

    /// The writer's work for it, in units of `CommitCost`.
    var cost = 1
    /// Transforms that read all elements of an array; the request does not show how many there are.
    var arrayOperations = 0
    /// The memory of the decoded writes.
    var decodedBytes = 0
    /// The order in which commits arrived.
    var sequence: UInt64 = 0
    /// Whether it has returned to be prepared again; later commits of its connection are held back in the meantime.
    var isReturning = false
    /// The error found in that preparation: the commit fails at the writer, in the order of its connection.
    var failure: Status?
    /// The memory that it takes while it waits.
    var heldBytes: Int { max(sizeBytes, decodedBytes) }
    /// That memory, counted among all databases of the process.
    var held: MemoryReservation?
    /// Whether it takes the preparer's path: because it is large, or because an earlier one of the same connection is.
    var isSlow = false
    /// Whether its transaction has read documents that must be looked up in the history.
    var restsOnOldReads = false
    /// Whether the writer has found that it rests on large documents, which take long to process.
    var restsOnLargeDocuments = false
    /// The result of preparing it on a snapshot.
    var prepared: PreparedCommit?
    /// How often it was prepared.
    var preparations = 0

    var isAbandoned: Bool { isWanted.map { !$0() } ?? false }

    /// Whether it is prepared on a snapshot; the writer then only checks that the state that it read is unchanged.
    var isLarge: Bool {
        restsOnOldReads || restsOnLargeDocuments || cost >= CommitCost.largeUnitsMin
            || arrayOperations >= CommitCost.largeArrayOperationsMin
            || writes.count >= (`guard` == nil ? CommitCost.largeWritesMin : CommitCost.largeJudgedWritesMin)
    }
}
