import HearthModel

/// The bounds of this module and of its dependents. A bound marked "ours" protects memory or time and is not part of
/// the service's contract.
extension Limits {
    // MARK: Realtime Database over HTTP; our own bounds where no source is given

    /// A request's body. The service accepts 256 MB; ours must fit into the memory for the unfinished requests of all
    /// clients (`NetworkLimits.bufferedInputBytesMax`). Larger data is written in parts, as `import` does.
    package static let realtimeBodyBytesMax = 120 << 20
    /// The body of a request without an administrator's rights. Source: the largest write of an SDK in "Limits" of the
    /// documentation.
    static let realtimeClientBodyBytesMax = 16 << 20
    /// A larger write is only received when rules may allow it.
    static let realtimeUnaskedBytesMax = 64 << 10
    /// An answer. Source: as above.
    static let realtimeReadBytesMax = 256 << 20
    /// A larger answer is written to a file before it is sent.
    static let realtimeReadMemoryBytesMax = 256 << 10
    /// The size of data that is read on an event loop.
    static let realtimeReadInlineBytesMax = 16 << 10
    /// The children and entries of an index that are read for a query before it is passed to the threads for long
    /// reads.
    static let realtimeBriefReadsMax = 1000
    /// The total size of answers in files.
    package static let realtimeSpoolBytesMax = 4 << 30
    /// Those of one account.
    static let realtimeSpoolShareBytesMax = 512 << 20
    /// Those that a connection may have although its account has used its share.
    static let realtimeSpoolSmallBytesMax = 16 << 20
    /// The decoded size of a write without an administrator's rights: more than a million values.
    static let realtimeClientParsedBytesMax = 128 << 20
    /// The source of rules.
    static let realtimeRulesBytesMax = 1 << 20

    // MARK: Realtime Database: sockets and streams; our own bounds where no source is given

    /// A message of a client. Source: the largest write of an SDK in "Limits" of the documentation.
    package static let realtimeMessageBytesMax = 16 << 20
    /// The frames of a message.
    static let realtimePiecesMax = 10_000
    /// The listens of one connection.
    package static let realtimeListensMax = 10_000
    /// The bytes of messages that wait for a client in memory. Above it changes are not queued; the client receives all
    /// data after it has read some.
    package static let realtimeQueueBytesMax = 1 << 20
    /// The number of waiting bytes at which a client that lacks changes receives all data. Not less than the bytes that
    /// a socket holds: only above these it reports that it has sent data, and the client would wait forever.
    static let realtimeReloadBytesMax = realtimeSocketHighWaterBytes - 1
    /// The bytes that are written to a socket before it must have sent some.
    package static let realtimeSocketHighWaterBytes = 128 << 10
    /// The answer of a read, or the first data of a listen; a larger one is written to a file. A connection has one
    /// such file at a time.
    static let realtimeAnswerMemoryBytesMax = 64 << 10
    /// The memory of a change; a worker writes a larger one to a file, once for all listeners.
    static let realtimePushInlineBytesMax = 128 << 10
    /// The total bytes of such files.
    package static let realtimePushFilesBytesMax = 1 << 30
    /// The bytes of such files that wait for one client. Above it the client receives all data after it has read some.
    static let realtimePushesWaitingBytesMax = 16 << 20
    /// The records of a tree that is read into memory and compared with the client's data. A larger tree is sent whole.
    static let realtimeCompareTreeBytesMax = 4 << 20
    /// The changes that wait while a listen is loaded. Above it the listen is loaded again.
    static let realtimePendingChangesMax = 10_000
    /// Their bytes.
    static let realtimePendingBytesMax = 4 << 20
    /// The bytes below a write that are compared with the earlier data, to find out whether an event is needed.
    static let realtimeCompareBytesMax = 64 << 10
    /// The requests of a connection that are not begun. Above it no more are read.
    package static let realtimeRequestsWaitingMax = 1000
    /// Their bytes.
    static let realtimeWaitingBytesMax = 16 << 20
    /// The same for a client without an identity. Above it no more are read.
    static let realtimeUnknownWaitingBytesMax = 64 << 10
    /// The bytes of a connection that don't count towards the total limit of the server.
    static let realtimeUncountedBytesMax = 8 << 10
    /// Sockets and event streams; the other connections are reserved for requests.
    static let realtimeConnectionsMax = 15_000
    /// The answers of a connection that are not sent yet. Above it no request is begun.
    static let realtimeAnswersWaitingMax = 10_000
    /// The listens of a connection whose rights one job checks.
    static let realtimeJudgedAtOnceMax = 1000
    /// The writes of a connection that wait for the writer. Above it no request is begun.
    package static let realtimeWritesInFlightMax = 256
    /// The delay after which a session's identity is written again, when the journal could not be written.
    static let realtimeJournalRetryMilliseconds = 5_000
    /// The bytes of a connection's decoded requests that don't count, until they are answered. Each request above them
    /// must first get its part of the memory for decoded requests (`WorkingMemory`), and waits for it.
    package static let realtimeUncountedRequestsBytesMax = 16 << 10
    /// The concurrent reads of a connection.
    package static let realtimeReadsInFlightMax = 8
    /// The locations of a connection's disconnect writes.
    package static let realtimeDisconnectWritesMax = 1000
    /// Their bytes.
    static let realtimeDisconnectBytesMax = 1 << 20
    /// The time that a start waits for the disconnect writes that a crash has left.
    static let realtimeAbandonedWaitMilliseconds = 2000
    /// The interval between the keep-alive events of an idle event stream. Source: the documentation of streaming.
    static let realtimeKeepAliveSeconds = 30

    // MARK: Long polling of the Realtime Database; our own bounds

    /// The open sessions.
    static let longPollSessionsMax = 20_000
    /// The seconds that a poll waits for output; clients send a new poll automatically after 25.
    static let longPollWaitSeconds = 20
    /// The seconds without a poll after which a client counts as disconnected; browsers run timers of hidden pages once
    /// a minute.
    static let longPollIdleSeconds = 75
    /// The seconds for which a client may fetch the last output.
    static let longPollFarewellSeconds = 30
    /// The bytes of messages in one answer. The rest waits for the next answer.
    static let longPollAnswerBytesMax = 1 << 20
    /// The pieces of a client's messages that arrived before one with a lower number.
    static let longPollEarlySegmentsMax = 500
    /// Their bytes, for a client without an identity.
    static let longPollUnknownEarlyBytesMax = 64 << 10
    /// The bytes of messages that wait to be begun, for a client without an identity.
    static let longPollUnknownWaitingBytesMax = 2 << 20
    /// The pieces of one message.
    static let longPollSegmentsMax = 20_000
}
