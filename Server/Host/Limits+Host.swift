import HearthModel

/// The limits of this module, and of the modules that import it. A limit marked "ours" bounds memory or time and is not
/// part of Firebase's contract.
extension Limits {
    // MARK: Indexes

    /// Fields of a composite index.
    static let compositeIndexFieldsMax = 100

    // MARK: Storage

    /// Bytes of the log that wait for its reader (ours).
    package static let logQueueBytesMax = 1 << 20
    /// Databases and namespaces that are open at the same time, unless more are in use (ours).
    static let databasesOpenMax = 128
    /// Databases and namespaces that are in use at the same time (ours).
    static let databasesUsedMax = 4096
    /// File descriptors that an open database may use: those of the writer, the checkpointer and the readers, each with
    /// SQLite's log's, the log's file, and for a moment another file of the log and its folder (ours).
    package static let databaseDescriptorsMax = 19
    /// Databases that are remembered as impossible to open, so that each is logged once (ours).
    package static let unopenedStoresMax = 1_000
    /// Databases that may have half of the file descriptors, if these are few (ours).
    static let databasesUsedLeastMax = 32
    /// File descriptors for what is neither a connection, a database nor a large answer: listening sockets, locks, the log,
    /// the rules, issuers' keys, and connections that wait for another one to be closed (ours).
    package static let descriptorsOwn = 128
    /// File descriptors of an event loop (ours).
    static let loopDescriptors = 2
    /// File descriptors that are kept for large answers; an eighth of all, if these are few (ours).
    static let fileDescriptorsMax = 1024
    /// A server that cannot have as many connections does not start (ours).
    package static let connectionsLeastMax = 32
    /// Enough for all connections and thousands of databases (ours).
    package static let descriptorsAdvised = 100_000
    /// Databases without a store after which the unused ones are forgotten (ours).
    static let databasesDeferredMax = 256

    // MARK: Listeners (ours)

    /// Bytes that the targets of all listeners use together: their queries, documents and clients.
    static let listeningBytesMax = 256 << 20
    /// The same for one account; a target beyond it fails with RESOURCE_EXHAUSTED.
    static let listeningShareBytesMax = 128 << 20
    /// Bytes that a connection's targets may use although its account has used its share.
    static let listeningSmallBytesMax = 64 << 10
    /// Bytes of changes that wait for slow clients, for all together; targets beyond it are sent anew.
    static let listenWaitingBytesMax = 128 << 20
    /// The same for one account.
    static let listenWaitingShareBytesMax = 96 << 20
    /// Bytes that may wait for the clients of one connection although its account has used its share.
    static let listenWaitingSmallBytesMax = 64 << 10
    /// Bytes of the recorded windows of all clients: the documents that they have of targets with a limit or an offset
    /// (ours).
    static let listenWindowsBytesMax = 128 << 20
    /// The same for one account (ours).
    static let listenWindowsShareBytesMax = 96 << 20
    /// Bytes that a connection may hold although its account has used its share (ours).
    static let listenWindowsSmallBytesMax = 256 << 10
    /// Bytes of the cached windows of all queries; changes in a cached window need no index (ours).
    package static let listenCachedWindowsBytesMax = 32 << 20
    /// The same for one account (ours).
    static let listenCachedWindowsShareBytesMax = 24 << 20

    // MARK: Workers and memory (ours)

    /// The guaranteed memory of each kind of use: received bytes, output that waits, heads of requests and open
    /// streams, targets of listeners, keys that queries sort, reads of transactions, commits that wait, and each other
    /// kind.
    package static let receivedOwnBytes = 32 << 20
    package static let listeningOwnBytes = 8 << 20
    package static let sortingOwnBytes = 8 << 20
    package static let otherOwnBytes = 4 << 20
    /// Bytes that were received and cannot be processed yet, of all connections of all protocols together.
    static let receivedBytesMax = 128 << 20
    /// The same for one account: an identity, or the address of an unauthenticated client.
    static let receivedShareBytesMax = 96 << 20
    /// Bytes that a connection may hold although its account has used its share.
    static let receivedSmallBytesMax = 64 << 10
    /// Decoded bytes of requests in progress that become large, together; more of them wait.
    static let workingLargeBytesMax = 56 << 20
    /// Decoded bytes of all other requests in progress from 2 KiB on, together.
    static let workingCommonBytesMax = 24 << 20
    /// The part of the common memory above which a decoded request is large: above 2 MiB.
    static let workingClaimDivisor = 12
    /// Bytes that a connection's decoded requests may have although its account holds much.
    static let workingSmallBytesMax = 128 << 10
    /// Requests that wait for common memory and are tried when some is released.
    static let workingTriesMax = 16
    /// Bytes that queries hold while they sort, together; one connection gets at most about 0.38 of them.
    static let sortingBytesMax = 128 << 20

    // MARK: WebChannel (ours)

    /// Unacknowledged bytes of all sessions together. Above half of the limit clients must acknowledge early, and a
    /// session that gets no memory ends with RESOURCE_EXHAUSTED.
    static let webChannelOutputBytesMax = 128 << 20
    /// The same for one account.
    static let webChannelOutputShareBytesMax = 96 << 20
    /// Bytes that a connection may hold although its account has used its share.
    static let webChannelOutputSmallBytesMax = 256 << 10

    // MARK: Bundles (ours)

    /// The size of a bundle that the server builds, uncompressed.
    static let bundleSizeBytesMax: Int64 = 1 << 30
    /// Bytes of a bundle beyond which it is stored in a file while it is built and cached.
    package static let bundleMemoryBytesMax = 1 << 20

    // MARK: Realtime Database over HTTP (ours where no source is given)

    /// The UTF-8 length of a namespace's name.
    package static let realtimeNameBytesMax = 100

    // MARK: Realtime Database: sockets and streams (ours where no source is given)

    /// Unread output of all clients together.
    package static let realtimeUnreadBytesMax = 64 << 20
    /// The same for one account.
    static let realtimeUnreadShareBytesMax = 48 << 20
    /// Bytes that a connection may have although its account has used its share.
    static let realtimeUnreadSmallBytesMax = 64 << 10
}
