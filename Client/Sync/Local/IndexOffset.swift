import HearthModel

/// The position up to which something was read: documents by (read time, key), overlays by batch id.
struct IndexOffset: Sendable, Equatable {
    var readTime: Timestamp
    /// Empty: before all documents of the read time.
    var key: ResourcePath
    var largestBatchID: Int

    static let none = IndexOffset(readTime: .none, key: ResourcePath(), largestBatchID: MutationBatch.unknownID)
}
