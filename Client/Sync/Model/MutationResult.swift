import HearthModel

/// The server's answer to one mutation of a batch.
struct MutationResult: Sendable {
    /// The write's update time, or the commit time where the write has none.
    var version: Timestamp
    var transformResults: [Value]
}
