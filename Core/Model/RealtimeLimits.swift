/// Those of the Realtime Database: documented ones with their source, and bounds of our own.
extension Limits {
    // MARK: Realtime Database: trees

    /// Keys from the root down to a leaf.
    public static let treeDepthMax = 32
    /// The UTF-8 length of a key.
    public static let treeKeySizeBytesMax = 768
    /// The UTF-8 length of a path that an SDK writes to.
    public static let treeClientPathSizeBytesMax = 768
    /// The UTF-8 length of a string.
    public static let treeStringSizeBytesMax = 10 << 20
    /// Arrays and objects within each other in any JSON text, envelopes included (ours).
    public static let treeNestingMax = 100
    /// Names that are asked for at a time when what is left of a place's children is looked for (ours).
    public static let treeKeysPerLookMax = 64
    /// Ranges of a compound hash (ours): a client with a gigabyte makes some three thousand.
    public static let treeHashRangesMax = 10_000

    // MARK: Realtime Database over HTTP; bounds of ours where no source is given

    /// The UTF-8 length of a namespace's name.
    public static let realtimeNameBytesMax = 100
    /// A request's body. The service takes 256 MB; ours has to fit into what the unfinished requests of all clients may
    /// hold together (`NetworkLimits.bufferedInputBytesMax`). What is larger is written in parts, as `import` does.
    public static let realtimeBodyBytesMax = 120 << 20
    /// The body of whoever isn't an administrator. Source: the largest write of an SDK in "Limits" of the documentation.
    public static let realtimeClientBodyBytesMax = 16 << 20
    /// A write beyond this size is only received when rules may allow it.
    public static let realtimeUnaskedBytesMax = 64 << 10
    /// An answer. Source: as above.
    public static let realtimeReadBytesMax = 256 << 20
    /// An answer beyond which it goes to a file before it is sent.
    public static let realtimeReadMemoryBytesMax = 256 << 10
    /// What is read on an event loop.
    public static let realtimeReadInlineBytesMax = 16 << 10
    /// Children and entries of an index that are looked at for a query before it is left to threads for long reads.
    public static let realtimeBriefLooksMax = 1000
    /// Answers that are in files together.
    public static let realtimeSpoolBytesMax = 4 << 30
    /// Those of one account.
    public static let realtimeSpoolShareBytesMax = 512 << 20
    /// Those that a connection may have although its account has its share.
    public static let realtimeSpoolSmallBytesMax = 16 << 20
    /// What the write of whoever isn't an administrator may become when it is decoded: more than a million values.
    public static let realtimeClientParsedBytesMax = 128 << 20
    /// A text of rules.
    public static let realtimeRulesBytesMax = 1 << 20

    // MARK: The Realtime Database's storage; bounds of ours

    /// Bytes that one read may go through: documented as 256 MB.
    public static let treeReadSizeBytesMax = 256 << 20
    /// Bytes that one write may have: documented as 256 MB for REST.
    public static let treeWriteSizeBytesMax = 256 << 20
    /// Children of a window of which only the keys are looked up first.
    public static let treeWindowKeysMax = 2_000_000
    /// Writes that wait for the writer.
    public static let treeWriteQueueMax = 20_000
    /// Bytes of queued writes.
    public static let treeWriteQueueBytesMax = 512 << 20
    /// Bytes that one session may leave to do at its end.
    public static let treeJournalRecordSizeBytesMax = 16 << 20
    /// Indexes of one database.
    public static let treeIndexesMax = 10_000
    /// Nodes of a write, or of what it replaces, from which on it is made in slices.
    public static let treeReplacementNodesMin = 2_000
    /// Bytes of a write, or of what it replaces, from which on it is made in slices, however few nodes they are.
    public static let treeReplacementBytesMin = 512 << 10
    /// Locations that a large write may have to be made as ranges that are replaced; one with more is made on a shadow of the tree.
    public static let treeReplacementPlacesMax = 512
    /// What one transaction of background work on a tree may write.
    public static let treeSliceRecordsMax = 2_000
    public static let treeSliceBytesMax = 1 << 20
    public static let treeSliceMilliseconds = 15
    /// What one transaction of clients' writes to a tree may take before others have their turn.
    public static let treeGroupMilliseconds = 20
    /// What the writer of a tree takes together at most, in nodes and quarters of a kilobyte.
    public static let treeGroupCostMax = 4_000
    /// Bytes that the writer of a tree reads itself to compare a hash; what has more is read beside it.
    public static let treeCompareBytesMax = 64 << 10
    /// Steps of a guard's decision on the thread of a tree's writer, a third of a microsecond each; what takes more of them is
    /// judged beside it.
    public static let treeJudgeStepsMax = 10_000
    /// Places that are remembered of what a guard has looked at beside the writer.
    public static let treeLooksMax = 10_000
    /// The same for a write that was judged beside the writer in vain, because what its guard looks at is written all the time,
    /// and how many locations it may have.
    public static let treeJudgeAgainStepsMax = 150_000
    public static let treeJudgedAgainChangesMax = 20_000
    /// Hashes of a tree that are worked out, and writes to it that are judged beside its writer, at a time.
    public static let treeComparisonsMax = 2
    /// Times that a write is worked out beside the writer before it is given up because the tree changes too fast.
    public static let treeAttemptsMax = 8
    /// Children that are indexed between two groups of writes.
    public static let treeIndexSliceMax = 500

    // MARK: Realtime Database: sockets and streams; bounds of ours where no source is given

    /// A message of a client. Source: the largest write of an SDK in "Limits" of the documentation.
    public static let realtimeMessageBytesMax = 16 << 20
    /// Frames that a message is cut into.
    public static let realtimePiecesMax = 10_000
    /// Listens of one connection.
    public static let realtimeListensMax = 10_000
    /// Bytes of messages that wait for a client in memory; beyond them changes are not queued, but sent as a whole when it
    /// has read some.
    public static let realtimeQueueBytesMax = 1 << 20
    /// Bytes of them with which a client that lacks changes is sent the whole. Not less than what a socket is given ahead: only
    /// from there on it tells that it has sent some, and the client would wait for ever.
    public static let realtimeReloadBytesMax = realtimeSocketHighWaterBytes - 1
    /// Such bytes of all clients together.
    public static let realtimeUnreadBytesMax = 64 << 20
    /// Those of one account.
    public static let realtimeUnreadShareBytesMax = 48 << 20
    /// Those that a connection may have although its account has its share.
    public static let realtimeUnreadSmallBytesMax = 64 << 10
    /// Bytes that a socket is given before it has to have sent some.
    public static let realtimeSocketHighWaterBytes = 128 << 10
    /// What a read is answered with, or a listen begins with, beyond which it goes to a file. One connection has one such
    /// file at a time.
    public static let realtimeAnswerMemoryBytesMax = 64 << 10
    /// A change, by what it takes in memory, beyond which a worker writes it to a file, once for all who listen.
    public static let realtimePushInlineBytesMax = 128 << 10
    /// Bytes of such files together.
    public static let realtimePushFilesBytesMax = 1 << 30
    /// Bytes of them that wait for one client; beyond them it is sent the whole when it has read some.
    public static let realtimePushesWaitingBytesMax = 16 << 20
    /// Records of which a tree is made in memory to compare it with what a client has; of more the client is sent the whole.
    public static let realtimeCompareTreeBytesMax = 4 << 20
    /// Changes that wait while a listen is loaded; beyond them it is loaded again.
    public static let realtimePendingChangesMax = 10_000
    /// Their bytes.
    public static let realtimePendingBytesMax = 4 << 20
    /// What lies below a write and is compared with what was there, to find out whether there is anything to tell.
    public static let realtimeCompareBytesMax = 64 << 10
    /// Requests of a connection that were not begun; beyond them no more are read.
    public static let realtimeRequestsWaitingMax = 1000
    /// Their bytes.
    public static let realtimeWaitingBytesMax = 16 << 20
    /// The same of whoever hasn't shown an identity; beyond them no more is read.
    public static let realtimeUnknownWaitingBytesMax = 64 << 10
    /// Bytes of a connection that don't count against what all may make the server hold.
    public static let realtimeUncountedBytesMax = 8 << 10
    /// Sockets and event streams; the rest of the connections is for requests.
    public static let realtimeConnectionsMax = 15_000
    /// Answers of a connection that are not sent yet; beyond them no request is begun.
    public static let realtimeAnswersWaitingMax = 10_000
    /// Listens of a connection of which one job asks whether they may go on.
    public static let realtimeJudgedAtOnceMax = 1000
    /// Writes of a connection that wait for the writer; beyond them no request is begun.
    public static let realtimeWritesInFlightMax = 256
    /// After the journal could not be written: when who a session's client is comes to it again.
    public static let realtimeJournalRetryMilliseconds = 5_000
    /// Bytes of what a connection's requests become when they are decoded that don't count, until they are answered. Each
    /// request beyond them has to get its part of `workingBytesMax` first, in turn.
    public static let realtimeUncountedRequestsBytesMax = 16 << 10
    /// Reads of a connection at a time.
    public static let realtimeReadsInFlightMax = 8
    /// Places that a connection may want written when it ends.
    public static let realtimeDisconnectWritesMax = 1000
    /// Their text.
    public static let realtimeDisconnectBytesMax = 1 << 20
    /// How long nobody is served until what a crash has left of them is written.
    public static let realtimeAbandonedWaitMilliseconds = 2000
    /// How often a quiet event stream is written to. Source: the documentation of streaming.
    public static let realtimeKeepAliveSeconds = 30

    // MARK: Long polling of the Realtime Database; bounds of ours

    /// Sessions open at a time.
    public static let longPollSessionsMax = 20_000
    /// Seconds that a poll waits for something to say; clients ask again by themselves after 25.
    public static let longPollWaitSeconds = 20
    /// Seconds without a poll after which a client is taken to be gone; browsers call what isn't seen once a minute.
    public static let longPollIdleSeconds = 75
    /// Seconds for which a client may fetch what was said last.
    public static let longPollFarewellSeconds = 30
    /// Bytes of messages in one answer, beyond which the rest waits for the next.
    public static let longPollAnswerBytesMax = 1 << 20
    /// Pieces of a client's messages that came before one with a lower number.
    public static let longPollEarlySegmentsMax = 500
    /// Their bytes, of a client that hasn't shown an identity.
    public static let longPollUnknownEarlyBytesMax = 64 << 10
    /// Bytes of messages that wait to be begun, of a client that hasn't shown an identity.
    public static let longPollUnknownWaitingBytesMax = 2 << 20
    /// Pieces of one message.
    public static let longPollSegmentsMax = 20_000
}
