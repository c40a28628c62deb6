import HearthModel

/// The limits of this module, and of the modules that import it. A limit marked "ours" bounds memory or time and is not
/// part of Firebase's contract.
extension Limits {
    // MARK: Indexes

    /// Single-field configurations of a database.
    static let fieldOverridesMax = 1000

    // MARK: Administration

    /// Entries of a list of the admin API when the request has no page size (ours).
    static let adminPageSizeDefault = 100
    /// Entries of one page of a list of the admin API (ours).
    static let adminPageSizeMax = 1000
    /// Bytes after which a page of a list of operations ends (ours).
    static let adminPageSizeBytesMax = 1 << 20
    /// Operations that are stored for a database (ours).
    package static let operationsPerDatabaseMax = 1000
    /// Operations that are kept of databases that they have deleted (ours).
    static let operationsOfDeletedMax = 100
    /// Callers that wait for the end of operations; others are answered at once (ours).
    static let operationWaitersMax = 1000
    /// Seconds that `WaitOperation` waits, when the request says nothing and at most (ours).
    static let operationWaitSecondsDefault = 60
    static let operationWaitSecondsMax = 600
    /// Exports and imports at a time, of all databases (ours). Google's service has 50.
    package static let transfersMax = 4
    /// Bulk deletions at a time, of all databases (ours).
    package static let deletionsMax = 16
    /// Collection ids that an export, an import or a bulk deletion names. Source: "Quotas and limits" in the documentation of
    /// Cloud Firestore, for exports and imports.
    static let collectionFiltersMax = 100
    /// Bytes of the URI of an export: those that the system takes as a path (ours).
    static let exportURIBytesMax = 4096
    /// Bytes of a request of the emulator's export, import or deletion (ours).
    static let transferRequestBytesMax = 1 << 20
    /// Databases of a project that the admin API creates.
    static let databasesPerProjectMax = 100

    // MARK: Requests

    /// Entries of `ListDocuments` when the request has no page size (ours).
    static let listPageSizeDefault = 100
    /// Entries of one `ListDocuments` page; larger sizes are reduced (ours).
    static let listPageSizeMax = 300
    /// Bytes of documents after which a `ListDocuments` page ends, whatever its size in entries (ours).
    static let listPageBytesMax = 1 << 20
    /// Entries of one `ListCollectionIds` page (ours).
    static let collectionIdsPageSizeMax = 300

    // MARK: Queries

    /// Seconds that a query may run.
    static let queryTimeSecondsMax = 60

    // MARK: Listeners (ours)

    /// Targets of one Listen stream.
    static let listenTargetsMax = 10_000
    /// Documents of one documents target.
    static let listenDocumentsMax = 1000
    /// Requests of a Listen or Write stream that wait for an earlier one; then reading pauses.
    static let streamRequestsWaitingMax = 100
    /// Bytes of these requests; then reading pauses.
    static let streamRequestsWaitingBytesMax = 1 << 20
    /// Bytes of changes that wait for a slow client; beyond it the client's targets are sent anew.
    static let listenPendingBytesMax = 4 << 20
    /// Waiting changes of a stream, counted per document and target; beyond it everything is sent anew.
    static let listenPendingTargetsMax = 1_000_000
    /// Changes that are checked for a client that resumes; beyond it the client gets everything anew.
    static let listenResumeChangesMax = 100_000
    /// Bytes of the cached window of one query (ours).
    static let listenCachedWindowBytesMax = 4 << 20
    /// Names of a filter that lets a client find out which documents it lacks.
    static let listenFilterNamesMax = 400_000
    /// The interval at which a quiet stream sends the read time.
    static let listenHeartbeatSeconds = 30

    // MARK: Workers and memory (ours)

    /// Stored bytes that rules may make an event loop decode for one read.
    package static let judgedOnLoopBytesMax = 256 << 10

    // MARK: WebChannel (ours)

    /// Sessions that are open at the same time.
    static let webChannelSessionsMax = 20_000
    /// The interval at which a quiet back channel is written to, so that its client knows that it is alive.
    static let webChannelKeepAliveSeconds = 30
    /// Seconds without a request after which a session ends; a client's own delays add up to 45.
    static let webChannelIdleSeconds = 120
    /// Seconds for which a client may fetch the last messages of a session that has ended.
    static let webChannelFarewellSeconds = 30
    /// Seconds after which a back channel ends so that its client acknowledges its data.
    static let webChannelLifetimeSeconds = 300
    /// Unacknowledged bytes of a client that reads; then its stream pauses.
    static let webChannelQueueBytesMax = 2 << 20
    /// The same while a client does not read.
    static let webChannelDetachedQueueBytesMax = 256 << 10
    /// Bytes that a session may hold without counting them.
    static let webChannelOutputUncountedBytes = 2 << 10
    /// Bytes after which a client must acknowledge while memory is scarce.
    static let webChannelScarceBytesMax = 64 << 10
    /// Messages of a client that arrived before one with a lower number.
    static let webChannelEarlyMessagesMax = 100
    /// Bytes of such messages, and of those that wait for the stream.
    package static let webChannelEarlyBytesMax = 24 << 20
    /// The same for an unauthenticated client, only for messages that arrived out of order: an SDK sends one request
    /// after the other, so that messages arrive out of order only when a request is repeated.
    static let webChannelAnonymousEarlyBytesMax = 64 << 10
    /// Messages of one request. Source: MAX_MAPS_PER_REQUEST of Closure's WebChannel.
    static let webChannelMessagesMax = 1000
    /// The body of a session's first request.
    static let webChannelHandshakeBytesMax = 1 << 20
    /// Requests of one session that wait until their messages are accepted.
    static let webChannelWaitingPostsMax = 16

    // MARK: Bundles (ours)

    /// Seconds that building a bundle may take.
    static let bundleBuildSecondsMax = 300
    /// Bundles that a server caches.
    package static let bundlesCachedMax = 100
    /// Bundles that are built at the same time; further ones wait.
    package static let bundlesBuildingMax = 4
    /// Bundles whose build has paused so that others are built.
    static let bundlesParkedMax = 12
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

    // MARK: Change feed

    /// Readers of change feeds at a time, of all databases (ours); each holds at most 1 MiB, and one line besides.
    package static let changeReadersMax = 100
    /// Seconds between two signs of life to a reader that waits.
    package static let changeHeartbeatSeconds = 30
    /// For how long a reader may be set to lag behind: 7 days.
    package static let changesRetentionSecondsMax = 7 * 86_400

    // MARK: Rulesets

    /// Rulesets of a project. Source: "Managing and deploying Firebase Security Rules" of the Firebase documentation.
    package static let rulesetsPerProjectMax = 2500
    /// Releases of a project (ours).
    static let releasesPerProjectMax = 200
    /// Projects with rulesets (ours).
    static let projectsWithRulesMax = 1000
    /// Bytes of the id of a project with rulesets (ours).
    static let rulesProjectBytesMax = 100
    /// Bytes of the name of a release, of a source's file and of an attachment point (ours).
    static let rulesNamesBytesMax = 512
    /// Bytes of the sources of all rulesets that are in force (ours). Compiled they take about twenty times as much memory, and
    /// a start compiles them.
    static let rulesInForceBytesMax = 8 << 20
    /// Bytes of all rulesets and releases of a server without a data folder (ours).
    static let rulesInMemoryBytesMax = 64 << 20
    /// Entries of a list of rulesets or releases when the request has no page size, and at most. Source: `pageSize` of both
    /// methods in the description of Google's API.
    static let rulesPageSizeDefault = 10
    static let rulesPageSizeMax = 100
    /// Cases of a request that tests rules (ours).
    static let rulesTestCasesMax = 1000
    /// Seconds that testing rules may take (ours).
    static let rulesTestSecondsMax = 30
    /// Bytes of the results of a test (ours).
    static let rulesTestAnswerBytesMax = 16 << 20
    /// Bytes of a request for a token (ours).
    package static let tokenRequestBytesMax = 64 << 10
    /// Permissions that one request asks for. Source: `permissions` of TestIamPermissions in the description of Google's API.
    static let permissionsAskedMax = 100
}
