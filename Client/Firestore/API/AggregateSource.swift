/// The source of an aggregation.
public enum AggregateSource: UInt, Sendable {
    /// The server. Documents are not transferred.
    case server = 0
    /// The documents in the cache on this device, local writes included. Apple's library has no such source.
    case cache = 1
}
