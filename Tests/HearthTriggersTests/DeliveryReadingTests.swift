import HearthTestSupport
import Testing

@testable import HearthTriggers

/// How the queue is read, again and anew.
struct DeliveryReadingTests {
    private let failure = DeliveryFailure(.status(500), "no")
    private let second: UInt64 = 1_000_000_000

    /// Documents that change equally often, and such as few of which have most of the events; with and without a failure of
    /// each first, behind which the whole queue is read: an event is read a few times, not once for each of 60 documents.
    @Test(arguments: [false, true], [false, true]) func aBacklogIsReadALimitedNumberOfTimes(
        isSkewed: Bool, failsFirst: Bool
    ) {
        let (documents, total) = (60, 12_000)
        var owner = DeliveryOwner(bounds: Delivery.Bounds(lanes: 64, followers: 8))
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
        var owner = DeliveryOwner(bounds: Delivery.Bounds(lanes: 4, followers: 1))
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
        var owner = DeliveryOwner(bounds: Delivery.Bounds(lanes: 2, followers: 1))
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
        var owner = DeliveryOwner()
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
        var owner = DeliveryOwner()
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
        var owner = DeliveryOwner()
        owner.add((5, "a"))
        #expect(owner.next()! == (5, 1))
        owner.end(5, .failed(failure))
        owner.addAgain([event(1, "b")])
        owner.delivery.retry()
        #expect(owner.nextTwo() == [1: 1, 5: 2])
        // The pauses begin anew.
        owner.end(5, .failed(failure))
        #expect(owner.nextTime == second)
    }

    @Test func whatIsRetriedAtOnceMayBeReadAnewBefore() {
        var owner = DeliveryOwner()
        owner.add((5, "a"))
        #expect(owner.next()! == (5, 1))
        owner.end(5, .failed(failure))
        owner.delivery.retry()
        owner.addAgain([event(1, "b")])
        #expect(owner.nextTwo() == [1: 1, 5: 2])
    }

    @Test func aSettledEventIsNotReadAgainBeforeItIsStored() {
        var owner = DeliveryOwner()
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
        var owner = DeliveryOwner(bounds: Delivery.Bounds(lanes: 4, followers: 1))
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
        var owner = DeliveryOwner(bounds: Delivery.Bounds(lanes: 9, followers: 1))
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
}
