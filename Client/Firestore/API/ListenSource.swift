/// The source of a listener.
public enum ListenSource: UInt, Sendable {
    /// First the cache, then the server.
    case `default` = 0
    /// The cache only, local writes included.
    case cache = 1
}
