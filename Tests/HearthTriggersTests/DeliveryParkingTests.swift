import Testing

@testable import HearthTriggers

/// Documents that fail, more than lanes may wait in memory.
struct DeliveryParkingTests {
    private let failure = DeliveryFailure(.status(500), "no")
    private let away = DeliveryFailure(.unreachable, "refused")
    private let second: UInt64 = 1_000_000_000

    private func isBad(_ event: Delivery.Event) -> Bool { event.key.first == UInt8(ascii: "p") }

    /// Sends and answers what there is now.
    /// - Returns: the events in the order in which they were sent.
    @discardableResult
    private func sendAll(_ owner: inout DeliveryOwner, fails: (Delivery.Event) -> Bool) -> [Delivery.Event] {
        var sent: [Delivery.Event] = []
        for _ in 0..<20_000 {
            owner.read()
            guard let (event, _) = owner.delivery.next(owner.now) else {
                // A reading of what is parked may have begun.
                owner.read()
                guard owner.delivery.hasMore else { return sent }
                continue
            }
            sent.append(event)
            owner.end(event.version, fails(event) ? .failed(failure) : .acknowledged)
        }
        Issue.record("It doesn't end.")
        return sent
    }

    /// An owner with documents whose events have failed once.
    private func owner(
        failing count: Int, _ terms: DeliveryTerms = DeliveryTerms(), lanes: Int = 16, attempts: Int? = nil
    ) -> DeliveryOwner {
        var owner = DeliveryOwner(terms, bounds: Delivery.Bounds(lanes: lanes, followers: 2, attempts: attempts))
        for version in 1...count { owner.add((Int64(version), "p\(version)")) }
        sendAll(&owner, fails: isBad)
        return owner
    }

    /// However many fail, and while all of them are repeated, another document's event waits for about one request.
    @Test(arguments: [16, 100, 2000]) func anotherDocumentIsSentAtOnce(failing: Int) {
        var owner = owner(failing: failing, attempts: 4000)
        let first = Int64(failing) + 1
        for version in first..<first + 12 {
            owner.add((version, "good\(version % 3)"))
            owner.now = max(owner.now, owner.nextTime ?? owner.now)
            let sent = sendAll(&owner, fails: isBad)
            #expect((sent.firstIndex { $0.version == version } ?? .max) <= 2, "\(version)")
            #expect(owner.delivery.lanes.count <= 16)
        }
        #expect(owner.settled.map(\.event.version) == Array(first..<first + 12))
        #expect(owner.delivery.isWaiting)
    }

    /// Each is repeated at its time, or soon after it, also behind others that wait for longer.
    @Test func whatIsParkedIsRepeatedAtItsTime() {
        var owner = owner(failing: 300)
        var attempts: [Int64: [UInt64]] = [:]
        while let time = owner.nextTime, time < 40 * second {
            owner.now = max(owner.now, time)
            for event in sendAll(&owner, fails: isBad) { attempts[event.version, default: []].append(owner.now) }
        }
        // Those in memory after 1, 3, 7, 15 and 31 seconds.
        #expect(attempts.count == 300)
        for times in attempts.values { #expect(times.count == 5 && times[0] >= second && times[0] <= 2 * second) }
        // It was read from the start no more often than is due.
        #expect(owner.readCount <= 300 * 12, "\(owner.readCount)")
    }

    /// However short their pauses are: the queue is not read without end.
    @Test func readingsOfWhatIsParkedHavePausesBetweenThem() {
        var terms = DeliveryTerms()
        terms.minBackoffNanoseconds = 1_000_000
        var owner = owner(failing: 100, terms)
        owner.now += 1_000_000
        #expect(sendAll(&owner, fails: isBad).count == 100)
        #expect(owner.delivery.parking.roundTime(expired: 0) == owner.now + second)
    }

    /// When nothing fails any more, all are sent in order, each document's events one after the other.
    @Test func allIsSentWhenNothingFails() {
        var owner = owner(failing: 200)
        for version in 201...1200 { owner.add((Int64(version), "p\(version % 250)")) }
        sendAll(&owner, fails: isBad)
        var order: [[UInt8]: [Int64]] = [:]
        let before = owner.readCount
        owner.delivery.retry()
        var steps = 0
        while !owner.queue.isEmpty, steps < 100 {
            steps += 1
            for event in sendAll(&owner, fails: { _ in false }) { order[event.key, default: []].append(event.version) }
            owner.now += second
        }
        #expect(order.values.map(\.count).reduce(0, +) == 1200)
        #expect(order.values.allSatisfy { $0 == $0.sorted() })
        #expect(!owner.delivery.isWaiting && owner.delivery.attempts.count == 0)
        #expect(owner.readCount - before < 20 * 1200, "\(owner.readCount - before)")
        #expect(owner.budget.free.lanes == DeliveryBudget.Amounts.all.lanes && owner.endpoint.failedLanes == 0)
    }

    @Test func aRetrySendsWhatIsParkedAtOnce() {
        var owner = owner(failing: 100)
        owner.now += second
        #expect(sendAll(&owner, fails: isBad).count == 100)
        owner.delivery.retry()
        #expect(sendAll(&owner, fails: isBad).count == 100)
        // Pauses begin anew.
        #expect(owner.nextTime == owner.now + second)
        #expect(owner.settled.isEmpty)
    }

    /// Also during a reading that has come by some of it.
    @Test func aRetryDuringAReadingHasAnotherOneBegin() {
        var owner = owner(failing: 100)
        owner.now += second
        #expect(sendAll(&owner, fails: isBad).count == 100)
        // None is due in this one, which expiry began.
        owner.now += second
        _ = owner.delivery.expire(before: 1)
        owner.delivery.parking.beginRound(owner.now)
        let wanted = owner.delivery.wantsEvents!
        #expect(wanted.after == Delivery.Event(version: owner.delivery.parking.first, key: []))
        #expect(owner.delivery.take(Array(owner.queue.prefix(50)), isEnd: false).isEmpty)
        owner.delivery.retry()
        #expect(sendAll(&owner, fails: isBad).count == 100)
    }

    @Test func attemptsOfWhatIsParkedEndAtTheirMaximum() {
        var terms = DeliveryTerms()
        terms.attemptsMax = 3
        var owner = owner(failing: 100, terms)
        for _ in 0..<6 {
            sendAll(&owner, fails: isBad)
            owner.now += 3 * second
        }
        #expect(owner.settled.count == 100 && owner.queue.isEmpty && !owner.delivery.isWaiting)
        #expect(owner.settled.allSatisfy { $0.result == .dead(attempts: 3, failure) })
    }

    /// Also while the endpoint can't be reached. What is not too old stays; what follows it goes on.
    @Test func whatIsParkedAndTooOldEnds() {
        var owner = owner(failing: 100)
        for version in 101...150 { owner.add((Int64(version), "p\(version - 100)")) }
        sendAll(&owner, fails: isBad)
        owner.now += second
        owner.read()
        let (probe, _) = owner.delivery.next(owner.now)!
        owner.end(probe.version, .unreachable(away))
        #expect(owner.endpoint.isDown)
        owner.expired = 81
        owner.now += 60 * second
        // What is in memory first.
        owner.expire()
        while owner.delivery.wantsExpired || owner.delivery.parking.first < 81 {
            owner.now += second
            owner.expire()
        }
        owner.expire()
        #expect(Set(owner.settled.map(\.event.version)) == Set(1...80))
        for settled in owner.settled {
            guard case .dead(let attempts, let failure) = settled.result else {
                Issue.record("\(settled)")
                continue
            }
            #expect(attempts == 1 && (failure.kind == .status(500) || settled.event == probe))
        }
        // The rest is sent when it can be reached.
        owner.now += 60 * second
        let sent = sendAll(&owner, fails: { _ in false })
        #expect(Set(sent.map(\.version)).isSuperset(of: Set(101...150)))
    }

    /// Earlier events of a parked document come before those that failed, whose attempts are remembered.
    @Test func earlierEventsOfWhatIsParkedAreSentFirst() {
        var owner = DeliveryOwner(bounds: Delivery.Bounds(lanes: 4, followers: 2))
        for version in Int64(101)...150 { owner.add((version, "p\(version)")) }
        sendAll(&owner, fails: isBad)
        owner.addAgain((101...150).map { Delivery.Event(version: $0 - 100, key: Array("p\($0)".utf8)) })
        #expect(Set(sendAll(&owner, fails: { _ in false }).map(\.version)) == Set(1...50))
        owner.now += second
        var attempts: Set<Int> = []
        while let (version, attempt) = owner.next() {
            attempts.insert(attempt)
            owner.end(version, .acknowledged)
        }
        owner.now += second
        while let (version, attempt) = owner.next() {
            attempts.insert(attempt)
            owner.end(version, .acknowledged)
        }
        #expect(owner.queue.isEmpty && attempts == [2])
    }

    /// What was deleted meanwhile is not waited for.
    @Test func whatIsParkedMayBeDeleted() {
        var owner = owner(failing: 100, lanes: 1, attempts: 200)
        owner.queue = []
        owner.now += 60 * second
        sendAll(&owner, fails: isBad)
        #expect(!owner.delivery.isWaiting && owner.nextTime == nil)
    }

    /// More fail than can be remembered: they wait in memory, and the others go on when some are settled.
    @Test func moreFailuresThanAreRememberedWaitInMemory() {
        var owner = owner(failing: 60, attempts: 40)
        #expect(owner.delivery.attempts.count == 40 && owner.delivery.lanes.count < 16)
        let lanes = owner.delivery.lanes.count
        for version in Int64(61)...70 { owner.add((version, "good\(version)")) }
        #expect(sendAll(&owner, fails: isBad).isEmpty && owner.delivery.lanes.count == lanes)
        // All that it knows of are repeated meanwhile.
        owner.now += second
        sendAll(&owner, fails: isBad)
        #expect(owner.delivery.attempts.count == 40 && owner.delivery.lanes.count == lanes)
        owner.now += 2 * second
        #expect(Set(sendAll(&owner, fails: { _ in false }).map(\.version)).isSuperset(of: Set(1...54)))
        owner.now += 2 * second
        sendAll(&owner, fails: { _ in false })
        #expect(owner.queue.isEmpty)
    }

    /// What waits in memory has half of what the deliveries of a trigger may have, whatever databases they are for.
    @Test func databasesOfATriggerShareWhatMayWait() {
        let budget = DeliveryBudget(
            DeliveryBudget.Amounts(requests: 1000, bodyBytes: 1 << 20, lanes: 100, attempts: 2000))
        var owners = [DeliveryOwner(budget: budget)]
        for _ in 1..<20 { owners.append(DeliveryOwner(sharing: owners[0])) }
        for index in owners.indices {
            for version in 1...30 { owners[index].add((Int64(version), "p\(version)")) }
            sendAll(&owners[index], fails: isBad)
        }
        let lanes = owners.map { $0.delivery.lanes.count }.reduce(0, +)
        #expect(lanes <= 26 && owners[0].endpoint.failedLanes == lanes)
        // Each still sends what comes.
        for index in owners.indices {
            owners[index].add((31, "good"))
            #expect(sendAll(&owners[index], fails: isBad).map(\.version) == [31])
        }
        for index in owners.indices { owners[index].delivery.end() }
        #expect(budget.free.lanes == 100 && budget.free.attempts == 2000)
        #expect(owners[0].endpoint.failedLanes == 0)
    }

    /// Nor do those that can't be remembered take more lanes than there are: nothing else is sent then.
    @Test func whatCannotBeRememberedHasNoMoreLanesThanThereAre() {
        let budget = DeliveryBudget(
            DeliveryBudget.Amounts(requests: 1000, bodyBytes: 1 << 20, lanes: 100, attempts: 20))
        var owners = [DeliveryOwner(budget: budget)]
        for _ in 1..<20 { owners.append(DeliveryOwner(sharing: owners[0])) }
        for index in owners.indices {
            for version in 1...30 { owners[index].add((Int64(version), "p\(version)")) }
            sendAll(&owners[index], fails: isBad)
        }
        // Half of them, and one for each database that would have none.
        #expect(owners.map { $0.delivery.lanes.count }.reduce(0, +) <= 50 + 19)
        #expect(owners.allSatisfy { !$0.delivery.lanes.isEmpty } && budget.free.attempts == 10)
        for _ in 0..<60 {
            for index in owners.indices {
                owners[index].now += second
                sendAll(&owners[index], fails: { _ in false })
            }
        }
        #expect(owners.allSatisfy(\.queue.isEmpty) && budget.free.lanes == 100 && budget.free.attempts == 20)
    }

    /// Also when the endpoint is slow, and parked documents are read because some of them are too old.
    @Test func anotherDocumentIsSentAtOnceWhileSomeAreTooOld() {
        var owner = owner(failing: 400, lanes: 64)
        owner.now += second
        sendAll(&owner, fails: isBad)
        // Those that come later are due before them.
        for version in 401...500 { owner.add((Int64(version), "p\(version)")) }
        sendAll(&owner, fails: isBad)
        owner.now += second
        // Nothing is sent: what is too old and in memory ends at once, the rest when it's clear that the endpoint is slow.
        owner.expired = 40
        for _ in 0..<4 {
            owner.expire()
            // What waited in memory, and a quarter of all.
            #expect(owner.delivery.schedule.againCount <= 32 + 16)
            owner.now += 60 * second
        }
        #expect(owner.settled.count == 39)
        owner.add((501, "good"))
        #expect((sendAll(&owner, fails: isBad).firstIndex { $0.version == 501 } ?? .max) <= 2)
    }

    /// Nor does what is repeated slowly take all lanes, however few there are.
    @Test func whatFailsSlowlyLeavesALaneToOthers() {
        let budget = DeliveryBudget(
            DeliveryBudget.Amounts(requests: 1000, bodyBytes: 1 << 20, lanes: 20, attempts: 2000))
        var owner = DeliveryOwner(budget: budget)
        for version in 1...200 { owner.add((Int64(version), "p\(version)")) }
        sendAll(&owner, fails: isBad)
        owner.now += second
        while owner.next() != nil {}
        #expect(owner.endpoint.sending >= 5 && owner.delivery.lanes.count == owner.endpoint.sending)
        for version in Int64(201)...204 {
            owner.add((version, "good\(version)"))
            #expect(owner.next()?.version == version)
            owner.end(version, .acknowledged)
        }
    }

    /// Calls that don't end leave requests to documents that have not failed.
    @Test func whatFailsSlowlyTakesNotAllRequests() {
        var owner = owner(failing: 200, lanes: 1000)
        owner.now += second
        var repeated: [Int64] = []
        while let (version, _) = owner.next() { repeated.append(version) }
        // Of 16.
        #expect(repeated.count == 12)
        #expect(!owner.delivery.hasMore && owner.delivery.isHeld)
        for version in Int64(201)...204 {
            owner.add((version, "good\(version)"))
            #expect(owner.next()?.version == version)
        }
        // Each that ends makes a request of its kind possible.
        owner.end(repeated[0], .failed(failure))
        let next = owner.next()?.version ?? 0
        #expect(next > 0 && next < 201 && owner.next() == nil)
        owner.end(204, .acknowledged)
        #expect(owner.next() == nil)
        owner.add((205, "good"))
        #expect(owner.next()?.version == 205)
    }

    /// One request at a time is for both.
    @Test(arguments: [1, 2, 3]) func fewRequestsAreForWhatFailsToo(concurrency: Int) {
        var terms = DeliveryTerms()
        terms.concurrency = concurrency
        var owner = owner(failing: 50, terms)
        owner.now += second
        for _ in 0..<max(1, concurrency - 1) { #expect(owner.next() != nil) }
        #expect(owner.next() == nil)
        owner.add((51, "good"))
        #expect((owner.next()?.version == 51) == (concurrency > 1))
    }

    /// A slow function: what failed gets no more than every second request.
    @Test func whatFailedTakesHalfOfTheRequests() {
        var terms = DeliveryTerms()
        terms.concurrency = 1
        var owner = owner(failing: 50, terms)
        for version in Int64(51)...70 { owner.add((version, "good\(version)")) }
        owner.now += second
        var sent: [Int64] = []
        while sent.count < 20 {
            owner.read()
            guard let (event, _) = owner.delivery.next(owner.now) else { continue }
            sent.append(event.version)
            owner.end(event.version, isBad(event) ? .failed(failure) : .acknowledged)
        }
        #expect((9...11).contains(sent.count { $0 > 50 }), "\(sent)")
    }
}
