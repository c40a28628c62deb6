import HearthTriggers
import HearthTestSupport
import Testing

@testable import HearthTriggers

struct DeliveryTests {
    /// A queue, and an owner that follows the rules of `Delivery`.
    private struct Owner {
        var delivery: Delivery
        let endpoint = DeliveryEndpoint()
        /// In the order of versions; settled ones go.
        var queue: [Delivery.Event] = []
        var now: UInt64 = 0
        var expired: Int64 = 0
        var settled: [Delivery.Settled] = []
        /// How many records of the queue were read, again and again ones too.
        var readCount = 0

        init(_ terms: DeliveryTerms = DeliveryTerms(), bounds: Delivery.Bounds = Delivery.Bounds()) {
            delivery = Delivery(terms, to: endpoint, bounds: bounds, jitter: { 1 })
        }

        mutating func add(_ events: (Int64, String)...) {
            queue += events.map { Delivery.Event(version: $0.0, key: Array($0.1.utf8)) }
            delivery.notify()
        }

        mutating func read() {
            while let wanted = delivery.wantsEvents {
                let rest = queue.filter { event in
                    // A version has one event here; one without a key is before it.
                    wanted.after.map { event.version > $0.version || event.version == $0.version && $0.key.isEmpty }
                        ?? true
                }
                readCount += min(rest.count, wanted.countMax)
                delivery.take(Array(rest.prefix(wanted.countMax)), isEnd: rest.count <= wanted.countMax)
            }
        }

        /// One part of what is left.
        mutating func read(from isLeft: (Delivery.Event) -> Bool) {
            guard let wanted = delivery.wantsEvents else { return }
            let start = wanted.after.map { $0.version + ($0.key.isEmpty ? 0 : 1) } ?? 1
            let rest = queue[min(queue.count, Int(max(1, start)) - 1)...].lazy.filter(isLeft).prefix(wanted.countMax)
            let events = Array(rest)
            readCount += events.count
            delivery.take(events, isEnd: events.count < wanted.countMax)
        }

        mutating func next() -> (version: Int64, attempt: Int)? {
            read()
            return delivery.next(now).map { ($0.event.version, $0.attempt) }
        }

        /// When `next` may have another event, if nothing else happens.
        var nextTime: UInt64? {
            let time = delivery.hasMore ? now : delivery.retryTime
            guard let time, endpoint.sending < endpoint.concurrency else { return nil }
            return endpoint.isDown ? endpoint.probeTime.map { max(time, $0) } : time
        }

        mutating func end(_ version: Int64, _ answer: Delivery.Answer) {
            let event = queue.first { $0.version == version }!
            guard let result = delivery.ended(event, answer, now, expired: expired) else { return }
            settled.append(result)
            queue.removeAll { $0 == result.event }
            delivery.stored([result])
        }

        /// Puts events into the queue that may lie before what was read.
        mutating func addAgain(_ events: [Delivery.Event]) {
            queue = (queue + events).sorted { $0.version < $1.version }
            delivery.readAnew()
        }
    }

    private let failure = DeliveryFailure(.status(500), "no")
    private let away = DeliveryFailure(.unreachable, "refused")
    private let second: UInt64 = 1_000_000_000

    @Test func eventsOfADocumentGoOneAfterTheOther() {
        var owner = Owner()
        owner.add((1, "a"), (2, "a"), (3, "b"))
        #expect(owner.next()! == (1, 1) && owner.next()! == (3, 1) && owner.next() == nil)
        owner.end(1, .acknowledged)
        #expect(owner.next()! == (2, 1))
        owner.end(2, .acknowledged)
        owner.end(3, .acknowledged)
        #expect(owner.next() == nil && owner.queue.isEmpty)
        #expect(owner.settled.map(\.event.version) == [1, 2, 3])
        #expect(owner.settled.allSatisfy { $0.result == .delivered })
    }

    @Test func withoutAnOrderTheyGoSideBySide() {
        var terms = DeliveryTerms()
        terms.isOrdered = false
        terms.concurrency = 2
        var owner = Owner(terms)
        owner.add((1, "a"), (2, "a"), (3, "a"))
        #expect(owner.next()! == (1, 1) && owner.next()! == (2, 1) && owner.next() == nil)
        owner.end(2, .acknowledged)
        #expect(owner.next()! == (3, 1))
    }

    @Test func aFailedAttemptIsRepeatedAfterPausesThatDouble() {
        var owner = Owner()
        owner.add((1, "a"), (2, "b"))
        var pause = second
        for attempt in 1...12 {
            #expect(owner.next()! == (1, attempt))
            if attempt == 1 {
                #expect(owner.next()! == (2, 1))
                owner.end(2, .acknowledged)
            }
            owner.end(1, .failed(failure))
            #expect(owner.nextTime == owner.now + pause)
            owner.now += pause - 1
            #expect(owner.next() == nil)
            owner.now += 1
            pause = min(pause * 2, 600 * second)
        }
    }

    @Test func aRetryEndsAllPausesAndBeginsThemAnew() {
        var owner = Owner()
        owner.add((1, "a"), (2, "b"))
        for attempt in 1...9 {
            #expect(owner.next()! == (1, attempt))
            if attempt == 1 { #expect(owner.next()! == (2, 1)) }
            owner.end(1, .failed(failure))
            owner.now = owner.nextTime!
        }
        // One is under way meanwhile.
        owner.now -= 1
        #expect(owner.next() == nil)
        owner.delivery.retry()
        #expect(owner.next()! == (1, 10))
        owner.end(1, .failed(failure, retryAfterNanoseconds: 500 * second))
        owner.end(2, .failed(failure))
        #expect(owner.nextTime == owner.now + second)
        owner.delivery.retry()
        let next = [owner.next()!, owner.next()!]
        #expect(next.contains { $0 == (1, 11) } && next.contains { $0 == (2, 2) })
        owner.end(1, .failed(failure))
        #expect(owner.nextTime == owner.now + second)
        // The attempts count on.
        owner.now += second
        #expect(owner.next()! == (1, 12))
    }

    @Test func equalFailuresOfManyEventsShareTheirMemory() {
        let endpoint = DeliveryEndpoint()
        let first = endpoint.shared(DeliveryFailure(.status(500), "no", quote: String(repeating: "x", count: 500)))
        let second = endpoint.shared(DeliveryFailure(.status(500), "no", quote: String(repeating: "x", count: 500)))
        func memory(_ string: String) -> UnsafeRawPointer? {
            var string = string
            return string.withUTF8 { UnsafeRawPointer($0.baseAddress) }
        }
        #expect(memory(first.quote) == memory(second.quote))
        #expect(endpoint.shared(DeliveryFailure(.timeout, "late")).kind == .timeout)
    }

    @Test func whatTheEndpointAsksForCountsUpToTheLongestPause() {
        var owner = Owner()
        owner.add((1, "a"))
        #expect(owner.next() != nil)
        owner.end(1, .failed(failure, retryAfterNanoseconds: 20 * second))
        #expect(owner.nextTime == 20 * second)
        owner.now = 20 * second
        #expect(owner.next() != nil)
        owner.end(1, .failed(failure, retryAfterNanoseconds: 100_000 * second))
        #expect(owner.nextTime == 620 * second)
    }

    @Test func attemptsEndAtTheirMaximumAndAtTheirAge() {
        var terms = DeliveryTerms()
        terms.attemptsMax = 2
        var owner = Owner(terms)
        owner.add((1, "a"), (2, "a"))
        #expect(owner.next()! == (1, 1))
        owner.end(1, .failed(failure))
        owner.now += second
        #expect(owner.next()! == (1, 2))
        owner.end(1, .failed(failure))
        #expect(
            owner.settled == [
                Delivery.Settled(event: Delivery.Event(version: 1, key: [97]), result: .dead(attempts: 2, failure))
            ])
        // A dead letter lets the next go.
        #expect(owner.next()! == (2, 1))
        owner.expired = 3
        owner.end(2, .failed(failure))
        #expect(owner.settled.last?.result == .dead(attempts: 1, failure))
    }

    @Test func withoutRetriesAnAnswerIsTheEndButAnAbsentEndpointIsNot() {
        var terms = DeliveryTerms()
        terms.repeatsAnswers = false
        var owner = Owner(terms)
        owner.add((1, "a"))
        #expect(owner.next() != nil)
        owner.end(1, .unreachable(away))
        owner.now += second / 2
        #expect(owner.next()! == (1, 1))
        owner.end(1, .failed(failure))
        #expect(owner.settled.map(\.result) == [.dropped(failure)])
    }

    @Test func anAbsentEndpointIsProbedByOneEventAtATime() {
        var owner = Owner()
        owner.add((1, "a"), (2, "b"), (3, "c"))
        #expect(owner.next() != nil && owner.next() != nil)
        owner.end(1, .unreachable(away))
        #expect(owner.endpoint.isDown && owner.next() == nil)
        owner.end(2, .unreachable(away))
        var pause = second / 2
        for _ in 0..<8 {
            #expect(owner.next() == nil)
            #expect(owner.nextTime == owner.now + pause)
            owner.now += pause
            let probe = owner.next()
            #expect(probe?.attempt == 1 && owner.next() == nil && owner.nextTime == nil)
            owner.end(probe!.version, .unreachable(away))
            pause = min(2 * pause, 10 * second)
        }
        owner.now += pause
        let probe = owner.next()!
        owner.end(probe.version, .acknowledged)
        #expect(!owner.endpoint.isDown && owner.next() != nil && owner.next() != nil)
    }

    @Test func whatIsTooOldEndsAlsoWhileTheEndpointIsAbsent() {
        var owner = Owner(bounds: Delivery.Bounds(lanes: 2, followers: 1))
        owner.add((1, "a"), (2, "a"), (3, "b"), (4, "c"))
        #expect(owner.next()! == (1, 1))
        owner.end(1, .unreachable(away))
        var ended: [Int64] = []
        while case let settled = owner.delivery.expire(before: 4), !settled.isEmpty {
            ended += settled.map(\.event.version)
            owner.queue.removeAll { event in settled.contains { $0.event == event } }
            owner.read()
        }
        #expect(ended.sorted() == [1, 2, 3])
        owner.now += second
        #expect(owner.next()! == (4, 1))
    }

    @Test func aPausedTriggerSendsNothing() {
        var owner = Owner()
        owner.add((1, "a"))
        var terms = DeliveryTerms()
        terms.isPaused = true
        owner.delivery.change(terms)
        #expect(owner.next() == nil && owner.nextTime == nil)
        owner.delivery.change(DeliveryTerms())
        #expect(owner.next()! == (1, 1))
    }

    /// Random answers, few lanes and followers: nothing is lost or sent twice without need, and the order is kept.
    @Test(arguments: 0..<24) func everythingArrivesInOrder(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var terms = DeliveryTerms()
        terms.concurrency = Int.random(in: 1...8, using: &random)
        terms.isOrdered = seed % 4 != 3
        var owner = Owner(
            terms,
            bounds: Delivery.Bounds(
                lanes: Int.random(in: 1...6, using: &random), followers: Int.random(in: 1...4, using: &random)))
        let total: Int64 = 400
        var added: Int64 = 0
        var sending: [Int64] = []
        var delivered: [String: [Int64]] = [:]
        var steps = 0
        while added < total || !owner.queue.isEmpty {
            steps += 1
            if steps > 200_000 { Issue.record("It doesn't end."); return }
            switch Int.random(in: 0..<4, using: &random) {
            case 0 where added < total:
                for _ in 0..<Int.random(in: 1...10, using: &random) where added < total {
                    added += 1
                    // Half of them are of one document.
                    owner.add(
                        (added, Bool.random(using: &random) ? "hot" : "d\(Int.random(in: 0..<20, using: &random))"))
                }
            case 1, 0:
                if let (version, _) = owner.next() {
                    let key = owner.queue.first { $0.version == version }!.key
                    #expect(!sending.contains(version))
                    if terms.isOrdered {
                        #expect(
                            !sending.contains { other in owner.queue.contains { $0.version == other && $0.key == key } }
                        )
                    }
                    sending.append(version)
                    #expect(sending.count <= terms.concurrency)
                }
            case 2:
                if let index = sending.indices.randomElement(using: &random) {
                    let version = sending.remove(at: index)
                    let key = String(decoding: owner.queue.first { $0.version == version }!.key, as: UTF8.self)
                    switch Int.random(in: 0..<8, using: &random) {
                    case 0: owner.end(version, .failed(failure))
                    case 1: owner.end(version, .unreachable(away))
                    default:
                        owner.end(version, .acknowledged)
                        delivered[key, default: []].append(version)
                    }
                }
            default:
                owner.read()
                if let time = owner.nextTime { owner.now = max(owner.now, time) }
            }
        }
        #expect(!owner.delivery.isWaiting)
        let all = delivered.values.flatMap { $0 }
        #expect(all.count == Int(total) && Set(all).count == Int(total))
        if terms.isOrdered { #expect(delivered.values.allSatisfy { $0 == $0.sorted() }) }
        #expect(owner.endpoint.sending == 0)
    }

    /// Documents that change equally often, and such as few of which have most of the events; with and without a failure of
    /// each first, behind which the whole queue is read: an event is read a few times, not once for each of 60 documents.
    @Test(arguments: [false, true], [false, true]) func aBacklogIsReadALimitedNumberOfTimes(
        isSkewed: Bool, failsFirst: Bool
    ) {
        let (documents, total) = (60, 12_000)
        var owner = Owner(bounds: Delivery.Bounds(lanes: 64, followers: 8))
        var random = SeededGenerator(seed: 3)
        owner.queue = (1...total).map { version in
            let share = Double.random(in: 0..<1, using: &random)
            let number = Int(Double(documents) * (isSkewed ? share * share * share : share))
            return Delivery.Event(version: Int64(version), key: Array("d\(number)".utf8))
        }
        var settled: [Int64: Bool] = [:]
        var failed: Set<[UInt8]> = []
        owner.delivery.notify()
        while settled.count < total {
            owner.read(from: { settled[$0.version] == nil })
            var sending: [Delivery.Event] = []
            while let next = owner.delivery.next(owner.now) { sending.append(next.event) }
            if sending.isEmpty {
                guard let time = owner.delivery.retryTime ?? owner.nextTime else { break }
                owner.now = max(owner.now, time)
            }
            for event in sending {
                let fails = failsFirst && failed.insert(event.key).inserted
                let result = owner.delivery.ended(
                    event, fails ? .failed(failure) : .acknowledged, owner.now, expired: 0)
                guard let result else { continue }
                settled[event.version] = true
                owner.delivery.stored([result])
            }
        }
        #expect(settled.count == total && !owner.delivery.isWaiting)
        #expect(owner.readCount < 20 * total, "\(owner.readCount) records were read")
    }

    /// A reading of a part of the queue that goes on between requests, while lanes take some of what it has, get full, and have
    /// space again: none gets an event before one that it was too full for.
    @Test func aLaneThatWasFullGetsNothingBehindWhatItLeftOut() {
        var owner = Owner(bounds: Delivery.Bounds(lanes: 4, followers: 1))
        owner.add((1, "a"), (2, "b"))
        for version in Int64(3)...20 { owner.add((version, version % 3 == 0 ? "a" : "b")) }
        var order: [String: [Int64]] = [:]
        while let (version, _) = owner.next() {
            let event = owner.queue.first { $0.version == version }!
            order[String(decoding: event.key, as: UTF8.self), default: []].append(version)
            owner.end(version, .acknowledged)
        }
        #expect(order.values.map(\.count).reduce(0, +) == 20 && order.values.allSatisfy { $0 == $0.sorted() })
    }

    /// What was left out of lanes was deleted: they end.
    @Test func lanesEndWhenWhatTheyLeftOutIsGone() {
        var owner = Owner(bounds: Delivery.Bounds(lanes: 2, followers: 1))
        owner.add((1, "a"), (2, "a"), (3, "a"), (4, "a"), (5, "a"))
        #expect(owner.next()! == (1, 1))
        owner.end(1, .acknowledged)
        owner.queue.removeAll { $0.version > 3 }
        var versions: [Int64] = []
        while let (version, _) = owner.next() {
            versions.append(version)
            owner.end(version, .acknowledged)
        }
        #expect(versions.first == 2 && versions.last! <= 3 && !owner.delivery.isWaiting)
    }

    // MARK: Reading anew

    private func event(_ version: Int64, _ key: String) -> Delivery.Event {
        Delivery.Event(version: version, key: Array(key.utf8))
    }

    @Test func earlierEventsAreSentWhileOthersAreUnderWay() {
        var owner = Owner()
        owner.add((5, "a"), (6, "b"), (7, "b"), (8, "c"))
        #expect(owner.next()! == (5, 1) && owner.next()! == (6, 1) && owner.next()! == (8, 1) && owner.next() == nil)
        owner.addAgain([event(1, "a"), event(2, "d"), event(3, "b")])
        // Those of documents with an event under way wait for it.
        #expect(owner.next()! == (2, 1) && owner.next() == nil)
        owner.end(5, .acknowledged)
        #expect(owner.next()! == (1, 1))
        owner.end(6, .acknowledged)
        #expect(owner.next()! == (3, 1) && owner.next() == nil)
        owner.end(3, .acknowledged)
        #expect(owner.next()! == (7, 1))
        for version: Int64 in [1, 2, 7, 8] { owner.end(version, .acknowledged) }
        #expect(owner.next() == nil && owner.queue.isEmpty && !owner.delivery.isWaiting)
    }

    @Test func whatFailedComesAfterEarlierEventsAndKeepsItsAttempts() {
        var owner = Owner()
        owner.add((5, "a"), (6, "a"), (7, "b"))
        #expect(owner.next()! == (5, 1) && owner.next()! == (7, 1))
        owner.end(7, .failed(failure))
        owner.addAgain([event(1, "a"), event(2, "a")])
        owner.read()
        owner.end(5, .failed(failure))
        #expect(owner.next()! == (1, 1) && owner.next() == nil)
        owner.end(1, .acknowledged)
        owner.now += second
        #expect(owner.next()! == (2, 1) && owner.next()! == (7, 2) && owner.next() == nil)
        owner.end(7, .acknowledged)
        // Also when it fails before it was read again.
        owner.addAgain([event(3, "a")])
        owner.end(2, .failed(failure))
        owner.now += second
        #expect(owner.next()! == (2, 2))
        owner.end(2, .acknowledged)
        #expect(owner.next()! == (3, 1))
        owner.end(3, .acknowledged)
        #expect(owner.next()! == (5, 2))
        owner.end(5, .acknowledged)
        #expect(owner.next()! == (6, 1))
    }

    @Test func whatIsReadAnewIsRetriedAtOnceToo() {
        var owner = Owner()
        owner.add((5, "a"))
        #expect(owner.next()! == (5, 1))
        owner.end(5, .failed(failure))
        owner.addAgain([event(1, "b")])
        owner.delivery.retry()
        #expect(owner.next()! == (1, 1) && owner.next()! == (5, 2))
        // The pauses begin anew.
        owner.end(5, .failed(failure))
        #expect(owner.nextTime == second)
    }

    @Test func whatIsRetriedAtOnceMayBeReadAnewBefore() {
        var owner = Owner()
        owner.add((5, "a"))
        #expect(owner.next()! == (5, 1))
        owner.end(5, .failed(failure))
        owner.delivery.retry()
        owner.addAgain([event(1, "b")])
        #expect(owner.next()! == (1, 1) && owner.next()! == (5, 2))
    }

    @Test func aSettledEventIsNotReadAgainBeforeItIsStored() {
        var owner = Owner()
        owner.add((5, "a"), (6, "b"))
        #expect(owner.next()! == (5, 1))
        let settled = owner.delivery.ended(event(5, "a"), .acknowledged, 0, expired: 0)!
        owner.addAgain([event(1, "a")])
        #expect(owner.next()! == (1, 1) && owner.next()! == (6, 1) && owner.next() == nil)
        owner.end(1, .acknowledged)
        #expect(owner.next() == nil)
        // It's asked for again after that.
        owner.delivery.stored([settled])
        owner.delivery.readAnew()
        #expect(owner.next()! == (5, 1))
    }

    /// Also when it is among those that a lane has left out.
    @Test func aSettledEventIsNotReadAgainWithThoseThatWereLeftOut() {
        var owner = Owner(bounds: Delivery.Bounds(lanes: 4, followers: 1))
        owner.add((10, "a"), (20, "a"))
        #expect(owner.next()! == (10, 1))
        owner.addAgain((1...5).map { event($0, "a") })
        owner.read()
        #expect(owner.delivery.ended(event(10, "a"), .acknowledged, 0, expired: 0) != nil)
        var versions: [Int64] = []
        while let (version, _) = owner.next() {
            versions.append(version)
            owner.end(version, .acknowledged)
        }
        #expect(versions == [1, 2, 3, 4, 5, 20])
    }

    /// Nor is one that is under way, and that its lane has left out.
    @Test func whatIsUnderWayIsNotReadAgainWithThoseThatWereLeftOut() {
        var owner = Owner(bounds: Delivery.Bounds(lanes: 9, followers: 1))
        for (index, key) in ["a", "b", "c", "d", "e", "f", "g", "h"].enumerated() {
            owner.add((Int64(10 + index), key))
        }
        for version: Int64 in 10...17 { #expect(owner.next()! == (version, 1)) }
        owner.add((20, "a"))
        owner.addAgain([event(1, "a"), event(2, "a"), event(3, "b"), event(4, "b")])
        owner.read()
        // Lanes may have more when there are few.
        for version: Int64 in 11...17 { owner.end(version, .acknowledged) }
        #expect(owner.next()! == (3, 1))
        owner.end(3, .acknowledged)
        #expect(owner.next()! == (4, 1) && owner.next() == nil)
        #expect(owner.delivery.ended(event(10, "a"), .acknowledged, 0, expired: 0) != nil)
        for version: Int64 in [1, 2, 20] {
            #expect(owner.next()! == (version, 1))
            owner.end(version, .acknowledged)
        }
        #expect(owner.next() == nil)
    }

    /// Random answers and replays, few lanes and followers, and settled events that stay in the queue for a while: what is
    /// sent is the first event of its document, none is sent twice at a time, and each as often as it was put.
    @Test(arguments: 0..<64) func everythingIsSentInOrderHoweverOftenTheQueueIsReadAnew(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var run = ReplayRun(
            isOrdered: seed % 4 != 3,
            owner: Owner(
                Self.terms(isOrdered: seed % 4 != 3, concurrency: Int.random(in: 1...8, using: &random)),
                bounds: Delivery.Bounds(
                    lanes: Int.random(in: 1...6, using: &random), followers: Int.random(in: 1...4, using: &random))))
        var steps = 0
        while run.hasMore {
            steps += 1
            if steps > 100_000 { Issue.record("It doesn't end: seed \(seed)."); return }
            run.step(&random)
        }
        #expect(!run.owner.delivery.isWaiting && run.owner.endpoint.sending == 0, "seed \(seed)")
        #expect(run.delivered == run.put, "seed \(seed)")
        #expect(run.put.values.contains { $0 > 1 }, "seed \(seed)")
    }

    private static func terms(isOrdered: Bool, concurrency: Int) -> DeliveryTerms {
        var terms = DeliveryTerms()
        terms.isOrdered = isOrdered
        terms.concurrency = concurrency
        return terms
    }

    private struct ReplayRun {
        let isOrdered: Bool
        var owner: Owner
        var added: Int64 = 0
        /// How often each was put and delivered.
        var put: [Delivery.Event: Int] = [:]
        var delivered: [Delivery.Event: Int] = [:]
        var sending: [Delivery.Event] = []
        var failures: [Delivery.Event: Int] = [:]
        /// Settled, and still in the queue.
        var unstored: [Delivery.Settled] = []
        private let total: Int64 = 200

        var hasMore: Bool { added < total || !owner.queue.isEmpty }

        init(isOrdered: Bool, owner: Owner) {
            self.isOrdered = isOrdered
            self.owner = owner
        }

        mutating func step(_ random: inout SeededGenerator) {
            switch Int.random(in: 0..<12, using: &random) {
            case 0...1 where added < total: for _ in 0..<Int.random(in: 1...8, using: &random) { add(&random) }
            case 2 where added < total: replay(&random)
            case 3...6: send()
            case 7...9: answer(&random)
            case 10: store(&random)
            default:
                owner.read()
                if let time = owner.nextTime { owner.now = max(owner.now, time) }
            }
        }

        private mutating func add(_ random: inout SeededGenerator) {
            added += 1
            // Half of them are of one document.
            let key = Bool.random(using: &random) ? "hot" : "d\(Int.random(in: 0..<12, using: &random))"
            owner.add((2 * added, key))
            put[owner.queue.last!, default: 0] += 1
        }

        /// Of what was delivered and removed, and of commits that had no event before.
        private mutating func replay(_ random: inout SeededGenerator) {
            var again: [Delivery.Event] = []
            for _ in 0..<Int.random(in: 0...5, using: &random) {
                let version = Int64.random(in: 0...added, using: &random) * 2 + 1
                again.append(Delivery.Event(version: version, key: Array("hot".utf8)))
                if let event = delivered.keys.randomElement(using: &random) { again.append(event) }
            }
            again = Set(again).filter { !owner.queue.contains($0) }
            for event in again { put[event, default: 0] += 1 }
            owner.addAgain(again)
        }

        private mutating func send() {
            owner.read()
            guard let (event, attempt) = owner.delivery.next(owner.now) else { return }
            let settled = Set(unstored.map(\.event))
            #expect(!sending.contains(event) && owner.queue.contains(event) && !settled.contains(event))
            #expect(attempt <= failures[event, default: 0] + 1)
            if isOrdered {
                #expect(!sending.contains { $0.key == event.key })
                #expect(owner.queue.first { $0.key == event.key && !settled.contains($0) } == event)
            }
            sending.append(event)
        }

        private mutating func answer(_ random: inout SeededGenerator) {
            guard let index = sending.indices.randomElement(using: &random) else { return }
            let event = sending.remove(at: index)
            let failure = DeliveryFailure(.status(500), "no")
            let answers: [Delivery.Answer] = [
                .failed(failure), .unreachable(failure), .unsent, .acknowledged, .acknowledged, .acknowledged,
            ]
            let answer = answers.randomElement(using: &random)!
            if case .failed = answer { failures[event, default: 0] += 1 }
            guard let settled = owner.delivery.ended(event, answer, owner.now, expired: 0) else { return }
            delivered[event, default: 0] += 1
            failures[event] = nil
            unstored.append(settled)
        }

        private mutating func store(_ random: inout SeededGenerator) {
            let count = Int.random(in: 0...unstored.count, using: &random)
            let stored = Array(unstored.prefix(count))
            unstored.removeFirst(count)
            owner.queue.removeAll { event in stored.contains { $0.event == event } }
            owner.delivery.stored(stored)
        }
    }
}
