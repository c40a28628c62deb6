import HearthModel

/// The bounds of this module, and of those that build upon it. One marked "ours" guards memory or time and is not part
/// of the service's contract.
extension Limits {
    // MARK: Indexes

    /// Index entries of one document.
    static let indexEntriesPerDocumentMax = 40_000
    /// Bytes of an encoded value in an index. Longer values are truncated.
    package static let indexedValueSizeBytesMax = 1500
    /// Bytes of one index entry.
    static let indexEntrySizeBytesMax = 7680
    /// Bytes of all index entries of a document.
    static let indexEntriesSizeBytesMax = 8 << 20
    /// Composite indexes of a database.
    package static let compositeIndexesMax = 1000
    /// Bytes of the stored form of all definitions of indexes and fields of a database (ours): each change writes them as a
    /// whole.
    package static let indexCatalogSizeBytesMax = 4 << 20

    // MARK: Requests

    /// A request's size in bytes, as measured of the service (documented as 10 MiB).
    package static let requestSizeBytesMax = 11_534_336

    // MARK: Queries

    /// Disjunctions of a query in disjunctive normal form.
    static let disjunctionsMax = 30
    /// Fields with inequality filters.
    static let inequalityFieldsMax = 10
    /// Filters, sort orders and the ancestor, together, counted on the normal form.
    static let queryComponentsMax = 100
    /// Bytes that one query may hold while it sorts.
    static let queryMemoryBytesMax = 128 << 20
    /// Bytes of keys of documents that have changed since the version that a read asks for.
    static let historyKeysBytesMax = 32 << 20

    // MARK: Transactions

    /// Seconds until an unused transaction expires.
    static let transactionIdleSecondsMax = 60
    /// Seconds until any transaction expires.
    static let transactionTotalSecondsMax = 270
    /// Transactions open at a time in one database (ours).
    package static let transactionsOpenMax = 20_000
    /// Ended transactions of one database whose age a retry can take over (ours).
    static let transactionsRememberedMax = 100_000
    /// Documents in the read set of one transaction (ours).
    package static let transactionReadSetMax = 100_000
    /// Queries in the read set of one transaction (ours): each is matched against every change until the commit.
    package static let transactionQueriesMax = 1000
    /// Bytes of the read sets of open transactions, that is, documents' names and queries, of all databases together
    /// (ours); one connection gets at most about 0.38 of them. Beyond it reads in transactions fail with
    /// RESOURCE_EXHAUSTED.
    package static let readSetBytesMax = 128 << 20
    /// The same of one account (ours).
    package static let readSetShareBytesMax = 96 << 20
    /// Bytes that a connection may hold although its account has its share (ours).
    static let readSetSmallBytesMax = 64 << 10
    /// Bytes of the read set of one transaction that aren't counted (ours): those of some documents.
    static let readSetUncountedBytes = 2 << 10
    /// Seconds that a read-write transaction holds its locks on what it read before others may overtake it (ours).
    /// Counted from when the lock was granted, however often the transaction reads the same again.
    static let leaseSeconds = 5.0
    /// Seconds that a commit waits for the locks of others (as in Google's emulator).
    static let lockWaitSeconds = 2.0
    /// Reads that wait for the lock of one document or collection (ours).
    package static let lockQueueLengthMax = 10_000

    // MARK: Storage

    /// Seconds for which old versions are readable.
    package static let retentionSeconds = 3600
    /// The same at whole minutes with point-in-time recovery.
    package static let recoverySeconds = 7 * 86_400
    /// Answers to the latest commits of a resumable Write stream that are stored (ours). One byte of a key encodes the
    /// slot.
    package static let streamAnswersMax = 16
    /// Seconds after the last commit of such a stream in which it can be resumed (ours).
    package static let streamAnswersSeconds = 30 * 86_400
    /// Bytes of the answers of all streams of a database, besides those of the last hour (ours).
    static let streamAnswersBytesMax = 64 << 20
    /// Nanoseconds for which a step of the deletion of old states looks for them (ours).
    static let garbageStepNanosecondsMax: UInt64 = 20_000_000
    /// Seconds for which the answer to a commit with an id, and a document of the ledger, is kept (ours).
    package static let onceSeconds = 8 * 86_400
    /// Answers or documents that one step of their deletion deletes (ours).
    static let onceDeletedMax = 500
    /// Documents that one step of the deletion of expired ones deletes, and bytes of documents that it reads (ours).
    package static let expiryStepDocumentsMax = 500
    static let expiryStepBytesMax = 8 << 20
    /// Bytes of staged changes after which a group is closed (ours).
    static let groupCommitBytesMax = 2 << 20
    /// Milliseconds of the writer's work after which a group is closed (ours).
    static let groupCommitMillisecondsMax = 50
    /// The same for large commits, for which quick ones wait (ours).
    static let groupLargeCommitMillisecondsMax = 10
    /// Bytes of staged changes that one commit may make (ours).
    static let commitBytesMax = 64 << 20
    /// Records of the store that one commit may change when it changes several documents: documents, their index
    /// entries, the history. About a quarter of a second of the writer's work (ours; the service bounds the same,
    /// without a published number).
    package static let commitRecordsMax = 80_000
    /// Bytes of documents that the writes of one commit may make the server decode, compare and search (ours).
    static let commitWorkBytesMax = 256 << 20
    /// Commits that wait for the writer (ours). Clients that are not administrators may use three quarters of it
    /// together, one account half.
    package static let commitQueueMax = 20_000
    /// Bytes of queued commits of one database (ours), shared like `commitQueueMax`.
    package static let commitQueueBytesMax = 256 << 20
    /// The same for all databases of a process together (ours), for all clients that are not administrators, and for
    /// one account.
    static let commitsWaitingBytesMax = 128 << 20
    static let commitsWaitingClientsBytesMax = 96 << 20
    static let commitsWaitingShareBytesMax = 64 << 20
    /// What a connection may have although its account has its share (ours).
    static let commitsWaitingSmallBytesMax = 64 << 10
    /// Cost of a commit besides its writes: the call that waits for it (ours).
    package static let commitWaitingBytes = 4 << 10
    /// Maximum cost of one commit there. A larger commit is counted where it was decoded, until it is answered (ours).
    package static let commitWaitingBytesMax = 2 << 20
    /// Milliseconds of the writer's work that one client may have queued while others wait (ours).
    static let commitQueuedMillisecondsMax = 1000
    /// Commits that are prepared and wait for the writer at a time (ours).
    package static let commitsPreparedMax = 2
    /// How often a large commit is prepared again because the state that it read has changed in the meantime (ours).
    package static let commitPreparationsMax = 8
    /// After that many attempts it takes the locks of its documents, so that it succeeds (ours).
    static let commitPreparationsFreeMax = 2
    /// Bytes of documents of the latest commits that all databases of a process hold; beyond them each keeps little
    /// (ours).
    static let recentChangesBytesMax = 64 << 20
    /// Bytes of the feed indexes, which record the collections that the latest commits changed, in the same way (ours).
    static let feedIndexBytesMax = 64 << 20

    // MARK: Workers and memory; bounds of ours

    /// Entries of indexes, and bytes of documents, that a read may examine before it is moved to the threads for long
    /// reads.
    package static let briefEntriesMax = 1024
    package static let briefBytesMax = 2 << 20
    package static let readSetOwnBytes = 8 << 20
    package static let commitsWaitingOwnBytes = 8 << 20
}
