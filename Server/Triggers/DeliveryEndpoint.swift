/// Where the events of a trigger go: what its deliveries know of it together. Belongs to their owner's thread.
package final class DeliveryEndpoint {
    /// Requests under way at most.
    package var concurrency: Int
    /// Whether it can't be reached.
    package private(set) var isDown = false
    private var isProbing = false
    /// When the next probe may be made.
    private var probeAt: UInt64 = 0
    private var pause: UInt64 = 0
    private var used = DeliveryBudget.Amounts()
    private let budget: DeliveryBudget
    /// Lanes whose heads have failed.
    var failedLanes = 0
    /// Requests under way for events that have failed before.
    private var repeating = 0

    private var lastFailure: DeliveryFailure?

    private static let firstPause: UInt64 = 500_000_000
    private static let lastPause: UInt64 = 10_000_000_000

    package init(_ budget: DeliveryBudget = DeliveryBudget(), concurrency: Int = DeliveryTerms().concurrency) {
        self.budget = budget
        self.concurrency = concurrency
    }

    /// Requests under way.
    package var sending: Int { used.requests }

    // MARK: What it may have

    /// Whether another request may begin.
    package func mayBegin(_ now: UInt64) -> Bool {
        sending < concurrency && !isShort && (!isDown || !isProbing && now >= probeAt)
    }

    /// Whether it has its share of what is for all: it may go on when others have ended something. One request each may have
    /// always: what others have may take as long as their time allows.
    package var isShort: Bool {
        used.requests > 0 && (used.requests >= budget.free.requests || used.bodyBytes >= budget.free.bodyBytes)
    }

    /// Whether an event that has failed before may be sent: a quarter of the requests is for others, however long those
    /// take that fail.
    var mayRepeat: Bool {
        let most = min(concurrency, (used.requests + budget.free.requests + 1) / 2)
        return repeating < max(1, most - (most + 3) / 4)
    }

    /// When a probe may be made, if nothing else happens before; nil: it's not waited for.
    package var probeTime: UInt64? { isDown && !isProbing ? probeAt : nil }

    /// How many lanes its deliveries may have in addition.
    var lanesLeft: Int { max(0, (budget.free.lanes - used.lanes + 1) / 2) }

    /// Whether another lane may wait for its time in memory: half of what its deliveries may have is for those.
    var mayWait: Bool { 4 * failedLanes <= used.lanes + budget.free.lanes }

    /// Whether its deliveries may remember the attempts of another event.
    var mayRemember: Bool { used.attempts < budget.free.attempts }

    func changeAttempts(by count: Int) {
        used.attempts += count
        budget.free.attempts -= count
    }

    func changeLanes(by count: Int) {
        used.lanes += count
        budget.free.lanes -= count
    }

    /// The body of a request that is under way; less than nothing when it has ended.
    package func changeBodyBytes(by count: Int) {
        used.bodyBytes += count
        budget.free.bodyBytes -= count
    }

    // MARK: What becomes of requests

    func begin(isRepeated: Bool) {
        used.requests += 1
        budget.free.requests -= 1
        if isRepeated { repeating += 1 }
        if isDown { isProbing = true }
    }

    func ended(_ answer: Delivery.Answer, _ now: UInt64, isRepeated: Bool) {
        used.requests -= 1
        budget.free.requests += 1
        if isRepeated { repeating -= 1 }
        switch answer {
        // What was begun was no attempt.
        case .unsent, .gone, .impossible: isProbing = false
        case .acknowledged, .failed:
            isDown = false
            isProbing = false
        case .unreachable: failed(now)
        }
    }

    /// The same failure, in the memory of the last one when they are equal: most of an endpoint's are.
    func shared(_ failure: DeliveryFailure) -> DeliveryFailure {
        if let lastFailure, lastFailure == failure { return lastFailure }
        lastFailure = failure
        return failure
    }

    private func failed(_ now: UInt64) {
        // Requests that were begun before the first failure fail soon after it: one failure.
        if isDown, !isProbing { return }
        pause = isDown ? min(Self.lastPause, pause * 2) : Self.firstPause
        isDown = true
        isProbing = false
        probeAt = now + pause
    }

    /// It has another address, of which nothing is known; or somebody knows that it can be reached.
    package func moved() {
        isDown = false
        isProbing = false
    }
}

/// What all deliveries of a server have together. Belongs to their owner's thread.
///
/// An endpoint may have more of something while it has less of it than is free. So one alone gets half, each of n gets an equal
/// part of n + 1, and something is left for another one, however long requests take and endpoints are down.
package final class DeliveryBudget {
    package struct Amounts: Sendable {
        /// Requests under way, and one more for each endpoint.
        package var requests = 0
        /// The bodies of these, and one body more for each endpoint.
        package var bodyBytes = 0
        /// Of documents (or locations) whose events are known. A delivery without any gets one all the same: it could
        /// not go on.
        package var lanes = 0
        /// Of events that have failed and are not in memory, what is known of their attempts.
        package var attempts = 0

        package init(requests: Int = 0, bodyBytes: Int = 0, lanes: Int = 0, attempts: Int = 0) {
            self.requests = requests
            self.bodyBytes = bodyBytes
            self.lanes = lanes
            self.attempts = attempts
        }

        /// More requests than a server may have triggers; lanes of about 1 KB; attempts of about 64 bytes.
        package static let all = Amounts(
            requests: 1024, bodyBytes: 128 << 20, lanes: 1 << 16, attempts: 1 << 20)
    }

    package fileprivate(set) var free: Amounts

    package init(_ all: Amounts = .all) { free = all }
}
