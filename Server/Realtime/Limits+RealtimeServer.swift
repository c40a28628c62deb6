import HearthModel

/// The bounds of this module, and of those that build upon it. One marked "ours" guards memory or time and is not part of the
/// service's contract.
extension Limits {
    // MARK: Realtime Database over HTTP; bounds of ours where no source is given

    /// A request's body. The service takes 256 MB; ours has to fit into what the unfinished requests of all clients may
    /// hold together (`NetworkLimits.bufferedInputBytesMax`). What is larger is written in parts, as `import` does.
    package static let realtimeBodyBytesMax = 120 << 20
    /// The body of whoever isn't an administrator. Source: the largest write of an SDK in "Limits" of the documentation.
    package static let realtimeClientBodyBytesMax = 16 << 20
    /// A write beyond this size is only received when rules may allow it.
    package static let realtimeUnaskedBytesMax = 64 << 10
    /// An answer. Source: as above.
    package static let realtimeReadBytesMax = 256 << 20
    /// An answer beyond which it goes to a file before it is sent.
    package static let realtimeReadMemoryBytesMax = 256 << 10
    /// What is read on an event loop.
    package static let realtimeReadInlineBytesMax = 16 << 10
    /// Children and entries of an index that are looked at for a query before it is left to threads for long reads.
    package static let realtimeBriefReadsMax = 1000
    /// Answers that are in files together.
    package static let realtimeSpoolBytesMax = 4 << 30
    /// Those of one account.
    package static let realtimeSpoolShareBytesMax = 512 << 20
    /// Those that a connection may have although its account has its share.
    package static let realtimeSpoolSmallBytesMax = 16 << 20
    /// What the write of whoever isn't an administrator may become when it is decoded: more than a million values.
    package static let realtimeClientParsedBytesMax = 128 << 20
    /// A text of rules.
    package static let realtimeRulesBytesMax = 1 << 20

    // MARK: Realtime Database: sockets and streams; bounds of ours where no source is given

    /// A message of a client. Source: the largest write of an SDK in "Limits" of the documentation.
    package static let realtimeMessageBytesMax = 16 << 20
    /// Frames that a message is cut into.
    package static let realtimePiecesMax = 10_000
    /// Listens of one connection.
    package static let realtimeListensMax = 10_000
    /// Bytes of messages that wait for a client in memory; beyond them changes are not queued, but sent as a whole when it
    /// has read some.
    package static let realtimeQueueBytesMax = 1 << 20
    /// Bytes of them with which a client that lacks changes is sent the whole. Not less than what a socket is given ahead: only
    /// from there on it tells that it has sent some, and the client would wait for ever.
    package static let realtimeReloadBytesMax = realtimeSocketHighWaterBytes - 1
    /// Bytes that a socket is given before it has to have sent some.
    package static let realtimeSocketHighWaterBytes = 128 << 10
    /// What a read is answered with, or a listen begins with, beyond which it goes to a file. One connection has one such
    /// file at a time.
    package static let realtimeAnswerMemoryBytesMax = 64 << 10
    /// A change, by what it takes in memory, beyond which a worker writes it to a file, once for all who listen.
    package static let realtimePushInlineBytesMax = 128 << 10
    /// Bytes of such files together.
    package static let realtimePushFilesBytesMax = 1 << 30
    /// Bytes of them that wait for one client; beyond them it is sent the whole when it has read some.
    package static let realtimePushesWaitingBytesMax = 16 << 20
    /// Records of which a tree is made in memory to compare it with what a client has; of more the client is sent the whole.
    package static let realtimeCompareTreeBytesMax = 4 << 20
    /// Changes that wait while a listen is loaded; beyond them it is loaded again.
    package static let realtimePendingChangesMax = 10_000
    /// Their bytes.
    package static let realtimePendingBytesMax = 4 << 20
    /// What lies below a write and is compared with what was there, to find out whether there is anything to tell.
    package static let realtimeCompareBytesMax = 64 << 10
    /// Requests of a connection that were not begun; beyond them no more are read.
    package static let realtimeRequestsWaitingMax = 1000
    /// Their bytes.
    package static let realtimeWaitingBytesMax = 16 << 20
    /// The same of whoever hasn't shown an identity; beyond them no more is read.
    package static let realtimeUnknownWaitingBytesMax = 64 << 10
    /// Bytes of a connection that don't count against what all may make the server hold.
    package static let realtimeUncountedBytesMax = 8 << 10
    /// Sockets and event streams; the rest of the connections is for requests.
    package static let realtimeConnectionsMax = 15_000
    /// Answers of a connection that are not sent yet; beyond them no request is begun.
    package static let realtimeAnswersWaitingMax = 10_000
    /// Listens of a connection of which one job asks whether they may go on.
    package static let realtimeJudgedAtOnceMax = 1000
    /// Writes of a connection that wait for the writer; beyond them no request is begun.
    package static let realtimeWritesInFlightMax = 256
    /// After the journal could not be written: when who a session's client is comes to it again.
    package static let realtimeJournalRetryMilliseconds = 5_000
    /// Bytes of what a connection's requests become when they are decoded that don't count, until they are answered. Each
    /// request beyond them has to get its part of `workingBytesMax` first, in turn.
    package static let realtimeUncountedRequestsBytesMax = 16 << 10
    /// Reads of a connection at a time.
    package static let realtimeReadsInFlightMax = 8
    /// Places that a connection may want written when it ends.
    package static let realtimeDisconnectWritesMax = 1000
    /// Their text.
    package static let realtimeDisconnectBytesMax = 1 << 20
    /// How long nobody is served until what a crash has left of them is written.
    package static let realtimeAbandonedWaitMilliseconds = 2000
    /// How often a quiet event stream is written to. Source: the documentation of streaming.
    package static let realtimeKeepAliveSeconds = 30

    // MARK: Long polling of the Realtime Database; bounds of ours

    /// Sessions open at a time.
    package static let longPollSessionsMax = 20_000
    /// Seconds that a poll waits for something to say; clients ask again by themselves after 25.
    package static let longPollWaitSeconds = 20
    /// Seconds without a poll after which a client is taken to be gone; browsers call what isn't seen once a minute.
    package static let longPollIdleSeconds = 75
    /// Seconds for which a client may fetch what was said last.
    package static let longPollFarewellSeconds = 30
    /// Bytes of messages in one answer, beyond which the rest waits for the next.
    package static let longPollAnswerBytesMax = 1 << 20
    /// Pieces of a client's messages that came before one with a lower number.
    package static let longPollEarlySegmentsMax = 500
    /// Their bytes, of a client that hasn't shown an identity.
    package static let longPollUnknownEarlyBytesMax = 64 << 10
    /// Bytes of messages that wait to be begun, of a client that hasn't shown an identity.
    package static let longPollUnknownWaitingBytesMax = 2 << 20
    /// Pieces of one message.
    package static let longPollSegmentsMax = 20_000
}
