import HearthModel

/// A write that is queued or undecided.
struct TreeRequest: Sendable {
    /// Identifies it while it is undecided.
    let ticket: UInt64
    var write: TreeWrite
    let sizeBytes: Int
    let cost: Int
    /// Whether it has so many nodes that it must be made in slices.
    let isLarge: Bool
    let requester: Requester
    let completion: @Sendable (TreeOutcome) -> Void

    /// The reason why it cannot be made, if one was found beside the writer.
    var failure: Status?
    /// The result of comparing the condition's hash beside the writer.
    var comparison: TreeComparison?
    /// The result of evaluating its guard beside the writer.
    var judgement: TreeJudgement?
    /// Whether its guard must be evaluated there, and no hash compared.
    var isToBeJudged = false
    /// Its records, when they are staged.
    var replacement: TreeReplacement?
    /// The number of attempts beside the writer.
    var attempts = 0

    func failing(_ status: Status) -> TreeRequest {
        var request = self
        request.failure = status
        return request
    }
}
