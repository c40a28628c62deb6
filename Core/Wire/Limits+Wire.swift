import HearthModel

/// The bounds of this module and of the modules that build upon it. A bound marked "ours" guards memory or time and is
/// not part of the service's contract.
extension Limits {
    // MARK: Documents and values

    /// Levels that a decoder reads before it rejects a message (ours; above `valueDepthMax`, so that validation can
    /// name the field).
    package static let messageDepthMax = 100

    // MARK: Requests

    /// Labels of a stream (ours).
    package static let labelsMax = 1000
    /// Field transforms on one document in one commit.
    package static let transformsPerDocumentMax = 500

    // MARK: Queries

    /// Values of `IN` and `ARRAY_CONTAINS_ANY`.
    static let inValuesMax = 30
    /// Values of `NOT_IN`.
    static let notInValuesMax = 10
    /// Aggregations of one aggregation query.
    static let aggregationsMax = 5
    /// The `limit` of a nearest-neighbour search.
    static let findNearestLimitMax = 1000
    /// Nesting of a filter tree (ours).
    package static let filterDepthMax = 100
}
