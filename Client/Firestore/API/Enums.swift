/// Where `getDocument` and `getDocuments` read.
public enum FirestoreSource: UInt, Sendable {
    /// The server, and the cache when it can't be reached.
    case `default` = 0
    case server = 1
    case cache = 2
}

/// Where a listener reads.
public enum ListenSource: UInt, Sendable {
    /// The cache first, then the server.
    case `default` = 0
    case cache = 1
}

/// Where an aggregation is computed.
public enum AggregateSource: UInt, Sendable {
    case server = 0
    /// On this device, over the documents in the cache, local writes included. Apple's library has no such source.
    case cache = 1
}

/// What stands for a server timestamp that the server hasn't given yet.
public enum ServerTimestampBehavior: Int, Sendable {
    /// Null.
    case none = 0
    /// The time of the local write.
    case estimate = 1
    /// The value that the field had before; null when it had none.
    case previous = 2
}

public enum DocumentChangeType: Int, Sendable {
    case added = 0
    case modified = 1
    case removed = 2
}

public enum LoadBundleTaskState: Int, Sendable {
    case error = 0
    case inProgress = 1
    case success = 2
}
