import HearthModel

/// The bounds of this module, and of those that build upon it. One marked "ours" guards memory or time and is not part of the
/// service's contract.
extension Limits {
    // MARK: Indexes

    /// Fields of a composite index.
    package static let compositeIndexFieldsMax = 100

    // MARK: Storage

    /// Bytes of the log that wait for whoever reads it (ours).
    package static let logQueueBytesMax = 1 << 20
    /// Databases and namespaces that are open at a time, unless more are in use (ours).
    package static let databasesOpenMax = 128
    /// Databases and namespaces that are in use at a time (ours).
    package static let databasesUsedMax = 4096
    /// File descriptors that an open database may have while it is used: the writer's, the checkpointer's and readers',
    /// each with the log's (ours).
    package static let databaseDescriptorsMax = 16
    /// Databases without a store after which those that nobody uses are forgotten (ours).
    package static let databasesDeferredMax = 256

    // MARK: Listeners; bounds of ours

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
    package static let listenCachedWindowsBytesMax = 32 << 20
    /// The same of one account (ours).
    package static let listenCachedWindowsShareBytesMax = 24 << 20

    // MARK: Workers and memory; bounds of ours

    /// What the kinds have in any case: what was received, what waits to be sent, heads of requests and open streams,
    /// targets of listeners, keys that queries sort, reads of transactions, commits that wait, and each other kind.
    package static let receivedOwnBytes = 32 << 20
    package static let listeningOwnBytes = 8 << 20
    package static let sortingOwnBytes = 8 << 20
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

    /// Bytes that wait to be acknowledged in all sessions together. Above half of it clients have to acknowledge early, and
    /// a session for which there is no room ends with RESOURCE_EXHAUSTED.
    package static let webChannelOutputBytesMax = 128 << 20
    /// The same of one account.
    package static let webChannelOutputShareBytesMax = 96 << 20
    /// What a connection may hold although its account has its share.
    package static let webChannelOutputSmallBytesMax = 256 << 10

    // MARK: Bundles; bounds of ours

    /// A bundle that the server makes, uncompressed.
    package static let bundleSizeBytesMax: Int64 = 1 << 30
    /// Bytes of a bundle beyond which it goes to a file while it is made and kept.
    package static let bundleMemoryBytesMax = 1 << 20

    // MARK: Realtime Database over HTTP; bounds of ours where no source is given

    /// The UTF-8 length of a namespace's name.
    package static let realtimeNameBytesMax = 100

    // MARK: Realtime Database: sockets and streams; bounds of ours where no source is given

    /// Such bytes of all clients together.
    package static let realtimeUnreadBytesMax = 64 << 20
    /// Those of one account.
    package static let realtimeUnreadShareBytesMax = 48 << 20
    /// Those that a connection may have although its account has its share.
    package static let realtimeUnreadSmallBytesMax = 64 << 10
}
