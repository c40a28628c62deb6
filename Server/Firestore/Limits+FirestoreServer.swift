import HearthModel

/// The limits of this module, and of the modules that import it. A limit marked "ours" bounds memory or time and is not
/// part of Firebase's contract.
extension Limits {
    // MARK: Indexes

    /// Single-field configurations of a database.
    package static let fieldOverridesMax = 1000

    // MARK: Administration

    /// Entries of a list of the admin API when the request has no page size (ours).
    package static let adminPageSizeDefault = 100
    /// Entries of one page of a list of the admin API (ours).
    package static let adminPageSizeMax = 1000
    /// Operations that are stored for a database (ours).
    package static let operationsPerDatabaseMax = 1000
    /// Databases of a project that the admin API creates.
    package static let databasesPerProjectMax = 100

    // MARK: Requests

    /// Entries of `ListDocuments` when the request has no page size (ours).
    package static let listPageSizeDefault = 100
    /// Entries of one `ListDocuments` page; larger sizes are reduced (ours).
    package static let listPageSizeMax = 300
    /// Bytes of documents after which a `ListDocuments` page ends, whatever its size in entries (ours).
    package static let listPageBytesMax = 1 << 20
    /// Entries of one `ListCollectionIds` page (ours).
    package static let collectionIdsPageSizeMax = 300

    // MARK: Queries

    /// Seconds that a query may run.
    package static let queryTimeSecondsMax = 60

    // MARK: Listeners (ours)

    /// Targets of one Listen stream.
    package static let listenTargetsMax = 10_000
    /// Documents of one documents target.
    package static let listenDocumentsMax = 1000
    /// Requests of a Listen or Write stream that wait for an earlier one; then reading pauses.
    package static let streamRequestsWaitingMax = 100
    /// Bytes of these requests; then reading pauses.
    package static let streamRequestsWaitingBytesMax = 1 << 20
    /// Bytes of changes that wait for a slow client; beyond it the client's targets are sent anew.
    package static let listenPendingBytesMax = 4 << 20
    /// Waiting changes of a stream, counted per document and target; beyond it everything is sent anew.
    package static let listenPendingTargetsMax = 1_000_000
    /// Changes that are checked for a client that resumes; beyond it the client gets everything anew.
    package static let listenResumeChangesMax = 100_000
    /// Bytes of the cached window of one query (ours).
    package static let listenCachedWindowBytesMax = 4 << 20
    /// Names of a filter that lets a client find out which documents it lacks.
    package static let listenFilterNamesMax = 400_000
    /// The interval at which a quiet stream sends the read time.
    package static let listenHeartbeatSeconds = 30

    // MARK: Workers and memory (ours)

    /// Stored bytes that rules may make an event loop decode for one read.
    package static let judgedOnLoopBytesMax = 256 << 10

    // MARK: WebChannel (ours)

    /// Sessions that are open at the same time.
    package static let webChannelSessionsMax = 20_000
    /// The interval at which a quiet back channel is written to, so that its client knows that it is alive.
    package static let webChannelKeepAliveSeconds = 30
    /// Seconds without a request after which a session ends; a client's own delays add up to 45.
    package static let webChannelIdleSeconds = 120
    /// Seconds for which a client may fetch the last messages of a session that has ended.
    package static let webChannelFarewellSeconds = 30
    /// Seconds after which a back channel ends so that its client acknowledges its data.
    package static let webChannelLifetimeSeconds = 300
    /// Unacknowledged bytes of a client that reads; then its stream pauses.
    package static let webChannelQueueBytesMax = 2 << 20
    /// The same while a client does not read.
    package static let webChannelDetachedQueueBytesMax = 256 << 10
    /// Bytes that a session may hold without counting them.
    package static let webChannelOutputUncountedBytes = 2 << 10
    /// Bytes after which a client must acknowledge while memory is scarce.
    package static let webChannelScarceBytesMax = 64 << 10
    /// Messages of a client that arrived before one with a lower number.
    package static let webChannelEarlyMessagesMax = 100
    /// Bytes of such messages, and of those that wait for the stream.
    package static let webChannelEarlyBytesMax = 24 << 20
    /// The same for an unauthenticated client, only for messages that arrived out of order: an SDK sends one request
    /// after the other, so that messages arrive out of order only when a request is repeated.
    package static let webChannelAnonymousEarlyBytesMax = 64 << 10
    /// Messages of one request. Source: MAX_MAPS_PER_REQUEST of Closure's WebChannel.
    package static let webChannelMessagesMax = 1000
    /// The body of a session's first request.
    package static let webChannelHandshakeBytesMax = 1 << 20
    /// Requests of one session that wait until their messages are accepted.
    package static let webChannelWaitingPostsMax = 16

    // MARK: Bundles (ours)

    /// Seconds that building a bundle may take.
    package static let bundleBuildSecondsMax = 300
    /// Bundles that a server caches.
    package static let bundlesCachedMax = 100
    /// Bundles that are built at the same time; further ones wait.
    package static let bundlesBuildingMax = 4
    /// Bundles whose build has paused so that others are built.
    package static let bundlesParkedMax = 12
    /// Definitions that are saved in one database.
    package static let bundleDefinitionsMax = 100
    /// Bytes of one definition.
    package static let bundleDefinitionSizeBytesMax = 64 << 10
    /// Queries of one definition, and documents that it names.
    package static let bundleQueriesMax = 100
    package static let bundleDocumentsNamedMax = 1000
    /// Seconds after which a cached bundle is built again although nothing has changed, so that listeners can still
    /// resume from its read time: half of the retention.
    package static let bundleCacheSecondsMax = 1800
}
