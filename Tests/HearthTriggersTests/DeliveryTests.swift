import Testing

@testable import HearthTriggers

struct DeliveryTests {
    private let failure = DeliveryFailure(.status(500), "no")
    private let away = DeliveryFailure(.unreachable, "refused")
    private let second: UInt64 = 1_000_000_000

    @Test func eventsOfADocumentGoOneAfterTheOther() {
        var owner = DeliveryOwner()
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
        var owner = DeliveryOwner(terms)
        owner.add((1, "a"), (2, "a"), (3, "a"))
        #expect(owner.next()! == (1, 1) && owner.next()! == (2, 1) && owner.next() == nil)
        owner.end(2, .acknowledged)
        #expect(owner.next()! == (3, 1))
    }

    @Test func aFailedAttemptIsRepeatedAfterPausesThatDouble() {
        var owner = DeliveryOwner()
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
        var owner = DeliveryOwner()
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
        var owner = DeliveryOwner()
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
        var owner = DeliveryOwner(terms)
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
        var owner = DeliveryOwner(terms)
        owner.add((1, "a"))
        #expect(owner.next() != nil)
        owner.end(1, .unreachable(away))
        owner.now += second / 2
        #expect(owner.next()! == (1, 1))
        owner.end(1, .failed(failure))
        #expect(owner.settled.map(\.result) == [.dropped(failure)])
    }

    @Test func anAbsentEndpointIsProbedByOneEventAtATime() {
        var owner = DeliveryOwner()
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
        var owner = DeliveryOwner(bounds: Delivery.Bounds(lanes: 2, followers: 1))
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
        var owner = DeliveryOwner()
        owner.add((1, "a"))
        var terms = DeliveryTerms()
        terms.isPaused = true
        owner.delivery.change(terms)
        #expect(owner.next() == nil && owner.nextTime == nil)
        owner.delivery.change(DeliveryTerms())
        #expect(owner.next()! == (1, 1))
    }
}
