import HearthConcurrency

/// Which events of one trigger are sent, and when: a state machine without I/O, whose time is a parameter.
///
/// The events are in a queue that is stored with the data, in the order of commits. A part of it is here, in lanes: one for
/// each document (or location), since a document's events are sent one after the other. A lane has the event that is sent
/// next, its head, and some of those behind it. No more of the queue is read than keeps the endpoint busy; what lanes have
/// no space for is left out, and read a second time when one of them has got so far, for all of them at once.
///
/// - An attempt that fails is repeated after a pause that doubles (`DeliveryTerms`). Lanes that wait for that are at most half of
///   all; others are given up, and their events read again (`DeliveryParking`): so those that fail keep no others from being sent.
/// - An endpoint that can't be connected fails as a whole: one attempt after the other is made as a probe, and none of them
///   counts.
///
/// The owner reads the queue when `wantsEvents` says so, sends what `next` returns, reports each answer to `ended`,
/// removes from the queue what is settled, and reports that to `stored`: until then it's passed over.
///
/// Events may be put into the queue before what was read already: `readAnew` begins again at its start. What is being sent
/// then keeps its lane, in which those that were put before wait for it; everything else is read again.
///
/// Its parts: the lanes in memory (`DeliveryLanes`), which of them are sent (`DeliverySchedule`), the second reading for what they
/// had no space for (`DeliveryPass`), documents that failed and are not in memory (`DeliveryParking`, `DeliveryAttemptTable`).
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

        /// Whether it is the other one, or before it in the queue.
        func isAtMost(_ other: Event) -> Bool {
            version != other.version ? version < other.version : !other.key.lexicographicallyPrecedes(key)
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

    /// How many lanes there are at most, and how many events each may have behind its head. Few lanes may have more: as
    /// many together as that. Of `attempts` events without a lane it is known how often they were sent: documents that fail, and
    /// are not in memory, are at most so many.
    package struct Bounds: Sendable {
        package var lanes: Int
        package var followers: Int
        package var attempts: Int

        /// - Parameter attempts: 64 for each lane without.
        package init(lanes: Int = 4096, followers: Int = 32, attempts: Int? = nil) {
            self.lanes = lanes
            self.followers = followers
            self.attempts = attempts ?? 64 * lanes
        }
    }

    /// What is read of the queue: what was not read yet, or some of what was.
    private enum Reading {
        case queue
        case pass
        case round
    }

    typealias Lane = DeliveryLane

    package private(set) var terms: DeliveryTerms
    /// A factor around 1 for pauses.
    private let jitter: () -> Double
    let endpoint: DeliveryEndpoint
    /// Of a lane's id, for what is parked.
    let hash: ([UInt8]) -> UInt64
    var lanes: DeliveryLanes
    var schedule: DeliverySchedule
    /// Of those that are being sent, those that have failed before.
    private var repeated: Set<Event> = []
    var pass: DeliveryPass?
    var parking = DeliveryParking()
    /// Of events that are or were parked, or are read again.
    var attempts: DeliveryAttemptTable
    /// Everything in the queue up to here was read.
    private(set) var read: Event?
    private var mayHaveMore = true
    private var wasRound = false
    /// Settled events that the queue may still have.
    var unstored: Set<Event> = []
    /// Events of commits before this version are too old.
    private(set) var expired: Int64 = 0
    /// Of the last `wake`.
    private(set) var now: UInt64 = 0

    /// - Parameters:
    ///   - endpoint: shared by the deliveries of a trigger, one for each database.
    ///   - hash: of the bytes that name a document.
    package init(
        _ terms: DeliveryTerms, to endpoint: DeliveryEndpoint = DeliveryEndpoint(), bounds: Bounds = Bounds(),
        jitter: @escaping () -> Double = { Double.random(in: 0.8...1.2) },
        hash: @escaping ([UInt8]) -> UInt64 = Delivery.hash
    ) {
        self.terms = terms
        self.endpoint = endpoint
        self.jitter = jitter
        self.hash = hash
        lanes = DeliveryLanes(bounds, endpoint)
        schedule = DeliverySchedule(endpoint)
        attempts = DeliveryAttemptTable(countMax: bounds.attempts, endpoint)
        endpoint.concurrency = terms.concurrency
    }

    package static func hash(_ bytes: [UInt8]) -> UInt64 {
        var hasher = Hasher()
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        return UInt64(bitPattern: Int64(hasher.finalize()))
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

    /// After which event the owner should read the queue; nil when it should not. In parts: the owner sends what there is
    /// before it asks again.
    package var wantsEvents: (after: Event?, countMax: Int)? {
        switch reading {
        case nil: nil
        case .pass: (pass?.after ?? Event(version: passStart, key: []), DeliveryPass.countMax)
        case .round: (parking.round?.after, roundCount)
        case .queue: (read, queueCount)
        }
    }

    private var reading: Reading? {
        if terms.isPaused { return nil }
        if pass != nil || lanes.starvedCount > 0 { return .pass }
        // One after the other when there are both.
        if roundCount > 0, !wasRound || queueCount == 0 { return .round }
        return queueCount > 0 ? .queue : nil
    }

    /// How many events are to be read next that were not read yet.
    private var queueCount: Int {
        guard mayHaveMore, schedule.freshCount < terms.concurrency else { return 0 }
        // One all the same when only such as have failed have lanes, and one more that fails can be parked.
        let goesOn = lanes.count == schedule.failedCount + repeated.count && (lanes.isEmpty || attempts.hasSpace)
        let laneSpace = laneSpace(atLeast: goesOn ? 1 : 0)
        if parking.isEmpty { return laneSpace }
        // Rounds have their part of the lanes, also when no more can be parked.
        let countMax = lanes.bounds.lanes
        let left = countMax - (countMax + 5) / 8 - lanes.count
        return min(laneSpace, max(1, countMax / 4) - schedule.freshCount, left)
    }

    /// How many lanes there may be in addition.
    /// - Parameter count: so many also when the endpoint has no more for its deliveries.
    func laneSpace(atLeast count: Int) -> Int {
        min(lanes.bounds.lanes - lanes.count, max(count, endpoint.lanesLeft))
    }

    /// What `wantsEvents` asked for, in the order of the queue.
    /// - Parameter isEnd: whether there are no more.
    /// - Returns: those that were too old.
    package mutating func take(_ events: [Event], isEnd: Bool) -> [Settled] {
        let reading = reading
        wasRound = reading == .round
        switch reading {
        case .round: return takeForRound(events, isEnd: isEnd)
        case .pass: takeForPass(events, isEnd: isEnd)
        case .queue, nil: takeNew(events, isEnd: isEnd)
        }
        return []
    }

    private mutating func takeNew(_ events: [Event], isEnd: Bool) {
        for event in events where !unstored.contains(event) {
            let id = laneID(event)
            if let lane = lanes[id] {
                if !lane.isSending(event.version), !parking.isGathering(lane) { lanes.append(event.version, to: lane) }
            } else if parking.isEmpty || !parking.contains(hash(id)) {
                begin(event.version, lanes.insert(id, event))
            }
        }
        if let last = events.last { read = last }
        if isEnd { mayHaveMore = false }
    }

    func laneID(_ event: Event) -> [UInt8] {
        if terms.isOrdered { return event.key }
        return withUnsafeBytes(of: event.version.bigEndian) { Array($0) } + event.key
    }

    /// Has an event sent next of its lane: now, or when the pause after its last attempt is over.
    mutating func begin(_ version: Int64, _ lane: Lane) {
        lane.head = version
        lane.attempts = attempts[lane.event]
        if lane.attempts.count > 0, lane.attempts.deadline > now { wait(lane) } else { schedule.append(lane) }
    }

    /// Has the head of a lane wait for its time: in memory, unless too many do.
    private mutating func wait(_ lane: Lane) {
        if schedule.failedCount < lanes.bounds.lanes / 2, endpoint.mayWait { return schedule.wait(lane) }
        if attempts.insert(lane.attempts, of: lane.event) { park(lane) } else { schedule.wait(lane) }
    }

    /// Settled events were removed from the queue.
    package mutating func stored(_ settled: [Settled]) { for one in settled { unstored.remove(one.event) } }

    /// Reads the queue from its start: events were put into it behind which it was read already.
    package mutating func readAnew() {
        read = nil
        pass = nil
        mayHaveMore = true
        schedule.removeAll()
        parking.removeAll()
        lanes.starvedCount = 0
        for lane in Array(lanes.values) {
            if !lane.isStarved, !lane.isSending { remember(lane) }
            lanes.clear(lane)
            lane.isHungry = false
            if !lane.isSending { lanes.remove(lane) }
        }
    }

    /// Keeps what is known of the head's attempts until it is read again.
    private mutating func remember(_ lane: Lane) {
        if lane.attempts.failure != nil { _ = attempts.insert(lane.attempts, of: lane.event) }
    }

    /// Whether there are events that are not settled.
    package var isWaiting: Bool { !lanes.isEmpty || !parking.isEmpty }

    /// Forgets all events: nothing is read or sent any more. Answers to what was sent are still to be reported.
    package mutating func end() {
        lanes.removeAll()
        schedule.removeAll()
        parking.removeAll()
        attempts.removeAll()
        pass = nil
        mayHaveMore = false
        unstored = []
    }

    // MARK: Sending

    /// Takes up what waited for another attempt, and is due.
    package mutating func wake(_ now: UInt64) {
        self.now = now
        schedule.wake(now)
        if let time = parking.roundTime(expired: expired), time <= now { parking.beginRound(now) }
    }

    /// Has everything that waits for another attempt sent now, and its pauses begin anew. How many attempts there were stays.
    package mutating func retry() {
        schedule.wake(.max)
        for lane in lanes.values { lane.attempts.pardon() }
        attempts.pardon()
        parking.retry()
    }

    /// Whether there is something to send or to read before, as soon as the endpoint may have it.
    package var hasMore: Bool {
        !terms.isPaused && (schedule.hasAny || wantsEvents != nil)
    }

    /// Whether what has failed waits until the endpoint may have more of it.
    var isHeld: Bool { !terms.isPaused && schedule.againCount > 0 && !endpoint.mayRepeat }

    /// The next event to send now, and the number of the attempt, from 1; nil when there is none.
    package mutating func next(_ now: UInt64) -> (event: Event, attempt: Int)? {
        wake(now)
        guard !terms.isPaused, endpoint.mayBegin(now), let lane = schedule.popFirst() else { return nil }
        let isRepeated = lane.attempts.count > 0
        if isRepeated { repeated.insert(lane.event) }
        endpoint.begin(isRepeated: isRepeated)
        lane.isSending = true
        return (lane.event, lane.attempts.count + 1)
    }

    /// When `wake` has something to do next.
    package var retryTime: UInt64? {
        if terms.isPaused { return nil }
        let time = min(schedule.earliestDeadline ?? .max, parking.roundTime(expired: expired) ?? .max)
        return time < .max ? time : nil
    }

    /// What became of an attempt.
    /// - Parameter expired: events of commits before this version are not repeated any more.
    /// - Returns: nil when the event is sent again.
    package mutating func ended(_ event: Event, _ answer: Answer, _ now: UInt64, expired: Int64) -> Settled? {
        endpoint.ended(answer, now, isRepeated: repeated.remove(event) != nil)
        guard let lane = lanes[laneID(event)], lane.isSending, lane.head == event.version else { return nil }
        lane.isSending = false
        switch answer {
        case .unsent: repeatHead(lane)
        case .gone: return settle(lane, .gone)
        case .impossible(let failure): return settle(lane, .dead(attempts: lane.attempts.count, failure))
        case .acknowledged: return settle(lane, .delivered)
        case .unreachable(let failure):
            lane.attempts.failure = endpoint.shared(failure)
            if event.version < expired { return settle(lane, .dead(attempts: lane.attempts.count, failure)) }
            repeatHead(lane)
        case .failed(let failure, let retryAfter):
            lane.attempts.failure = endpoint.shared(failure)
            lane.attempts.count += 1
            let count = lane.attempts.count
            if !terms.repeatsAnswers { return settle(lane, .dropped(failure)) }
            if count >= terms.attemptsMax ?? .max || event.version < expired {
                return settle(lane, .dead(attempts: count, failure))
            }
            lane.attempts.deadline = now + terms.pause(after: count - lane.attempts.pardoned, retryAfter, jitter())
            repeatHead(lane, isPausing: true)
        }
        return nil
    }

    /// Sends the head of a lane again, unless events were put before it meanwhile.
    /// - Parameter isPausing: whether it waits for its time.
    private mutating func repeatHead(_ lane: Lane, isPausing: Bool = false) {
        if isOvertaken(lane) {
            remember(lane)
            advance(lane)
        } else if isPausing {
            wait(lane)
        } else {
            schedule.prepend(lane)
        }
    }

    /// Whether other events of the lane come before its head, or may come: the queue was read anew while it was sent. The
    /// head is then among those that are still to be read, that are left out, or that follow.
    private mutating func isOvertaken(_ lane: Lane) -> Bool {
        guard let read, lane.event.isAtMost(read) else { return true }
        if let leftOut = lane.leftOut, leftOut.first <= lane.head {
            lane.leftOut = (leftOut.first, max(leftOut.last, lane.head))
            return true
        }
        guard let first = lane.followers.first, first < lane.head else { return false }
        lanes.followHead(lane)
        return true
    }

    private mutating func settle(_ lane: Lane, _ result: Settled.Result) -> Settled {
        let settled = settle(lane.event, result)
        advance(lane)
        return settled
    }

    mutating func settle(_ event: Event, _ result: Settled.Result) -> Settled {
        unstored.insert(event)
        attempts.remove(event)
        return Settled(event: event, result: result)
    }

    /// Goes on to the next event of a lane, or ends it.
    private mutating func advance(_ lane: Lane) {
        if let next = lanes.takeFollower(lane) {
            begin(next, lane)
        } else if lane.leftOut != nil {
            lane.attempts = DeliveryAttempts()
            lane.isStarved = true
            lanes.starvedCount += 1
        } else {
            lanes.remove(lane)
        }
    }

    /// Ends what waits and is too old, also while the endpoint can't be reached; what is parked when it is read next.
    /// - Parameter version: of the first commit whose events are not.
    package mutating func expire(before version: Int64) -> [Settled] {
        expired = version
        var settled: [Settled] = []
        let old = lanes.values.filter { !$0.isSending && !$0.isStarved && $0.head < version }
        if old.isEmpty { return [] }
        schedule.remove(old)
        for lane in old {
            let failure = lane.attempts.failure ?? .notSent
            // What is too old behind the head ends with it.
            while let next = lane.followers.first, next < version {
                settled.append(settle(lane.event, .dead(attempts: lane.attempts.count, failure)))
                lane.head = next
                lane.attempts = attempts[lane.event]
                _ = lanes.takeFollower(lane)
            }
            settled.append(settle(lane, .dead(attempts: lane.attempts.count, failure)))
        }
        return settled
    }
}
