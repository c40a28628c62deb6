/// The source of `getDocument` and `getDocuments`.
public enum FirestoreSource: UInt, Sendable {
    /// The server, or the cache when the server cannot be reached.
    case `default` = 0
    /// The server only.
    case server = 1
    /// The cache only.
    case cache = 2
}
