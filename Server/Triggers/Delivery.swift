import HearthConcurrency
import HearthModel

/// Which events of one trigger are sent, and when: a state machine without I/O, whose time is a parameter.
///
/// The events are in a queue that is stored with the data, in the order of commits. A part of it is here, in lanes: one for
/// each document (or location), since a document's events are sent one after the other. A lane has the event that is sent
/// next, its head, and some of those behind it. No more of the queue is read than keeps the endpoint busy; what lanes have
/// no space for is left out, and read a second time when one of them has got so far, for all of them at once.
///
/// - An attempt that fails is repeated after a pause that doubles (`DeliveryTerms`).
/// - An endpoint that can't be connected fails as a whole: one attempt after the other is made as a probe, and none of them
///   counts.
///
/// The owner reads the queue when `wantsEvents` says so, sends what `next` returns, reports each answer to `ended`,
/// removes from the queue what is settled, and reports that to `stored`: until then it's passed over.
///
/// Events may be put into the queue before what was read already: `readAnew` begins again at its start. What is being sent
/// then keeps its lane, in which those that were put before wait for it; everything else is read again.
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
    /// many together as that.
    package struct Bounds: Sendable {
        package var lanes: Int
        package var followers: Int

        package init(lanes: Int = 4096, followers: Int = 32) {
            self.lanes = lanes
            self.followers = followers
        }
    }

    private typealias Lane = DeliveryLane
    private typealias Attempts = DeliveryAttempts

    package private(set) var terms: DeliveryTerms
    private let bounds: Bounds
    /// A factor around 1 for pauses.
    private let jitter: () -> Double
    private var lanes: [[UInt8]: Lane] = [:]
    private var ready = Queue<Lane>()
    private var waiting = TimerHeap<Lane>()
    /// What the lanes count as, for the endpoint.
    private var chargedLanes = 0
    /// Events behind the heads of all lanes.
    private var followerCount = 0
    /// Lanes without an event, which need those that were left out.
    private var starvedCount = 0
    private var pass: Pass?
    private let endpoint: DeliveryEndpoint
    /// Everything in the queue up to here was read.
    private var read: Event?
    private var mayHaveMore = true
    /// Settled events that the queue may still have.
    private var unstored: Set<Event> = []
    /// What is known of attempts of events that are read again; of four times as many as there may be lanes.
    private var attempted: [Event: Attempts] = [:]

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
        if terms.isPaused { return nil }
        if let pass { return (pass.after, Self.passCount) }
        if starvedCount > 0 { return (Event(version: passStart, key: []), Self.passCount) }
        guard mayHaveMore, ready.count < terms.concurrency else { return nil }
        let count = min(bounds.lanes - lanes.count, max(lanes.isEmpty ? 1 : 0, endpoint.lanesLeft))
        return count > 0 ? (read, count) : nil
    }

    /// What `wantsEvents` asked for, in the order of the queue.
    /// - Parameter isEnd: whether there are no more.
    package mutating func take(_ events: [Event], isEnd: Bool) {
        if pass != nil || starvedCount > 0 { return takeAgain(events, isEnd: isEnd) }
        for event in events where !unstored.contains(event) {
            let id = laneID(event)
            if let lane = lanes[id] {
                if !lane.isSending(event.version) { append(event.version, to: lane) }
            } else {
                let lane = Lane(id, event)
                lanes[id] = lane
                charge(lane)
                begin(event.version, lane)
            }
        }
        if let last = events.last { read = last }
        if isEnd { mayHaveMore = false }
    }

    /// Has an event sent next of its lane: now, or when the pause after its last attempt is over.
    private mutating func begin(_ version: Int64, _ lane: Lane) {
        lane.head = version
        lane.attempts = takeAttempts(of: lane)
        if lane.attempts.count > 0 { waiting.insert(lane) } else { ready.append(lane) }
    }

    /// What is known of the head's attempts.
    private mutating func takeAttempts(of lane: Lane) -> Attempts {
        attempted.isEmpty ? Attempts() : attempted.removeValue(forKey: lane.event) ?? Attempts()
    }

    /// Settled events were removed from the queue.
    package mutating func stored(_ settled: [Settled]) { for one in settled { unstored.remove(one.event) } }

    /// Reads the queue from its start: events were put into it behind which it was read already.
    package mutating func readAnew() {
        read = nil
        pass = nil
        mayHaveMore = true
        ready = Queue()
        waiting.removeAll()
        starvedCount = 0
        for lane in lanes.values {
            if !lane.isStarved, !lane.isSending { remember(lane) }
            if !lane.isSending { drop(lane) }
            followerCount -= lane.followers.count
            lane.followers = Queue()
            lane.leftOut = nil
            lane.isHungry = false
            if lane.isSending { charge(lane) }
        }
    }

    /// Keeps what is known of the head's attempts until it is read again.
    private mutating func remember(_ lane: Lane) {
        if lane.attempts.failure != nil, attempted.count < 4 * bounds.lanes { attempted[lane.event] = lane.attempts }
    }

    private mutating func append(_ version: Int64, to lane: Lane) {
        if let first = lane.leftOut?.first {
            lane.leftOut = (first, version)
        } else if hasSpace(lane) {
            addFollower(version, lane)
        } else {
            lane.leftOut = (version, version)
        }
    }

    private func laneID(_ event: Event) -> [UInt8] {
        if terms.isOrdered { return event.key }
        return withUnsafeBytes(of: event.version.bigEndian) { Array($0) } + event.key
    }

    /// Each lane may have its share of what all may have, so that they get through it about together.
    private var share: Int { max(bounds.followers, bounds.lanes * bounds.followers / max(1, lanes.count)) }

    private func hasSpace(_ lane: Lane) -> Bool {
        let count = lane.followers.count
        if count < bounds.followers { return true }
        return count < share && followerCount < bounds.lanes * bounds.followers && endpoint.lanesLeft > 0
    }

    private mutating func addFollower(_ version: Int64, _ lane: Lane) {
        lane.followers.append(version)
        followerCount += 1
        charge(lane)
    }

    private mutating func takeFollower(_ lane: Lane) -> Int64? {
        guard let version = lane.followers.popFirst() else { return nil }
        followerCount -= 1
        charge(lane)
        return version
    }

    /// A lane with more than its part counts as several.
    private mutating func charge(_ lane: Lane) {
        let count = max(1, (lane.followers.count + bounds.followers - 1) / bounds.followers)
        if count == lane.count { return }
        endpoint.changeLanes(by: count - lane.count)
        chargedLanes += count - lane.count
        lane.count = count
    }

    // MARK: Reading again

    /// A second reading of a part of the queue. It begins at the first event that was left out of a lane with much space, and
    /// serves each lane whose events it comes by, until all that had much space are full. So many lanes that advance
    /// together cost one reading, not one each.
    private struct Pass {
        let from: Int64
        var after: Event
        /// Lanes that it goes on for.
        var hungry: [Lane]
        var hungryCount: Int
        /// Lanes that were full when it came by one of their events: they get none behind it.
        var passed: Set<ObjectIdentifier> = []
    }

    private static let passCount = 1024

    private func wantsPass(_ lane: Lane) -> Bool {
        lane.leftOut != nil && (lane.isStarved || lane.followers.count * 2 <= share)
    }

    /// The version where the next pass begins.
    private var passStart: Int64 {
        lanes.values.reduce(Int64.max) { start, lane in
            wantsPass(lane) ? min(start, lane.leftOut?.first ?? .max) : start
        }
    }

    private func newPass() -> Pass {
        let hungry = lanes.values.filter(wantsPass)
        for lane in hungry { lane.isHungry = true }
        let from = passStart
        return Pass(from: from, after: Event(version: from, key: []), hungry: hungry, hungryCount: hungry.count)
    }

    private mutating func takeAgain(_ events: [Event], isEnd: Bool) {
        var pass = self.pass ?? newPass()
        var isOver = isEnd
        for event in events {
            if let read, event.version > read.version {
                isOver = true
                break
            }
            if !unstored.contains(event), let lane = lanes[laneID(event)] { takeAgain(event.version, lane, &pass) }
            if pass.hungryCount == 0 { break }
        }
        if let last = events.last { pass.after = last }
        if isOver { for lane in pass.hungry where lane.isHungry { endWithoutMore(lane, &pass) } }
        self.pass = isOver || pass.hungryCount == 0 ? nil : pass
    }

    private mutating func takeAgain(_ version: Int64, _ lane: Lane, _ pass: inout Pass) {
        guard let leftOut = lane.leftOut, pass.from <= leftOut.first, leftOut.first...leftOut.last ~= version
        else { return }
        if pass.passed.contains(ObjectIdentifier(lane)) { return }
        if lane.isStarved {
            lane.isStarved = false
            starvedCount -= 1
            begin(version, lane)
        } else if lane.isSending(version) {
            // It has come by what is under way.
        } else if hasSpace(lane) {
            addFollower(version, lane)
        } else {
            lane.leftOut = (version, leftOut.last)
            pass.passed.insert(ObjectIdentifier(lane))
            return satisfy(lane, &pass)
        }
        lane.leftOut = version < leftOut.last ? (version + 1, leftOut.last) : nil
        if lane.leftOut == nil { satisfy(lane, &pass) }
    }

    private func satisfy(_ lane: Lane, _ pass: inout Pass) {
        if lane.isHungry { pass.hungryCount -= 1 }
        lane.isHungry = false
    }

    /// What was left out was deleted meanwhile.
    private mutating func endWithoutMore(_ lane: Lane, _ pass: inout Pass) {
        satisfy(lane, &pass)
        lane.leftOut = nil
        guard lane.isStarved else { return }
        starvedCount -= 1
        drop(lane)
    }

    private mutating func drop(_ lane: Lane) {
        lanes[lane.id] = nil
        endpoint.changeLanes(by: -lane.count)
        chargedLanes -= lane.count
    }

    /// Whether there are events that are not settled.
    package var isWaiting: Bool { !lanes.isEmpty }

    /// Forgets all events: nothing is read or sent any more. Answers to what was sent are still to be reported.
    package mutating func end() {
        endpoint.changeLanes(by: -chargedLanes)
        chargedLanes = 0
        lanes = [:]
        ready = Queue()
        waiting.removeAll()
        followerCount = 0
        starvedCount = 0
        pass = nil
        mayHaveMore = false
        unstored = []
        attempted = [:]
    }

    // MARK: Sending

    /// Takes up what waited for another attempt, and is due.
    package mutating func wake(_ now: UInt64) {
        while let lane = waiting.popDue(now) { ready.append(lane) }
    }

    /// Has everything that waits for another attempt sent now, and its pauses begin anew. How many attempts there were stays.
    package mutating func retry() {
        while let lane = waiting.popDue(.max) { ready.append(lane) }
        for lane in lanes.values { lane.attempts.pardon() }
        for event in attempted.keys { attempted[event]?.pardon() }
    }

    /// Whether there is something to send or to read before, as soon as the endpoint may have it.
    package var hasMore: Bool {
        !terms.isPaused && (!ready.isEmpty || wantsEvents != nil)
    }

    /// The next event to send now, and the number of the attempt, from 1; nil when there is none.
    package mutating func next(_ now: UInt64) -> (event: Event, attempt: Int)? {
        wake(now)
        guard !terms.isPaused, endpoint.mayBegin(now), let lane = ready.popFirst() else { return nil }
        endpoint.begin()
        lane.isSending = true
        return (lane.event, lane.attempts.count + 1)
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
            waiting.insert(lane)
        } else {
            ready.prepend(lane)
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
        followHead(lane)
        return true
    }

    /// Has the head of a lane follow those that come before it.
    private mutating func followHead(_ lane: Lane) {
        var followers = Queue<Int64>()
        var isIn = false
        lane.followers.forEach { version in
            if !isIn, version > lane.head {
                followers.append(lane.head)
                isIn = true
            }
            followers.append(version)
        }
        if !isIn { followers.append(lane.head) }
        lane.followers = followers
        followerCount += 1
        charge(lane)
    }

    private mutating func settle(_ lane: Lane, _ result: Settled.Result) -> Settled {
        let settled = Settled(event: lane.event, result: result)
        unstored.insert(settled.event)
        advance(lane)
        return settled
    }

    /// Goes on to the next event of a lane, or ends it.
    private mutating func advance(_ lane: Lane) {
        if let next = takeFollower(lane) {
            begin(next, lane)
        } else if lane.leftOut != nil {
            lane.attempts = Attempts()
            lane.isStarved = true
            starvedCount += 1
        } else {
            drop(lane)
        }
    }

    /// Ends what waits and is too old, also while the endpoint can't be reached.
    package mutating func expire(before version: Int64) -> [Settled] {
        var settled: [Settled] = []
        let old = lanes.values.filter { !$0.isSending && !$0.isStarved && $0.head < version }
        if old.isEmpty { return [] }
        let isOld = Set(old.map { ObjectIdentifier($0) })
        var kept = Queue<Lane>()
        while let lane = ready.popFirst() { if !isOld.contains(ObjectIdentifier(lane)) { kept.append(lane) } }
        ready = kept
        for lane in old {
            waiting.remove(lane)
            let failure = lane.attempts.failure ?? DeliveryFailure(.unreachable, "Not sent.")
            // What is too old behind the head ends with it.
            while let next = lane.followers.first, next < version {
                settled.append(Settled(event: lane.event, result: .dead(attempts: lane.attempts.count, failure)))
                unstored.insert(lane.event)
                lane.head = next
                lane.attempts = takeAttempts(of: lane)
                _ = takeFollower(lane)
            }
            settled.append(settle(lane, .dead(attempts: lane.attempts.count, failure)))
        }
        return settled
    }
}
