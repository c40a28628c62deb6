import HearthConcurrency
import HearthEvents
import HearthModel
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthTriggers

/// Databases and triggers beside each other, and ends while something is under way.
extension EventDispatcherTests {
    /// The route of a trigger in a database with these events.
    @discardableResult
    private func add(_ trigger: String, _ database: String, _ versions: ClosedRange<Int64>) -> Source {
        let source = Source()
        for version in versions { source.add((version, "k\(version)")) }
        dispatcher.notify(EventDispatcher.RouteID(trigger: trigger, database: database)) { source }
        return source
    }

    /// A database with many events takes no requests from one that has a few.
    @Test func databasesOfATriggerGetRequestsOneAfterTheOther() {
        dispatcher.set("t", trigger(concurrency: 1))
        add("t", "a", 100...199)
        add("t", "b", 200...203)
        add("t", "c", 300...301)
        run()
        var order: [Int64] = []
        for _ in 0..<9 {
            order += sender.versions
            sender.answerAll(.acknowledged)
            run()
        }
        #expect(order == [100, 200, 300, 101, 201, 301, 102, 202, 103])
        // Nor does one that comes later wait longer.
        add("t", "d", 400...400)
        run()
        for _ in 0..<2 {
            sender.answerAll(.acknowledged)
            run()
        }
        #expect(sender.versions == [400])
    }

    /// An event whose pause is over gets its request although others take all of them.
    @Test func whatIsRepeatedIsNotHeldBackByOthers() {
        dispatcher.set("t", trigger(concurrency: 1))
        add("t", "a", 1...1)
        run()
        sender.answerAll(.failed(DeliveryFailure(.status(500), "no")))
        add("t", "b", 200...299)
        run()
        clock.advance(seconds: 2)
        run()
        var order: [Int64] = []
        for _ in 0..<3 {
            order += sender.versions
            sender.answerAll(.acknowledged)
            run()
        }
        #expect(order.contains(1), "\(order)")
    }

    /// Calls for events that have failed don't end: those of other databases go on, and those that have failed there, too,
    /// as soon as one has ended.
    @Test func whatFailsSlowlyTakesNotAllRequestsOfOtherDatabases() {
        let failure = Delivery.Answer.failed(DeliveryFailure(.status(500), "no"))
        dispatcher.set("t", trigger(concurrency: 5))
        add("t", "a", 1...3)
        add("t", "b", 10...10)
        add("t", "c", 11...11)
        run()
        sender.answer(1...3, failure)
        run()
        clock.advance(seconds: 2)
        run()
        #expect(sender.versions == [1, 2, 3, 10, 11])
        sender.answer(10...11, failure)
        run()
        clock.advance(seconds: 2)
        run()
        #expect(sender.versions == [1, 2, 3])
        add("t", "d", 20...29)
        run()
        #expect(sender.versions == [1, 2, 3, 20, 21])
        // Also beside others that take each request that ends.
        sender.answer(1...3, .acknowledged)
        run()
        // Which of both is first depends on their pauses, a part of which is random.
        #expect([[10, 20, 21], [11, 20, 21]].contains(Array(sender.versions.prefix(3))))
        sender.answer(20...29, .acknowledged)
        run()
        #expect(sender.versions.starts(with: [10, 11]))
        for _ in 0..<20 {
            sender.answerAll(.acknowledged)
            run()
            clock.advance(seconds: 1)
        }
        run()
        #expect(observer.settled.withLock { $0.count } == 15)
    }

    /// Nor is a database that waits for that in the way when it is gone.
    @Test func aDatabaseThatIsGoneIsNotWaitedForByOthersThatFailed() {
        let failure = Delivery.Answer.failed(DeliveryFailure(.status(500), "no"))
        dispatcher.set("t", trigger(concurrency: 4))
        add("t", "a", 1...3)
        let gone = add("t", "b", 10...10)
        run()
        sender.answer(1...3, failure)
        run()
        clock.advance(seconds: 2)
        run()
        sender.answer(10...10, failure)
        run()
        clock.advance(seconds: 2)
        run()
        add("t", "c", 11...11)
        run()
        sender.answer(11...11, failure)
        run()
        clock.advance(seconds: 2)
        run()
        #expect(sender.versions == [1, 2, 3])
        gone.accessible.withLock { $0 = .gone }
        sender.answer(1...3, .acknowledged)
        run()
        #expect(sender.versions == [11])
    }

    /// While an endpoint is down only the database is read whose event probes it.
    @Test(arguments: [1, 9]) func probesReadOneDatabase(eventCount: Int) {
        let sources = (0..<20).map { add("t", "d\($0)", Int64($0 * 100 + 1)...Int64($0 * 100 + eventCount)) }
        run()
        sender.answerAll(away)
        run()
        let before = sources.map { $0.accessCount.load(ordering: .relaxed) }
        // Each has been read once, and has no event that is too old.
        for _ in 0..<60 {
            clock.advance(seconds: 10)
            run()
            #expect(sender.versions.count == 1)
            sender.answerAll(away)
            run()
        }
        let after = sources.map { $0.accessCount.load(ordering: .relaxed) }
        #expect(zip(before, after).count { $0 != $1 } == 1)
        // It is back: all go on.
        clock.advance(seconds: 10)
        run()
        for _ in 0..<200 {
            sender.answerAll(.acknowledged)
            run()
        }
        clock.advance(seconds: 1)
        run()
        #expect(sources.allSatisfy { $0.state.withLock { $0.queue.isEmpty } })
    }

    /// The event that probes is of a database that can't be opened: another one probes.
    @Test func aDatabaseThatCannotBeOpenedHoldsUpNoProbe() {
        add("t", "a", 1...1)
        let first = add("t", "b", 2...2)
        run()
        sender.answerAll(away)
        run()
        let count = first.accessCount.load(ordering: .relaxed)
        first.accessible.withLock { $0 = .opening }
        clock.advance(seconds: 1)
        run()
        #expect(sender.versions == [1] && first.accessCount.load(ordering: .relaxed) == count + 1)
    }

    /// It is asked for less and less often.
    @Test func aDatabaseThatIsNotOpenedIsAskedForAfterPausesThatDouble() {
        source.accessible.withLock { $0 = .opening }
        add((1, "a"))
        for _ in 0..<600 {
            clock.advance(seconds: 1)
            run()
        }
        let count = source.accessCount.load(ordering: .relaxed)
        #expect(count > 10 && count < 20, "\(count)")
        source.accessible.withLock { $0 = .open }
        clock.advance(seconds: 60)
        run()
        #expect(sender.versions == [1])
    }

    /// Requests, bodies and lanes are shared by all triggers: what hangs leaves something for others.
    @Test func noTriggerTakesEverything() {
        let bounds = DeliveryBudget.Amounts(requests: 40, bodyBytes: 1 << 20, lanes: 100)
        let dispatcher = EventDispatcher(sender: sender, observer: observer, clock: clock, bounds: bounds)
        func add(_ trigger: String, _ database: String) {
            dispatcher.set(trigger, self.trigger(trigger, concurrency: 30))
            let source = Source()
            for version in 1...100 { source.add((Int64(version), "k\(version)")) }
            dispatcher.notify(EventDispatcher.RouteID(trigger: trigger, database: database)) { source }
            for _ in 0..<4 { dispatcher.runOnce() }
        }
        for number in 0..<50 { add("hog", "d\(number)") }
        #expect(sender.count(to: "hog") == 20)
        // Half of the lanes, and one for each of the other databases.
        #expect(dispatcher.free.lanes <= 50 && dispatcher.free.lanes >= 0)
        for number in 0..<30 { add("other\(number)", "d") }
        // Each has one at least, also when the rest is taken.
        #expect((0..<30).allSatisfy { sender.count(to: "other\($0)") > 0 })
        #expect(dispatcher.free.requests >= -30)
        // Everything arrives, and everything is given back.
        for _ in 0..<3000 where !sender.versions.isEmpty {
            sender.answerAll(.acknowledged)
            for _ in 0..<4 { dispatcher.runOnce() }
        }
        clock.advance(seconds: 1)
        for _ in 0..<4 { dispatcher.runOnce() }
        #expect(observer.settled.withLock { $0.count } == 80 * 100)
        #expect(dispatcher.free.requests == 40 && dispatcher.free.lanes == 100 && dispatcher.free.bodyBytes == 1 << 20)
    }

    @Test func bodiesUnderWayAreBounded() {
        // Each body has three bytes.
        let bounds = DeliveryBudget.Amounts(requests: 1000, bodyBytes: 30, lanes: 1000)
        let dispatcher = EventDispatcher(sender: sender, observer: observer, clock: clock, bounds: bounds)
        for name in ["a", "b"] {
            dispatcher.set(name, trigger(name, concurrency: 100))
            let source = Source()
            for version in 100...199 { source.add((Int64(version), "k\(version)")) }
            dispatcher.notify(EventDispatcher.RouteID(trigger: name, database: "d")) { source }
            dispatcher.runOnce()
        }
        #expect(sender.count(to: "a") == 5 && sender.count(to: "b") == 3)
        sender.answerAll(.acknowledged)
        dispatcher.runOnce()
        dispatcher.runOnce()
        #expect(sender.count(to: "a") >= 3 && sender.count(to: "b") >= 3)
    }

    // MARK: Ends while something is under way

    /// A probe is under way when its database is deleted: its answer counts for the endpoint all the same.
    @Test func theProbeOfADatabaseThatIsGoneHoldsUpNobody() {
        let gone = add("t", "a", 1...2)
        run()
        sender.answerAll(away)
        run()
        clock.advance(seconds: 1)
        run()
        #expect(sender.versions.count == 1)
        gone.accessible.withLock { $0 = .gone }
        dispatcher.notify(EventDispatcher.RouteID(trigger: "t", database: "a"), isEarlier: false) { gone }
        gone.state.withLock { $0.expired = 3 }
        clock.advance(seconds: 10)
        run()
        add("t", "b", 7...7)
        run()
        sender.answerAll(away)
        run()
        clock.advance(seconds: 10)
        run()
        #expect(sender.versions == [7])
    }

    /// Another address is tried at once, also while the former one is down.
    @Test func anotherAddressIsNotDown() {
        add((1, "a"))
        sender.answerAll(away)
        run()
        #expect(sender.versions.isEmpty)
        dispatcher.set("t", trigger("elsewhere"))
        run()
        #expect(sender.urls == ["elsewhere"])
    }

    /// What was sent before the removal, and is answered afterwards, frees what it had.
    @Test func aRemovedTriggerGivesBackWhatItHad() {
        let free = dispatcher.free
        add((1, "a"), (2, "b"), (3, "c"))
        #expect(dispatcher.free.requests == free.requests - 2)
        dispatcher.remove("t")
        run()
        #expect(dispatcher.free.lanes == free.lanes)
        sender.answerAll(.acknowledged)
        run()
        #expect(dispatcher.free.requests == free.requests && dispatcher.free.bodyBytes == free.bodyBytes)
        #expect(left == [1, 2, 3])
    }

    /// Another definition comes while it drains: nothing is sent, and what is answered is stored.
    @Test func aReloadWhileItDrainsSendsNothing() {
        add((1, "a"), (2, "b"), (3, "c"))
        dispatcher.startDraining()
        run()
        dispatcher.set("t", trigger("elsewhere", concurrency: 8))
        dispatcher.notify(id, isEarlier: true) { [source] in source }
        run()
        sender.answerAll(.acknowledged)
        run()
        #expect(dispatcher.hasDrained && sender.versions.isEmpty && left == [3])
    }

    /// Many documents that fail leave memory: they keep neither another document nor their own end waiting, and what has nothing to
    /// do reads nothing.
    @Test func manyDocumentsThatFailKeepNothingWaiting() {
        let bounds = DeliveryBudget.Amounts(requests: 40, bodyBytes: 1 << 20, lanes: 40, attempts: 1000)
        let dispatcher = EventDispatcher(sender: sender, observer: observer, clock: clock, bounds: bounds)
        func go(_ answer: Delivery.Answer, seconds: Double = 0) {
            for _ in 0..<4 { dispatcher.runOnce() }
            sender.answerAll(answer)
            for _ in 0..<4 { dispatcher.runOnce() }
            clock.advance(seconds: seconds)
        }
        dispatcher.set("t", trigger(concurrency: 4))
        for version in 1...200 { source.add((Int64(version), "p\(version)")) }
        dispatcher.notify(id) { [source] in source }
        for _ in 0..<100 { go(.failed(DeliveryFailure(.status(500), "no"))) }
        #expect(sender.versions.isEmpty && left.count == 200 && dispatcher.free.lanes >= 15)
        let reads = source.accessCount.load(ordering: .relaxed)
        for _ in 0..<20 { dispatcher.runOnce() }
        #expect(source.accessCount.load(ordering: .relaxed) == reads)
        // Another document's event is sent at once.
        source.add((201, "good"))
        dispatcher.notify(id) { [source] in source }
        for _ in 0..<4 { dispatcher.runOnce() }
        #expect(sender.versions == [201])
        go(.acknowledged, seconds: 2)
        // What is too old ends although the endpoint can't be reached.
        go(away, seconds: 1)
        source.state.withLock { $0.expired = 101 }
        for _ in 0..<40 { go(away, seconds: 1) }
        #expect(left == Array(101...200))
        for _ in 0..<100 where !left.isEmpty { go(.acknowledged, seconds: 2) }
        #expect(left.isEmpty && dispatcher.free.lanes == 40 && dispatcher.free.attempts == 1000)
    }

    /// Its answer is stored although the database has to be opened for it.
    @Test func whatIsAnsweredWhileItDrainsIsStoredInADatabaseThatWasClosed() {
        add((1, "a"))
        source.accessible.withLock { $0 = .opening }
        dispatcher.startDraining()
        sender.answerAll(.acknowledged)
        run()
        #expect(!dispatcher.hasDrained && left == [1])
        source.accessible.withLock { $0 = .open }
        dispatcher.notify(id) { [source] in source }
        run()
        #expect(dispatcher.hasDrained && left.isEmpty)
    }

    @Test func itRunsOnAThreadOfItsOwn() throws {
        struct Immediate: EventSending {
            func send(
                _ event: EventRequest, to target: EventSender.Target, attempt: Int,
                _ done: @escaping @Sendable (Delivery.Answer) -> Void
            ) { done(.acknowledged) }
        }
        let done = Latch()
        final class Counting: EventObserver {
            let count = Atomic(0)
            let done: Latch
            init(_ done: Latch) { self.done = done }
            func answered(_ id: EventDispatcher.RouteID, _ event: Delivery.Event, _ answer: Delivery.Answer) {}
            func settled(_ id: EventDispatcher.RouteID, _ settled: Delivery.Settled) {
                if count.add(1, ordering: .relaxed).newValue == 1000 { done.open() }
            }
        }
        let dispatcher = EventDispatcher(sender: Immediate(), observer: Counting(done))
        try dispatcher.start()
        dispatcher.set("t", trigger())
        for version in 1...1000 {
            source.add((Int64(version), "d\(version % 7)"))
            dispatcher.notify(id) { [source] in source }
        }
        done.wait()
        dispatcher.stop()
    }
}
