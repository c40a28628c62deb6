import HearthConcurrency
import HearthModel

/// Which events of one trigger are sent, and when: a state machine without I/O, whose time is a parameter.
///
/// The events are in a queue that is stored with the data, in the order of commits. A part of it is here, in lanes: one for
/// each document (or location), since a document's events are sent one after the other. A lane has the event that is sent
/// next, its head, and some of those behind it; what the lanes have no space for is read again when a lane has got so far.
///
/// - An attempt that fails is repeated after a pause that doubles (`DeliveryTerms`).
/// - An endpoint that can't be connected fails as a whole: one attempt after the other is made as a probe, and none of them
///   counts.
///
/// The owner reads the queue when `wantsEvents` says so, sends what `next` returns, reports each answer to `ended`, and
/// removes from the queue what is settled. Nothing is read twice but what was left out, so removal may be late.
package struct Delivery {
    package struct Event: Hashable, Sendable {
        /// Of the commit.
        package let version: Int64
        /// Of the document or location.
        package let key: [UInt8]

        package init(version: Int64, key: [UInt8]) {
            self.version = version
            self.key = key
        }
    }

    package enum Answer: Sendable, Equatable {
        case acknowledged
        /// - retryAfterNanoseconds: what the endpoint asked for.
        case failed(DeliveryFailure, retryAfterNanoseconds: UInt64? = nil)
        case unreachable(DeliveryFailure)
        /// The event couldn't be read, for a reason that may pass.
        case unsent
        /// The event can never be sent.
        case impossible(DeliveryFailure)
        /// The event is not in the queue any more: everything was deleted.
        case gone
    }

    /// An event that is not sent any more.
    package struct Settled: Sendable, Equatable {
        package enum Result: Sendable, Equatable {
            case delivered
            /// By a trigger that repeats no attempt that was answered.
            case dropped(DeliveryFailure)
            case dead(attempts: Int, DeliveryFailure)
            /// It was deleted meanwhile.
            case gone
        }

        package let event: Event
        package let result: Result
    }

    /// How many lanes there are at most, and how many events one has behind its head.
    package struct Bounds: Sendable {
        package var lanes: Int
        package var followers: Int

        package init(lanes: Int = 4096, followers: Int = 32) {
            self.lanes = lanes
            self.followers = followers
        }
    }

    package private(set) var terms: DeliveryTerms
    private let bounds: Bounds
    /// A factor around 1 for pauses.
    private let jitter: () -> Double
    private var lanes: [[UInt8]: Lane] = [:]
    private var ready = Queue<Lane>()
    private var waiting = TimerHeap<Lane>()
    /// Lanes that need events that were left out.
    private var starved: [Lane] = []
    private let endpoint: DeliveryEndpoint
    /// Everything in the queue up to here was read.
    private var read: Event?
    private var mayHaveMore = true

    /// - Parameter endpoint: shared by the deliveries of a trigger, one for each database.
    package init(
        _ terms: DeliveryTerms, to endpoint: DeliveryEndpoint = DeliveryEndpoint(), bounds: Bounds = Bounds(),
        jitter: @escaping () -> Double = { Double.random(in: 0.8...1.2) }
    ) {
        self.terms = terms
        self.endpoint = endpoint
        self.bounds = bounds
        self.jitter = jitter
        endpoint.concurrency = terms.concurrency
    }

    private final class Lane: HeapTimer {
        let id: [UInt8]
        let key: [UInt8]
        var head: Int64
        /// Those of the head that were answered.
        var attempts = 0
        var followers = Queue<Int64>()
        /// The first event that is in the queue, but not in `followers`.
        var leftOut: Int64?
        var isSending = false
        /// When the head is sent again.
        var deadline: UInt64 = 0
        var heapIndex = -1
        /// Why the last attempt failed.
        var failure: DeliveryFailure?

        init(_ id: [UInt8], _ event: Event) {
            self.id = id
            key = event.key
            head = event.version
        }

        var event: Event { Event(version: head, key: key) }
    }

    // MARK: Reading the queue

    /// More events were put into the queue.
    package mutating func notify() { mayHaveMore = true }

    /// Takes other terms for what is not sent yet. The order stays: it's part of what a lane is.
    package mutating func change(_ terms: DeliveryTerms) {
        precondition(terms.isOrdered == self.terms.isOrdered, "the order of a trigger does not change")
        self.terms = terms
        endpoint.concurrency = terms.concurrency
    }

    /// After which event the owner should read the queue; nil when it should not.
    package var wantsEvents: (after: Event?, countMax: Int)? {
        guard mayHaveMore, !terms.isPaused else { return nil }
        let count = min(bounds.lanes - lanes.count, max(lanes.isEmpty ? 1 : 0, endpoint.lanesLeft))
        return count > 0 ? (read, count) : nil
    }

    /// Events of the queue in their order, behind the last one that was taken.
    /// - Parameter isEnd: whether there are no more.
    package mutating func take(_ events: [Event], isEnd: Bool) {
        for event in events {
            let id = laneID(event)
            if let lane = lanes[id] {
                append(event.version, to: lane)
            } else {
                let lane = Lane(id, event)
                lanes[id] = lane
                endpoint.changeLanes(by: 1)
                ready.append(lane)
            }
        }
        if let last = events.last { read = last }
        if isEnd { mayHaveMore = false }
    }

    private func append(_ version: Int64, to lane: Lane) {
        if lane.leftOut != nil { return }
        if lane.followers.count < bounds.followers {
            lane.followers.append(version)
        } else {
            lane.leftOut = version
        }
    }

    private func laneID(_ event: Event) -> [UInt8] {
        if terms.isOrdered { return event.key }
        return withUnsafeBytes(of: event.version.bigEndian) { Array($0) } + event.key
    }

    /// The events of one key that the owner should read: from a version on, up to the last event that was taken.
    package var wantsFollowers: (key: [UInt8], from: Int64, through: Event, countMax: Int)? {
        guard let lane = starved.last, let from = lane.leftOut, let read else { return nil }
        return (lane.key, from, read, bounds.followers)
    }

    /// What `wantsFollowers` asked for.
    /// - Parameter versions: at most so many as asked for; fewer when there are no more.
    package mutating func takeFollowers(_ versions: [Int64]) {
        guard let lane = starved.popLast() else { return }
        guard let first = versions.first else { return drop(lane) }
        lane.head = first
        for version in versions.dropFirst() { lane.followers.append(version) }
        lane.leftOut = versions.count == bounds.followers ? versions.last.map { $0 + 1 } : nil
        ready.append(lane)
    }

    private mutating func drop(_ lane: Lane) {
        lanes[lane.id] = nil
        endpoint.changeLanes(by: -1)
    }

    /// Whether there are events that are not settled.
    package var isWaiting: Bool { !lanes.isEmpty }

    /// Forgets all events: nothing is read or sent any more. Answers to what was sent are still to be reported.
    package mutating func end() {
        endpoint.changeLanes(by: -lanes.count)
        lanes = [:]
        ready = Queue()
        waiting.removeAll()
        starved = []
        mayHaveMore = false
    }

    // MARK: Sending

    /// Takes up what waited for another attempt, and is due.
    package mutating func wake(_ now: UInt64) {
        while let lane = waiting.popDue(now) { ready.append(lane) }
    }

    /// Whether there is something to send or to read before, as soon as the endpoint may have it.
    package var hasMore: Bool {
        !terms.isPaused && (!ready.isEmpty || !starved.isEmpty || wantsEvents != nil)
    }

    /// The next event to send now, and the number of the attempt, from 1; nil when there is none.
    package mutating func next(_ now: UInt64) -> (event: Event, attempt: Int)? {
        wake(now)
        guard !terms.isPaused, endpoint.mayBegin(now), let lane = ready.popFirst() else { return nil }
        endpoint.begin()
        lane.isSending = true
        return (lane.event, lane.attempts + 1)
    }

    /// When `wake` has something to do next.
    package var retryTime: UInt64? { terms.isPaused ? nil : waiting.earliestDeadline }

    /// What became of an attempt.
    /// - Parameter expired: events of commits before this version are not repeated any more.
    /// - Returns: nil when the event is sent again.
    package mutating func ended(_ event: Event, _ answer: Answer, _ now: UInt64, expired: Int64) -> Settled? {
        endpoint.ended(answer, now)
        guard let lane = lanes[laneID(event)], lane.isSending, lane.head == event.version else { return nil }
        lane.isSending = false
        switch answer {
        case .unsent:
            ready.prepend(lane)
            return nil
        case .gone: return settle(lane, .gone)
        case .impossible(let failure): return settle(lane, .dead(attempts: lane.attempts, failure))
        case .acknowledged: return settle(lane, .delivered)
        case .unreachable(let failure):
            lane.failure = failure
            if event.version < expired { return settle(lane, .dead(attempts: lane.attempts, failure)) }
            ready.prepend(lane)
            return nil
        case .failed(let failure, let retryAfter):
            lane.failure = failure
            lane.attempts += 1
            if !terms.repeatsAnswers { return settle(lane, .dropped(failure)) }
            if lane.attempts >= terms.attemptsMax ?? .max || event.version < expired {
                return settle(lane, .dead(attempts: lane.attempts, failure))
            }
            lane.deadline = now + terms.pause(after: lane.attempts, retryAfter, jitter())
            waiting.insert(lane)
            return nil
        }
    }

    private mutating func settle(_ lane: Lane, _ result: Settled.Result) -> Settled {
        let event = lane.event
        lane.attempts = 0
        lane.failure = nil
        if let next = lane.followers.popFirst() {
            lane.head = next
            ready.append(lane)
        } else if lane.leftOut != nil {
            starved.append(lane)
        } else {
            drop(lane)
        }
        return Settled(event: event, result: result)
    }

    /// Ends what waits and is too old, also while the endpoint can't be reached.
    package mutating func expire(before version: Int64) -> [Settled] {
        var settled: [Settled] = []
        let old = lanes.values.filter { !$0.isSending && $0.head < version }
        if old.isEmpty { return [] }
        let isOld = Set(old.map { ObjectIdentifier($0) })
        var kept = Queue<Lane>()
        while let lane = ready.popFirst() { if !isOld.contains(ObjectIdentifier(lane)) { kept.append(lane) } }
        ready = kept
        let isStarved = Set(starved.map { ObjectIdentifier($0) })
        for lane in old where !isStarved.contains(ObjectIdentifier(lane)) {
            waiting.remove(lane)
            let failure = lane.failure ?? DeliveryFailure(.unreachable, "Not sent.")
            // What is too old behind the head ends with it.
            while let next = lane.followers.first, next < version {
                settled.append(Settled(event: lane.event, result: .dead(attempts: lane.attempts, failure)))
                lane.attempts = 0
                lane.head = next
                _ = lane.followers.popFirst()
            }
            settled.append(settle(lane, .dead(attempts: lane.attempts, failure)))
        }
        return settled
    }
}

/// Why an attempt failed.
package struct DeliveryFailure: Error, Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        /// The endpoint's answer.
        case status(Int)
        case timeout
        /// The answer was not whole, or no HTTP.
        case cut
        case unreachable
    }

    package let kind: Kind
    package let message: String

    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    /// As administrators see it.
    package var status: String {
        switch kind {
        case .status(let number): String(number)
        case .timeout: "timeout"
        case .cut: "cut"
        case .unreachable: "unreachable"
        }
    }
}

/// How one trigger's events are sent.
package struct DeliveryTerms: Sendable, Equatable {
    /// Whether a document's events are sent one after the other.
    package var isOrdered = true
    /// Requests under way at most.
    package var concurrency = 16
    package var minBackoffNanoseconds: UInt64 = 1_000_000_000
    package var maxBackoffNanoseconds: UInt64 = 600_000_000_000
    /// Attempts of an event that were answered; nil for any number.
    package var attemptsMax: Int?
    /// Whether an attempt that was answered otherwise than with success is made again.
    package var repeatsAnswers = true
    package var isPaused = false

    package init() {}

    /// The pause before the next attempt.
    /// - Parameters:
    ///   - attempts: that failed.
    ///   - retryAfter: what the endpoint asked for, which counts up to the longest pause.
    func pause(after attempts: Int, _ retryAfter: UInt64?, _ jitter: Double) -> UInt64 {
        let doubled = minBackoffNanoseconds.multipliedReportingOverflow(by: 1 << UInt64(min(attempts - 1, 40)))
        let pause = doubled.overflow ? maxBackoffNanoseconds : min(maxBackoffNanoseconds, doubled.partialValue)
        return max(UInt64(Double(pause) * jitter), min(retryAfter ?? 0, maxBackoffNanoseconds))
    }
}
