/// The source of `getDocument` and `getDocuments`.
public enum FirestoreSource: UInt, Sendable {
    /// The server, or the cache when the server cannot be reached.
    case `default` = 0
    /// The server only.
    case server = 1
    /// The cache only.
    case cache = 2
}

/// The source of a listener.
public enum ListenSource: UInt, Sendable {
    /// First the cache, then the server.
    case `default` = 0
    /// The cache only, local writes included.
    case cache = 1
}

/// The source of an aggregation.
public enum AggregateSource: UInt, Sendable {
    /// The server. Documents are not transferred.
    case server = 0
    /// The documents in the cache on this device, local writes included. Apple's library has no such source.
    case cache = 1
}

/// The value of a server timestamp before the server sets it.
public enum ServerTimestampBehavior: Int, Sendable {
    /// Null.
    case none = 0
    /// The local time of the write.
    case estimate = 1
    /// The previous value of the field; null when it had none.
    case previous = 2
}

/// The kind of a document's change between two snapshots.
public enum DocumentChangeType: Int, Sendable {
    /// The document was added to the result.
    case added = 0
    /// The document changed and remains in the result.
    case modified = 1
    /// The document was removed from the result.
    case removed = 2
}

/// The state of loading a bundle.
public enum LoadBundleTaskState: Int, Sendable {
    /// The loading failed.
    case error = 0
    /// The loading continues.
    case inProgress = 1
    /// The loading is complete.
    case success = 2
}
