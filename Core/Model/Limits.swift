/// Every documented limit of Cloud Firestore and every bound of our own, by name; those of the Realtime Database are beside.
///
/// Source: "Usage and limits" of the Firestore documentation, where no other source is given. A bound marked "ours"
/// guards memory or time and isn't part of the service's contract.
package enum Limits {
    // MARK: Documents and values

    /// A document's size in bytes, computed as documented under "Storage size calculations".
    package static let documentSizeBytesMax = 1_048_576
    /// The size in bytes of one field's value: 1 MiB less 89 bytes.
    package static let fieldValueSizeBytesMax = 1_048_487
    /// The UTF-8 length of a collection or document id.
    package static let idSizeBytesMax = 1500
    /// The UTF-8 length of a document's name below the database.
    package static let documentNameSizeBytesMax = 6144
    /// Pairs of collection id and document id in a name.
    package static let pathDepthMax = 100
    /// The UTF-8 length of a field name, and of a field path as a whole.
    package static let fieldPathSizeBytesMax = 1500
    /// Segments of a field path.
    package static let fieldPathSegmentsMax = 20
    /// Levels of maps and arrays in a field's value; its own map or array is level 1.
    package static let valueDepthMax = 20
    /// Levels that a decoder follows before it refuses a message (ours; above `valueDepthMax`, so that validation can
    /// name the field).
    package static let messageDepthMax = 100
    /// Dimensions of a vector.
    package static let vectorDimensionMax = 2048

    // MARK: Indexes

    /// Index entries of one document.
    package static let indexEntriesPerDocumentMax = 40_000
    /// Bytes of an encoded value in an index; what is longer is truncated.
    package static let indexedValueSizeBytesMax = 1500
    /// Bytes of one index entry.
    package static let indexEntrySizeBytesMax = 7680
    /// Bytes of all index entries of a document.
    package static let indexEntriesSizeBytesMax = 8 << 20
    /// Fields of a composite index.
    package static let compositeIndexFieldsMax = 100

    /// Composite indexes of a database.
    package static let compositeIndexesMax = 1000
    /// Single-field configurations of a database.
    package static let fieldOverridesMax = 1000

    // MARK: Administration

    /// Entries of a list of the admin API when the request names no page size (ours).
    package static let adminPageSizeDefault = 100
    /// Entries of one page of a list of the admin API (ours).
    package static let adminPageSizeMax = 1000
    /// Operations that are remembered for a database (ours).
    package static let operationsPerDatabaseMax = 1000
    /// Databases of a project that the admin API makes.
    package static let databasesPerProjectMax = 100

    // MARK: Requests

    /// A request's size in bytes, as measured of the service (documented as 10 MiB).
    package static let requestSizeBytesMax = 11_534_336
    /// Labels of a stream (ours).
    package static let labelsMax = 1000
    /// Field transforms on one document in one commit.
    package static let transformsPerDocumentMax = 500
    /// Entries of `ListDocuments` when the request names no page size (ours).
    package static let listPageSizeDefault = 100
    /// Entries of one `ListDocuments` page; larger sizes are cut (ours).
    package static let listPageSizeMax = 300
    /// Bytes of documents after which a `ListDocuments` page ends, whatever its size in entries (ours).
    package static let listPageBytesMax = 1 << 20
    /// Entries of one `ListCollectionIds` page (ours).
    package static let collectionIdsPageSizeMax = 300

    // MARK: Queries

    /// Values of `IN` and `ARRAY_CONTAINS_ANY`.
    package static let inValuesMax = 30
    /// Values of `NOT_IN`.
    package static let notInValuesMax = 10
    /// Disjunctions of a query in disjunctive normal form.
    package static let disjunctionsMax = 30
    /// Fields with inequality filters.
    package static let inequalityFieldsMax = 10
    /// Filters, sort orders and the ancestor, together, counted on the normal form.
    package static let queryComponentsMax = 100
    /// Aggregations of one aggregation query.
    package static let aggregationsMax = 5
    /// The `limit` of a nearest-neighbour search.
    package static let findNearestLimitMax = 1000
    /// Nesting of a filter tree (ours).
    package static let filterDepthMax = 100
    /// Bytes that one query may hold while it sorts.
    package static let queryMemoryBytesMax = 128 << 20
    /// Bytes of keys of documents that have changed since the version that a read asks for.
    package static let historyKeysBytesMax = 32 << 20
    /// Seconds that a query may run.
    package static let queryTimeSecondsMax = 60

    // MARK: Transactions

    /// Seconds until an unused transaction expires.
    package static let transactionIdleSecondsMax = 60
    /// Seconds until any transaction expires.
    package static let transactionTotalSecondsMax = 270
    /// Transactions open at a time in one database (ours).
    package static let transactionsOpenMax = 20_000
    /// Ended transactions of one database whose age a retry can take over (ours).
    package static let transactionsRememberedMax = 100_000
    /// Documents in the read set of one transaction (ours).
    package static let transactionReadSetMax = 100_000
    /// Queries in the read set of one transaction (ours): each is matched against every change until the commit.
    package static let transactionQueriesMax = 1000
    /// Bytes of what open transactions have read, documents' names and queries, of all databases together (ours); one
    /// connection gets at most about 0.38 of them. Beyond it reads in transactions fail with RESOURCE_EXHAUSTED.
    package static let readSetBytesMax = 128 << 20
    /// The same of one account (ours).
    package static let readSetShareBytesMax = 96 << 20
    /// Bytes that a connection may hold although its account has its share (ours).
    package static let readSetSmallBytesMax = 64 << 10
    /// Bytes of what one transaction has read that aren't counted (ours): those of some documents.
    package static let readSetUncountedBytes = 2 << 10
    /// Seconds that a read-write transaction holds its turn on what it read before others may overtake it (ours), from when it got
    /// the turn, however often it reads the same again.
    package static let leaseSeconds = 5.0
    /// Seconds that a commit waits for the turns of others (as in Google's emulator).
    package static let lockWaitSeconds = 2.0
    /// Reads that wait for one document's or collection's turn (ours).
    package static let lockQueueLengthMax = 10_000

    // MARK: Storage

    /// Long reads (kept across turns of a loop, or on a worker) that are open at a time in the whole process (ours).
    package static let longReadsMax = 64
    /// Long reads that wait for their turn, and those of one account (ours).
    package static let longReadsWaitingMax = 20_000
    package static let longReadsWaitingShareMax = 5_000
    /// Bytes of the log that wait for whoever reads it (ours).
    package static let logQueueBytesMax = 1 << 20
    /// Databases and namespaces that are open at a time, unless more are in use (ours).
    package static let databasesOpenMax = 128
    /// Seconds after which an unused database or namespace is closed (ours).
    package static let databaseIdleSeconds = 300
    /// Databases and namespaces that are in use at a time (ours).
    package static let databasesUsedMax = 4096
    /// File descriptors that an open database may have while it is used: the writer's, the checkpointer's and readers',
    /// each with the log's (ours).
    package static let databaseDescriptorsMax = 16
    /// Databases without a store after which those that nobody uses are forgotten (ours).
    package static let databasesDeferredMax = 256

    /// Seconds for which old versions are readable.
    package static let retentionSeconds = 3600
    /// Answers to the latest commits that are kept of a Write stream that can be resumed (ours). A byte of a key holds them.
    package static let streamAnswersMax = 16
    /// Seconds after the last commit of such a stream in which it can be resumed (ours).
    package static let streamAnswersSeconds = 30 * 86_400
    /// Bytes of the answers of all streams of a database, besides those of the last hour (ours).
    package static let streamAnswersBytesMax = 64 << 20
    /// Commits that share one durable transaction at most (ours).
    package static let groupCommitRequestsMax = 1000
    /// Bytes of staged changes after which a group is closed (ours).
    package static let groupCommitBytesMax = 8 << 20
    /// Milliseconds of the writer's work after which a group is closed (ours).
    package static let groupCommitMillisecondsMax = 50
    /// Bytes of staged changes that one commit may make (ours).
    package static let commitBytesMax = 64 << 20
    /// Records of the store that one commit may change, when it changes several documents: documents, their index entries,
    /// the history. A quarter of a second of the writer's work (ours; the service bounds the same, without a number).
    package static let commitRecordsMax = 80_000
    /// Bytes of documents that the writes of one commit may make the server decode, compare and search (ours).
    package static let commitWorkBytesMax = 256 << 20
    /// Commits that wait for the writer (ours). Clients that aren't administrators may have three quarters of it together,
    /// one account half.
    package static let commitQueueMax = 20_000
    /// Bytes of queued commits of one database (ours), given out as `commitQueueMax` is.
    package static let commitQueueBytesMax = 256 << 20
    /// The same of all databases of a process together (ours), of those who aren't administrators, and of one account.
    package static let commitsWaitingBytesMax = 128 << 20
    package static let commitsWaitingClientsBytesMax = 96 << 20
    package static let commitsWaitingShareBytesMax = 64 << 20
    /// What a connection may have although its account has its share (ours).
    package static let commitsWaitingSmallBytesMax = 64 << 10
    /// What a commit counts for beside its writes: the call that waits for it (ours).
    package static let commitWaitingBytes = 4 << 10
    /// What a commit counts for at most there: what is larger is counted where it was decoded, until it is answered (ours).
    package static let commitWaitingBytesMax = 2 << 20
    /// Milliseconds of the writer's work that one client may have queued while others wait (ours).
    package static let commitQueuedMillisecondsMax = 1000
    /// Commits that are prepared and wait for the writer at a time (ours).
    package static let commitsPreparedMax = 2
    /// Times that a large commit is prepared again because what it rests on has changed meanwhile (ours).
    package static let commitPreparationsMax = 8
    /// After so many of them it takes the locks of its documents, so that it comes through (ours).
    package static let commitPreparationsFreeMax = 2

    /// Bytes of documents of the latest commits that all databases of a process hold; beyond them each keeps little (ours).
    package static let recentChangesBytesMax = 64 << 20
    /// Bytes that tell which collections the latest commits changed, in the same way (ours).
    package static let feedIndexBytesMax = 64 << 20

    // MARK: Listeners; bounds of ours

    /// Targets of one Listen stream.
    package static let listenTargetsMax = 10_000
    /// Documents of one documents target.
    package static let listenDocumentsMax = 1000
    /// Requests of a Listen or Write stream that wait for an earlier one; then no more are read.
    package static let streamRequestsWaitingMax = 100
    /// Their bytes; then no more are read.
    package static let streamRequestsWaitingBytesMax = 1 << 20
    /// Bytes of changes that wait for a slow client; beyond them its targets are sent anew.
    package static let listenPendingBytesMax = 4 << 20
    /// Targets of a stream that wait to be told of documents, summed over these; then everything is sent anew.
    package static let listenPendingTargetsMax = 1_000_000
    /// Changes that are looked at for a client which comes back; beyond them it gets everything anew.
    package static let listenResumeChangesMax = 100_000
    /// Bytes that the targets of all listeners take together: what is watched, and for whom.
    package static let listeningBytesMax = 256 << 20
    /// The same of one account; beyond it targets are refused.
    package static let listeningShareBytesMax = 128 << 20
    /// What a connection's targets may take although its account has its share.
    package static let listeningSmallBytesMax = 64 << 10
    /// Bytes of changes that wait for slow clients, of all together; beyond them targets are sent anew.
    package static let listenWaitingBytesMax = 128 << 20
    /// The same of one account.
    package static let listenWaitingShareBytesMax = 96 << 20
    /// What may wait for the clients of one connection although its account has its share.
    package static let listenWaitingSmallBytesMax = 64 << 10
    /// Bytes of the names that the process holds of what clients have of targets with a limit or an offset (ours).
    package static let listenWindowsBytesMax = 128 << 20
    /// The same of one account (ours).
    package static let listenWindowsShareBytesMax = 96 << 20
    /// What a connection may hold although its account has its share (ours).
    package static let listenWindowsSmallBytesMax = 256 << 10
    /// Bytes of the windows that the process keeps so that changes in them need no look into an index (ours).
    package static let listenKeptWindowsBytesMax = 32 << 20
    /// The same of one account (ours).
    package static let listenKeptWindowsShareBytesMax = 24 << 20
    /// The same of one query (ours).
    package static let listenKeptWindowBytesMax = 4 << 20
    /// Names of a filter that lets a client find out what it lacks.
    package static let listenFilterNamesMax = 400_000
    /// How often a quiet stream tells the time.
    package static let listenHeartbeatSeconds = 30

    // MARK: Workers and memory; bounds of ours

    /// Entries of indexes, and bytes of documents, that a read may take before it is left to threads for long reads.
    package static let briefEntriesMax = 1024
    package static let briefBytesMax = 2 << 20
    /// Of stored documents that rules may make an event loop decode for one read.
    package static let judgedOnLoopBytesMax = 256 << 10
    /// Jobs that wait for a group of workers.
    package static let workerJobsWaitingMax = 10_000
    /// Jobs of a group of workers that have begun and let others go on.
    package static let workerJobsParkedMax = 16
    /// For which a worker's job runs before it lets others go on, when any wait.
    package static let workerSliceNanoseconds: Int64 = 10_000_000
    /// Bytes that whatever is held for peers may have together, beyond what each kind has of its own: all kinds at once
    /// keep the process below 400 MB.
    package static let pooledBytesMax = 96 << 20
    /// What the kinds have in any case: what was received, what waits to be sent, heads of requests and open streams,
    /// targets of listeners, keys that queries sort, reads of transactions, commits that wait, and each other kind.
    package static let receivedOwnBytes = 32 << 20
    package static let answersOwnBytes = 16 << 20
    package static let openRequestsOwnBytes = 8 << 20
    package static let listeningOwnBytes = 8 << 20
    package static let sortingOwnBytes = 8 << 20
    package static let readSetOwnBytes = 8 << 20
    package static let commitsWaitingOwnBytes = 8 << 20
    package static let otherOwnBytes = 4 << 20
    /// Bytes that were received and can't be worked on yet, of all connections of all protocols together.
    package static let receivedBytesMax = 128 << 20
    /// The same of one account: an identity, or the address of whoever shows none.
    package static let receivedShareBytesMax = 96 << 20
    /// What a connection may hold although its account has its share.
    package static let receivedSmallBytesMax = 64 << 10
    /// Bytes that large requests in work become when they are decoded, together; more wait for their turn.
    package static let workingBytesMax = 64 << 20
    /// The same of requests that are small enough for a loop to decode.
    package static let workingOnLoopsBytesMax = 16 << 20
    /// Bytes that queries hold while they sort, together; one connection gets at most about 0.38 of them.
    package static let sortingBytesMax = 128 << 20

    // MARK: WebChannel; bounds of ours

    /// Sessions open at a time.
    package static let webChannelSessionsMax = 20_000
    /// How often a quiet back channel is written to, so that its client knows that it lives.
    package static let webChannelKeepAliveSeconds = 30
    /// Seconds without a request after which a session is given up; a client's own delays come to 45.
    package static let webChannelIdleSeconds = 120
    /// Seconds for which a client may fetch the last messages of a session that has ended.
    package static let webChannelFarewellSeconds = 30
    /// Seconds after which a back channel is ended so that its client acknowledges what it got.
    package static let webChannelLifetimeSeconds = 300
    /// Bytes that wait to be acknowledged by a client which reads; then its stream is held up.
    package static let webChannelQueueBytesMax = 2 << 20
    /// The same while a client doesn't read.
    package static let webChannelDetachedQueueBytesMax = 256 << 10
    /// Bytes that wait to be acknowledged in all sessions together. Above half of it clients have to acknowledge early, and
    /// a session for which there is no room ends with RESOURCE_EXHAUSTED.
    package static let webChannelOutputBytesMax = 128 << 20
    /// The same of one account.
    package static let webChannelOutputShareBytesMax = 96 << 20
    /// What a connection may hold although its account has its share.
    package static let webChannelOutputSmallBytesMax = 256 << 10
    /// What a session may hold that isn't counted.
    package static let webChannelOutputUncountedBytes = 2 << 10
    /// Bytes after which a client has to acknowledge while there is little room.
    package static let webChannelScarceBytesMax = 64 << 10
    /// Messages of a client that came before one with a lower number.
    package static let webChannelEarlyMessagesMax = 100
    /// Bytes of such messages, and of those that wait for the stream.
    package static let webChannelEarlyBytesMax = 24 << 20
    /// The same of whoever has shown no identity, ahead of their turn: an SDK sends one request after the other, so
    /// that messages only overtake each other when a request is sent again.
    package static let webChannelNobodysEarlyBytesMax = 64 << 10
    /// Messages of one request. Source: MAX_MAPS_PER_REQUEST of Closure's WebChannel.
    package static let webChannelMessagesMax = 1000
    /// The body of a session's first request.
    package static let webChannelHandshakeBytesMax = 1 << 20
    /// Requests of one session that wait for their messages to be taken.
    package static let webChannelWaitingPostsMax = 16

    // MARK: Bundles; bounds of ours

    /// One element of a bundle. A document of 1 MiB that holds nothing but small values takes about 45 MiB as JSON.
    package static let bundleElementSizeBytesMax = 64 << 20
    /// Digits of the length in front of an element.
    package static let bundlePrefixDigitsMax = 15
    /// A bundle that the server makes, uncompressed.
    package static let bundleSizeBytesMax: Int64 = 1 << 30
    /// Bytes of a bundle beyond which it goes to a file while it is made and kept.
    package static let bundleMemoryBytesMax = 1 << 20
    /// Seconds that making a bundle may take.
    package static let bundleBuildSecondsMax = 300
    /// Bundles that a server keeps ready.
    package static let bundlesKeptMax = 100
    /// Bundles that are made at a time; further ones wait for their turn.
    package static let bundlesBuildingMax = 4
    /// Bundles that were begun and let others be made.
    package static let bundlesParkedMax = 12
    /// Definitions that are saved in one database.
    package static let bundleDefinitionsMax = 100
    /// The text of one definition.
    package static let bundleDefinitionSizeBytesMax = 64 << 10
    /// Queries of one definition, and documents that it names.
    package static let bundleQueriesMax = 100
    package static let bundleDocumentsNamedMax = 1000
    /// After so many seconds a kept bundle is made anew although nothing has changed, so that listens can still go on
    /// from its read time: half of the retention.
    package static let bundleKeptSecondsMax = 1800
}
