import HearthConcurrency
import HearthEvents
import HearthModel
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthTriggers

/// Those of several routes are in `EventDispatcherTests+Sharing.swift`.
struct EventDispatcherTests {
    /// A queue in memory, which fails when a test wants it.
    final class Source: EventSource {
        struct State {
            var queue: [Delivery.Event] = []
            var settled: [Delivery.Settled] = []
            var fails = false
            var damaged: Set<Int64> = []
            var expired: Int64 = 0
            /// Completions that wait for a test; nil when none does.
            var held: [@Sendable () -> Void]?
        }

        let state = Mutex(State())
        let accessible = Mutex(EventAccess.open)
        let accessCount = Atomic(0)
        func access() -> EventAccess {
            accessCount.add(1, ordering: .relaxed)
            return accessible.withLock { $0 }
        }
        func release() {}

        func add(_ events: (Int64, String)...) {
            state.withLock { $0.queue += events.map { Delivery.Event(version: $0.0, key: Array($0.1.utf8)) } }
        }

        private func check(_ state: State) throws(Status) {
            if state.fails { throw .unavailable("The disk is full.") }
        }

        func events(after event: Delivery.Event?, countMax: Int) throws(Status) -> [Delivery.Event] {
            try state.withLock { state throws(Status) in
                try check(state)
                return Array(
                    state.queue.filter { $0.version > (event?.version ?? 0) - (event?.key.isEmpty == true ? 1 : 0) }
                        .prefix(countMax))
            }
        }

        func request(for event: Delivery.Event) throws(Status) -> EventRequest? {
            try state.withLock { state throws(Status) in
                try check(state)
                if !state.queue.contains(event) { return nil }
                if state.damaged.contains(event.version) { throw Status(.dataLoss, "It is damaged.") }
                return EventRequest(headers: [], body: Array("\(event.version)".utf8))
            }
        }

        func expiredVersion() -> Int64 { state.withLock { $0.expired } }

        func settle(
            _ settled: [Delivery.Settled], completion: @escaping @Sendable (Result<Void, Status>) -> Void
        ) -> Int {
            let (isFailing, isHeld) = state.withLock { state in
                if state.fails { return (true, false) }
                state.settled += settled
                state.queue.removeAll { event in settled.contains { $0.event == event } }
                state.held?.append { completion(.success(())) }
                return (false, state.held != nil)
            }
            if !isHeld { completion(isFailing ? .failure(.unavailable("The disk is full.")) : .success(())) }
            return settled.count
        }
    }

    /// Keeps requests until a test answers them.
    final class Sender: EventSending {
        struct Sent: Sendable {
            let url: String
            let version: Int64
            let attempt: Int
            let done: @Sendable (Delivery.Answer) -> Void
        }

        private let state = Mutex<[Sent]>([])

        func send(
            _ event: EventRequest, to target: EventSender.Target, attempt: Int,
            _ done: @escaping @Sendable (Delivery.Answer) -> Void
        ) {
            let version = Int64(String(decoding: event.body, as: UTF8.self)) ?? 0
            state.withLock { $0.append(Sent(url: target.url, version: version, attempt: attempt, done: done)) }
        }

        var versions: [Int64] { state.withLock { $0.map(\.version).sorted() } }
        var urls: [String] { state.withLock { $0.map(\.url) } }
        var attempts: [Int] { state.withLock { $0.map(\.attempt) } }

        func count(to url: String) -> Int { state.withLock { $0.count { $0.url == url } } }

        func answer(_ versions: ClosedRange<Int64>, _ answer: Delivery.Answer) {
            let sent = state.withLock { sent in
                defer { sent.removeAll { versions.contains($0.version) } }
                return sent.filter { versions.contains($0.version) }
            }
            for request in sent { request.done(answer) }
        }

        func answerAll(_ answer: Delivery.Answer) {
            let sent = state.withLock { sent in
                defer { sent = [] }
                return sent
            }
            for request in sent { request.done(answer) }
        }
    }

    final class Observer: EventObserver {
        let settled = Mutex<[Delivery.Settled]>([])
        let responded = Mutex<[Bool]>([])
        func answered(_ id: EventDispatcher.RouteID, _ event: Delivery.Event, _ answer: Delivery.Answer) {}
        func responded(_ id: EventDispatcher.RouteID, _ revision: UInt64, isMissing: Bool) {
            responded.withLock { $0.append(isMissing) }
        }
        func settled(_ id: EventDispatcher.RouteID, _ settled: Delivery.Settled) {
            self.settled.withLock { $0.append(settled) }
        }
    }

    let clock = StoppedClock()
    let sender = Sender()
    let observer = Observer()
    let source = Source()
    let dispatcher: EventDispatcher
    let away = Delivery.Answer.unreachable(DeliveryFailure(.unreachable, "refused"))
    let id = EventDispatcher.RouteID(trigger: "t", database: "d")

    init() {
        dispatcher = EventDispatcher(sender: sender, observer: observer, clock: clock)
        dispatcher.set("t", trigger())
    }

    func trigger(_ url: String = "u", concurrency: Int = 2, isPaused: Bool = false) -> EventDispatcher.Trigger {
        var terms = DeliveryTerms()
        terms.concurrency = concurrency
        terms.isPaused = isPaused
        return EventDispatcher.Trigger(target: EventSender.Target(url: url), terms: terms)
    }

    func run() { for _ in 0..<4 { dispatcher.runOnce() } }

    func add(_ events: (Int64, String)...) {
        for event in events { source.add(event) }
        dispatcher.notify(id) { [source] in source }
        run()
    }

    var left: [Int64] { source.state.withLock { $0.queue.map(\.version) } }

    @Test func eventsAreSentAndRemoved() {
        add((1, "a"), (2, "b"), (3, "c"))
        #expect(sender.versions == [1, 2])
        sender.answerAll(.acknowledged)
        run()
        #expect(sender.versions == [3] && left == [3])
        sender.answerAll(.acknowledged)
        run()
        // What is settled soon after is removed together.
        #expect(left == [3])
        clock.advance(seconds: 1)
        run()
        #expect(left.isEmpty && observer.settled.withLock { $0.count } == 3)
    }

    @Test func forADayNoEventIsTooOldThatWasAskedForAgain() {
        let count: Int64 = 50
        source.state.withLock { state in
            state.queue = (1...count).map { Delivery.Event(version: $0, key: Array("d\($0)".utf8)) }
            state.expired = 1000
        }
        dispatcher.notify(id, isEarlier: true) { [source] in source }
        for _ in 0...count {
            run()
            sender.answerAll(.acknowledged)
            clock.advance(seconds: 1)
        }
        run()
        #expect(left.isEmpty)
        let results = observer.settled.withLock { $0.map(\.result) }
        #expect(results == Array(repeating: .delivered, count: Int(count)))
        clock.advance(seconds: 86_400)
        add((60, "x"))
        sender.answerAll(.unreachable(DeliveryFailure(.unreachable, "down")))
        run()
        let last = observer.settled.withLock { $0.last }
        #expect(last?.event.version == 60 && last?.result != .delivered)
    }

    /// There may be many commits while the thread waits for a disk.
    @Test func oneNoteOfManyIsEnough() {
        let asked = SharedValue(Atomic(0))
        func notify(_ count: Int) {
            for _ in 0..<count {
                dispatcher.notify(id) {
                    asked.value.add(1, ordering: .relaxed)
                    return nil
                }
            }
        }
        for expected in 1...2 {
            notify(1000)
            run()
            #expect(asked.value.load(ordering: .relaxed) == expected)
        }
        // What was noted while the trigger was paused had no effect.
        dispatcher.set("t", trigger(isPaused: true))
        notify(1)
        dispatcher.set("t", trigger())
        notify(1)
        run()
        #expect(asked.value.load(ordering: .relaxed) == 3)
    }

    /// What is settled meanwhile makes the next batch.
    @Test func oneBatchIsStoredAtATime() {
        source.state.withLock { $0.held = [] }
        for version in 1...2 {
            add((Int64(version), "\(version)"))
            sender.answerAll(.acknowledged)
            clock.advance(seconds: 1)
            run()
            #expect(source.state.withLock { $0.settled.map(\.event.version) } == [1])
        }
        let held = source.state.withLock { state in
            defer { state.held = nil }
            return state.held ?? []
        }
        for completion in held { completion() }
        clock.advance(seconds: 1)
        run()
        #expect(source.state.withLock { $0.settled.map(\.event.version) } == [1, 2])
    }

    @Test func aRouteEndsWithItsEvents() {
        weak var gone: Source?
        do {
            let other = Source()
            gone = other
            other.add((5, "x"))
            dispatcher.notify(EventDispatcher.RouteID(trigger: "t", database: "other")) { other }
        }
        run()
        #expect(gone != nil)
        sender.answerAll(.acknowledged)
        run()
        #expect(gone == nil)
    }

    @Test func whatWasThereBeforeIsSentAfterTheOpening() {
        let other = Source()
        other.add((5, "x"))
        dispatcher.notify(EventDispatcher.RouteID(trigger: "t", database: "other")) { other }
        run()
        #expect(sender.versions == [5])
    }

    @Test func aFailedAttemptIsRepeatedAtItsTime() {
        add((1, "a"))
        sender.answerAll(.failed(DeliveryFailure(.status(500), "no")))
        run()
        #expect(sender.versions.isEmpty && left == [1])
        clock.advance(seconds: 2)
        run()
        #expect(sender.attempts == [2])
    }

    @Test func aRetryDoesNotWaitForItsTime() {
        dispatcher.set("t", trigger(concurrency: 3))
        add((1, "a"), (2, "b"))
        sender.answerAll(.failed(DeliveryFailure(.status(500), "no")))
        run()
        dispatcher.retry("another")
        run()
        #expect(sender.versions.isEmpty)
        dispatcher.retry("t")
        run()
        #expect(sender.versions == [1, 2] && sender.attempts == [2, 2])
        // Neither does the probe of an endpoint that can't be reached, after which all are sent.
        for _ in 0..<6 {
            sender.answerAll(.unreachable(DeliveryFailure(.unreachable, "refused")))
            run()
            clock.advance(seconds: 10)
            run()
        }
        sender.answerAll(.unreachable(DeliveryFailure(.unreachable, "refused")))
        run()
        #expect(sender.versions.isEmpty)
        dispatcher.retry("t")
        run()
        #expect(sender.versions == [1, 2])
        sender.answerAll(.acknowledged)
        clock.advance(seconds: 1)
        run()
        #expect(left.isEmpty)
    }

    @Test func routesOfATriggerShareItsRequests() {
        let other = Source()
        add((1, "a"), (2, "b"), (3, "c"))
        other.add((4, "x"))
        dispatcher.notify(EventDispatcher.RouteID(trigger: "t", database: "other")) { other }
        run()
        #expect(sender.versions == [1, 2])
        sender.answerAll(.acknowledged)
        run()
        #expect(sender.versions == [3, 4])
    }

    @Test func aStoreThatFailsIsTriedAgain() {
        source.state.withLock { $0.fails = true }
        add((1, "a"))
        #expect(sender.versions.isEmpty)
        source.state.withLock { $0.fails = false }
        run()
        #expect(sender.versions.isEmpty)
        clock.advance(seconds: 1)
        run()
        #expect(sender.versions == [1])
        source.state.withLock { $0.fails = true }
        sender.answerAll(.acknowledged)
        run()
        #expect(left == [1])
        source.state.withLock { $0.fails = false }
        clock.advance(seconds: 1)
        run()
        #expect(left.isEmpty && sender.versions.isEmpty)
    }

    @Test func anEventThatCannotBeReadIsADeadLetter() {
        source.state.withLock { $0.damaged = [1] }
        add((1, "a"), (2, "a"))
        #expect(sender.versions == [2] && left == [2])
        let failure = DeliveryFailure(.cut, "It is damaged.")
        #expect(observer.settled.withLock { $0.map(\.result) } == [.dead(attempts: 0, failure)])
    }

    @Test func anEventThatWasDeletedIsNotSent() {
        add((1, "a"), (2, "a"))
        source.state.withLock { $0.queue = [] }
        sender.answerAll(.acknowledged)
        run()
        #expect(sender.versions.isEmpty)
        #expect(observer.settled.withLock { $0.map(\.result) } == [.delivered, .gone])
    }

    @Test func anotherDefinitionHoldsForWhatIsSentNext() {
        dispatcher.set("t", trigger(isPaused: true))
        add((1, "a"), (2, "b"))
        #expect(sender.versions.isEmpty)
        dispatcher.set("t", trigger("elsewhere", concurrency: 1))
        dispatcher.notify(id) { [source] in source }
        run()
        #expect(sender.versions == [1] && sender.urls == ["elsewhere"])
    }

    @Test func aRouteOfATriggerThatIsPausedEndsWithWhatWasSent() {
        add((1, "a"), (2, "a"))
        dispatcher.set("t", trigger(isPaused: true))
        run()
        sender.answerAll(.acknowledged)
        run()
        #expect(sender.versions.isEmpty && left == [2])
        dispatcher.set("t", trigger())
        dispatcher.notify(id) { [source] in source }
        run()
        #expect(sender.versions == [2])
    }

    @Test func earlierEventsAreSentWhileOthersAreUnderWay() {
        dispatcher.set("t", trigger(concurrency: 3))
        add((5, "a"), (6, "b"))
        #expect(sender.versions == [5, 6])
        let earlier = [(1, "a"), (2, "c"), (3, "d")].map { Delivery.Event(version: $0.0, key: Array($0.1.utf8)) }
        source.state.withLock { $0.queue = earlier + $0.queue }
        dispatcher.notify(id, isEarlier: true) { [source] in source }
        run()
        #expect(sender.versions == [2, 5, 6])
        sender.answerAll(.acknowledged)
        run()
        #expect(sender.versions == [1, 3] && left == [1, 3])
        sender.answerAll(.acknowledged)
        run()
        clock.advance(seconds: 1)
        run()
        #expect(sender.versions.isEmpty && left.isEmpty && observer.settled.withLock { $0.count } == 5)
    }

    /// Another order begins when all that was sent is settled.
    @Test func anotherOrderWaitsForWhatIsUnderWay() {
        add((1, "a"), (2, "a"), (3, "a"))
        #expect(sender.versions == [1])
        var unordered = trigger()
        unordered.terms.isOrdered = false
        dispatcher.set("t", unordered)
        run()
        #expect(sender.versions == [1])
        sender.answerAll(.acknowledged)
        run()
        clock.advance(seconds: 1)
        run()
        #expect(sender.versions == [2, 3])
    }

    @Test func whileItDrainsNothingNewIsSent() {
        add((1, "a"), (2, "b"), (3, "c"))
        dispatcher.startDraining()
        run()
        #expect(!dispatcher.hasDrained)
        sender.answerAll(.acknowledged)
        run()
        #expect(dispatcher.hasDrained && sender.versions.isEmpty && left == [3])
    }

    @Test func aDatabaseThatIsClosedIsReadWhenItIsOpen() {
        source.accessible.withLock { $0 = .opening }
        add((1, "a"))
        #expect(sender.versions.isEmpty)
        source.accessible.withLock { $0 = .open }
        dispatcher.notify(id) { [source] in source }
        run()
        #expect(sender.versions == [1])
    }

    @Test func theRouteOfADatabaseThatIsGoneEnds() {
        weak var gone: Source?
        do {
            let source = Source()
            gone = source
            source.add((1, "a"))
            source.accessible.withLock { $0 = .gone }
            dispatcher.notify(id) { [source] in source }
        }
        run()
        #expect(gone == nil && sender.versions.isEmpty)
    }

    @Test func aRemovedTriggerSettlesNothing() {
        add((1, "a"))
        dispatcher.remove("t")
        sender.answerAll(.acknowledged)
        run()
        #expect(left == [1] && observer.settled.withLock { $0.isEmpty })
        // One of the same name begins anew.
        dispatcher.set("t", trigger())
        dispatcher.notify(id) { [source] in source }
        run()
        #expect(sender.versions == [1])
    }

    @Test func whatIsTooOldEndsWhileNobodyAnswers() {
        add((1, "a"), (2, "b"))
        sender.answerAll(.unreachable(DeliveryFailure(.unreachable, "refused")))
        run()
        source.state.withLock { $0.expired = 2 }
        clock.advance(seconds: 6)
        run()
        sender.answerAll(.unreachable(DeliveryFailure(.unreachable, "refused")))
        run()
        #expect(left == [2])
        #expect(
            observer.settled.withLock { $0.map(\.result) } == [
                .dead(attempts: 0, DeliveryFailure(.unreachable, "refused"))
            ])
    }

    @Test func whetherAnEndpointExistsIsReportedWhenItHasAnswered() {
        let cases: [(Delivery.Answer, Bool?)] = [
            (.failed(DeliveryFailure(.status(404), "")), true), (.failed(DeliveryFailure(.status(500), "")), false),
            (.failed(DeliveryFailure(.timeout, "")), false), (.acknowledged, false), (away, nil),
        ]
        for (number, (answer, isMissing)) in cases.enumerated() {
            add((Int64(number + 1), "\(number)"))
            sender.answerAll(answer)
            // Others may be sent again with it.
            let responded = observer.responded.withLock { $0 }
            #expect(Set(responded) == Set([isMissing].compactMap { $0 }), "\(answer)")
            observer.responded.withLock { $0 = [] }
            clock.advance(seconds: 3600)
            run()
        }
    }
}
