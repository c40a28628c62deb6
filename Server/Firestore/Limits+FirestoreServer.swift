import HearthModel

/// The bounds of this module, and of those that build upon it. One marked "ours" guards memory or time and is not part of the
/// service's contract.
extension Limits {
    // MARK: Indexes

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

    /// Entries of `ListDocuments` when the request names no page size (ours).
    package static let listPageSizeDefault = 100
    /// Entries of one `ListDocuments` page; larger sizes are cut (ours).
    package static let listPageSizeMax = 300
    /// Bytes of documents after which a `ListDocuments` page ends, whatever its size in entries (ours).
    package static let listPageBytesMax = 1 << 20
    /// Entries of one `ListCollectionIds` page (ours).
    package static let collectionIdsPageSizeMax = 300

    // MARK: Queries

    /// Seconds that a query may run.
    package static let queryTimeSecondsMax = 60

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
    /// The same of one query (ours).
    package static let listenCachedWindowBytesMax = 4 << 20
    /// Names of a filter that lets a client find out what it lacks.
    package static let listenFilterNamesMax = 400_000
    /// How often a quiet stream tells the time.
    package static let listenHeartbeatSeconds = 30

    // MARK: Workers and memory; bounds of ours

    /// Of stored documents that rules may make an event loop decode for one read.
    package static let judgedOnLoopBytesMax = 256 << 10

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
