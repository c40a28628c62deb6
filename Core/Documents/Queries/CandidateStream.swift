import HearthModel

/// A candidate document of a query, known by its key; its content is read on demand.
struct Candidate {
    var key: [UInt8]
    /// Its position in the query's order, or the known start of it; empty when it is not needed.
    var orderKey: [UInt8]
    /// Whether `orderKey` is whole and exact.
    var isComplete: Bool
    var document: StoredDocument?
}

/// A sequence of candidates in the order of a query.
class CandidateStream {
    func next() throws(Status) -> Candidate? { nil }
}
