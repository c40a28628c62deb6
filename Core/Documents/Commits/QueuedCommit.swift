import HearthConcurrency
import HearthModel

/// A commit on its way through the pipeline. It is passed from queue to queue, so it is an object: to copy all that it has
/// costs more than to queue it.
///
/// `@unchecked Sendable`: it belongs to whoever took it from a queue, until that one queues it again or answers it. The
/// locks of the queues make what one thread has set visible to the next.
final class QueuedCommit: @unchecked Sendable {
    let writes: [Write]
    /// The transaction's id and the state that it read.
    var transaction: (id: [UInt8], version: Int64?, readSet: ReadSet)?
    /// Why it may not be made; it is only answered when it was made before.
    var refusal: Status?
    /// The owner of the locks that the commit must wait for.
    var owner: LockTable.Owner
    let requestTime: Timestamp
    /// Called before the commit is made; nil for administrators.
    let `guard`: (any CommitGuard)?
    let sizeBytes: Int
    /// The requester to whom the writer's time is charged.
    let requester: Requester
    /// Who makes it, for an `EventRecorder`.
    let author: [UInt8]
    /// Returns false when no caller waits for the answer any more; nil when one always does.
    let isWanted: (@Sendable () -> Bool)?
    /// The write whose outcome includes the document.
    let returning: Int?
    /// What it is known by when it is repeated; nil for a commit that is made whenever it is sent.
    let mark: CommitMark?
    /// Whether an `EventRecorder` gets it.
    let makesEvents: Bool
    /// When waiting for locks ends, in monotonic nanoseconds.
    let waitUntil: UInt64
    /// When it arrived.
    var submittedAt: UInt64 { waitUntil - min(waitUntil, UInt64(Limits.lockWaitSeconds * 1e9)) }
    let completion: @Sendable (Result<CommitOutcome, Status>) -> Void

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

    init(
        writes: [Write], owner: LockTable.Owner, requestTime: Timestamp, guard commitGuard: (any CommitGuard)?,
        sizeBytes: Int, requester: Requester = .server, author: [UInt8] = [],
        isWanted: (@Sendable () -> Bool)? = nil, returning: Int? = nil,
        mark: CommitMark? = nil, makesEvents: Bool = true, waitUntil: UInt64,
        completion: @escaping @Sendable (Result<CommitOutcome, Status>) -> Void
    ) {
        self.writes = writes
        self.owner = owner
        self.requestTime = requestTime
        self.guard = commitGuard
        self.sizeBytes = sizeBytes
        self.requester = requester
        self.author = author
        self.isWanted = isWanted
        self.returning = returning
        self.mark = mark
        self.makesEvents = makesEvents
        self.waitUntil = waitUntil
        self.completion = completion
    }

    var isAbandoned: Bool { isWanted.map { !$0() } ?? false }

    /// Whether it is prepared on a snapshot; the writer then only checks that the state that it read is unchanged.
    var isLarge: Bool {
        restsOnOldReads || restsOnLargeDocuments || cost >= CommitCost.largeUnitsMin
            || arrayOperations >= CommitCost.largeArrayOperationsMin
            || writes.count >= (`guard` == nil ? CommitCost.largeWritesMin : CommitCost.largeJudgedWritesMin)
    }
}
