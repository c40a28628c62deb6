import HearthModel

/// The work that one step of a feed's reader may do. It belongs to the step.
package final class FeedBudget {
    /// Records that the step may still read, of a kilobyte each; a larger one counts as several.
    private var recordsLeft: Int
    /// Changes of single documents that it may still walk over; nil for any number.
    private var stepsLeft: Int?
    private let check: () throws(Status) -> Void
    private var paid = 0

    private static let checkInterval = 256

    /// A step of some milliseconds, for threads that have no more time.
    package static func brief() -> FeedBudget {
        FeedBudget(records: 4096, steps: 4096) { () throws(Status) in }
    }

    /// A step that may take its time.
    /// - Parameter check: called every few hundred records: gives way to others; throws to end the step.
    package static func long(_ check: @escaping () throws(Status) -> Void) -> FeedBudget {
        FeedBudget(records: 16_384, steps: nil, check)
    }

    init(records: Int, steps: Int?, _ check: @escaping () throws(Status) -> Void) {
        recordsLeft = records
        stepsLeft = steps
        self.check = check
    }

    var isSpent: Bool { recordsLeft <= 0 }

    func payRecord() throws(Status) {
        recordsLeft -= 1
        try pay()
    }

    /// Pays for what is read besides the key of a record.
    func payBytes(_ count: Int) { recordsLeft -= count >> 10 }

    /// - Throws: `WorkMeter.isHeavier` when the step has walked too far.
    func payStep() throws(Status) {
        if let left = stepsLeft {
            if left <= 0 { throw WorkMeter.isHeavier }
            stepsLeft = left - 1
        }
        try pay()
    }

    private func pay() throws(Status) {
        paid += 1
        if paid.isMultiple(of: Self.checkInterval) { try check() }
    }
}
