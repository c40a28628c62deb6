import HearthTestSupport
import Testing

@testable import HearthTriggers

/// Random runs beside a model: answers, replays, retries, expiry and pauses, few lanes and followers, and settled events that stay in
/// the queue for a while. What is sent is the first event of its document, none is sent twice at a time, or again when it is settled,
/// and each ends as often as it was put.
struct DeliveryRunTests {
    @Test(arguments: 0..<16) func everythingIsSentInOrder(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var run = DeliveryRun(DeliveryRun.Options(seed, &random))
        run.complete(&random)
    }

    @Test(arguments: 0..<24) func everythingIsSentInOrderHoweverOftenTheQueueIsReadAnew(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var options = DeliveryRun.Options(seed, &random)
        options.replays = true
        var run = DeliveryRun(options)
        run.complete(&random)
    }

    /// Events of some documents fail, more than there are lanes, until all others have ended.
    @Test(arguments: 0..<32) func whatFailsKeepsNothingElseWaiting(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var options = DeliveryRun.Options(seed, &random)
        options.poisoned = Int.random(in: 1...40, using: &random)
        options.replays = seed % 2 == 0
        options.expires = seed % 3 == 0
        if seed % 5 == 0 { options.attemptsMax = 3 }
        var run = DeliveryRun(options)
        run.endHealthy(&random)
        run.isHealed = true
        run.complete(&random)
    }

    /// More documents fail than can be remembered: they wait in memory, and all goes on when some are settled.
    @Test(arguments: 0..<12) func moreFailuresThanAreRememberedEndLater(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var options = DeliveryRun.Options(seed, &random)
        options.poisoned = 40
        options.replays = seed % 2 == 0
        options.bounds.attempts = Int.random(in: 0...8, using: &random)
        options.isExact = false
        var run = DeliveryRun(options)
        for _ in 0..<2000 { run.step(&random) }
        run.isHealed = true
        run.complete(&random)
    }

    /// Documents with equal hashes wait for each other's time, and keep their order.
    @Test(arguments: 0..<12) func documentsWithEqualHashesKeepTheirOrder(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var options = DeliveryRun.Options(seed, &random)
        options.poisoned = 20
        options.replays = seed % 2 == 0
        options.expires = seed % 3 == 0
        options.hashCount = UInt64.random(in: 1...9, using: &random)
        var run = DeliveryRun(options)
        for _ in 0..<2000 { run.step(&random) }
        run.isHealed = true
        run.complete(&random)
    }
}

private struct DeliveryRun {
    struct Options {
        let seed: UInt64
        let isOrdered: Bool
        let concurrency: Int
        var bounds: Delivery.Bounds
        var replays = false
        var expires = false
        /// Documents whose events fail.
        var poisoned = 0
        var attemptsMax: Int?
        /// So many values of hashes of documents; nil for all.
        var hashCount: UInt64?
        /// Whether all attempts are remembered.
        var isExact = true

        init(_ seed: UInt64, _ random: inout SeededGenerator) {
            self.seed = seed
            isOrdered = seed % 4 != 3
            concurrency = Int.random(in: 1...8, using: &random)
            bounds = Delivery.Bounds(
                lanes: Int.random(in: 1...8, using: &random), followers: Int.random(in: 1...4, using: &random),
                attempts: 1000)
        }

        var terms: DeliveryTerms {
            var terms = DeliveryTerms()
            terms.isOrdered = isOrdered
            terms.concurrency = concurrency
            terms.attemptsMax = attemptsMax
            return terms
        }
    }

    let options: Options
    var owner: DeliveryOwner
    var isHealed = false
    var added: Int64 = 0
    /// How often each was put and settled.
    var put: [Delivery.Event: Int] = [:]
    var ended: [Delivery.Event: Int] = [:]
    var sending: [Delivery.Event] = []
    var failures: [Delivery.Event: Int] = [:]
    /// Settled, and still in the queue.
    var unstored: [Delivery.Settled] = []
    private let total: Int64 = 200

    init(_ options: Options) {
        self.options = options
        let count = options.hashCount
        owner = DeliveryOwner(
            options.terms, bounds: options.bounds,
            hash: { key in
                let hash = Delivery.hash(key)
                return count.map { hash % $0 } ?? hash
            })
    }

    // MARK: Ends

    /// Until nothing is left.
    mutating func complete(_ random: inout SeededGenerator) {
        run(&random) { $0.added < $0.total || !$0.owner.queue.isEmpty }
        // A reading of what was parked ends.
        owner.delivery.change(options.terms)
        read()
        let delivery = owner.delivery
        #expect(!delivery.isWaiting && owner.endpoint.sending == 0, "seed \(options.seed)")
        #expect(delivery.attempts.count == 0 && delivery.lanes.isEmpty, "seed \(options.seed)")
        #expect(owner.budget.free.lanes == DeliveryBudget.Amounts.all.lanes, "seed \(options.seed)")
        #expect(owner.budget.free.attempts == DeliveryBudget.Amounts.all.attempts, "seed \(options.seed)")
        #expect(owner.endpoint.failedLanes == 0, "seed \(options.seed)")
        #expect(ended == put, "seed \(options.seed)")
    }

    /// Until only events that fail are left.
    mutating func endHealthy(_ random: inout SeededGenerator) {
        run(&random) { run in run.added < run.total || run.owner.queue.contains { !run.isPoisoned($0) } }
    }

    private mutating func run(_ random: inout SeededGenerator, while goesOn: (DeliveryRun) -> Bool) {
        var steps = 0
        while goesOn(self) {
            steps += 1
            if steps > 50_000 { Issue.record("It doesn't end: seed \(options.seed)."); return }
            step(&random)
        }
    }

    // MARK: Steps

    mutating func step(_ random: inout SeededGenerator) {
        switch Int.random(in: 0..<30, using: &random) {
        case 0...3 where added < total: for _ in 0..<Int.random(in: 1...8, using: &random) { add(&random) }
        case 4 where added < total && options.replays: replay(&random)
        case 5: if Int.random(in: 0..<8, using: &random) == 0 { owner.delivery.retry() }
        case 6: expire(&random)
        case 7: pause(&random)
        case 8...14: send()
        case 15...22: answer(&random)
        case 23...25: store(&random)
        default:
            read()
            if let time = owner.nextTime { owner.now = max(owner.now, time) }
        }
        #expect(owner.delivery.lanes.count <= options.bounds.lanes)
        #expect(owner.delivery.attempts.count <= options.bounds.attempts)
    }

    private func isPoisoned(_ event: Delivery.Event) -> Bool { event.key.first == UInt8(ascii: "p") }

    private mutating func add(_ random: inout SeededGenerator) {
        if added == total { return }
        added += 1
        let number = Int.random(in: 0..<12, using: &random)
        if options.poisoned > 0, Int.random(in: 0..<3, using: &random) > 0 {
            put(2 * added, "p\(Int.random(in: 0..<options.poisoned, using: &random))")
        } else {
            // Half of them are of one document.
            put(2 * added, Bool.random(using: &random) ? "hot" : "d\(number)")
        }
    }

    private mutating func put(_ version: Int64, _ key: String) {
        owner.add((version, key))
        put[owner.queue.last!, default: 0] += 1
    }

    /// Of what was settled and removed, and of commits that had no event before.
    private mutating func replay(_ random: inout SeededGenerator) {
        var again: [Delivery.Event] = []
        for _ in 0..<Int.random(in: 0...5, using: &random) {
            let version = Int64.random(in: 0...added, using: &random) * 2 + 1
            let key = options.poisoned > 0 && Bool.random(using: &random) ? "p0" : "hot"
            again.append(Delivery.Event(version: version, key: Array(key.utf8)))
            if let event = ended.keys.randomElement(using: &random) { again.append(event) }
        }
        let versions = Set(owner.queue.map(\.version))
        again = Dictionary(grouping: again, by: \.version).compactMap { $0.value.first }
            .filter { !versions.contains($0.version) }
        for event in again { put[event, default: 0] += 1 }
        owner.addAgain(again)
    }

    private mutating func pause(_ random: inout SeededGenerator) {
        var terms = options.terms
        terms.isPaused = Int.random(in: 0..<4, using: &random) == 0
        owner.delivery.change(terms)
    }

    private mutating func read() {
        owner.read()
        for settled in owner.tooOld { noteTooOld(settled) }
        owner.tooOld = []
    }

    private mutating func send() {
        // A reading of what is parked may begin when there is nothing to send, and another one when that has ended.
        for _ in 0..<5 {
            read()
            if let (event, attempt) = owner.delivery.next(owner.now) { return check(event, attempt) }
        }
        // Then there is nothing to do at once.
        if !owner.endpoint.mayBegin(owner.now) { return }
        #expect(!owner.delivery.hasMore && owner.delivery.retryTime ?? .max > owner.now, "seed \(options.seed)")
    }

    private mutating func check(_ event: Delivery.Event, _ attempt: Int) {
        let settled = Set(unstored.map(\.event))
        #expect(!sending.contains(event) && owner.queue.contains(event) && !settled.contains(event))
        let before = failures[event, default: 0]
        #expect(options.isExact ? attempt == before + 1 : attempt <= before + 1, "seed \(options.seed)")
        if options.isOrdered {
            #expect(!sending.contains { $0.key == event.key })
            #expect(first(of: event, without: settled) == event, "seed \(options.seed)")
        }
        sending.append(event)
        #expect(sending.count <= options.concurrency)
    }

    private func first(of event: Delivery.Event, without settled: Set<Delivery.Event>) -> Delivery.Event? {
        owner.queue.first { $0.key == event.key && !settled.contains($0) }
    }

    private mutating func answer(_ random: inout SeededGenerator) {
        guard let index = sending.indices.randomElement(using: &random) else { return }
        let event = sending.remove(at: index)
        let failure = DeliveryFailure(.status(500), "no")
        let fails = !isHealed && isPoisoned(event)
        let answers: [Delivery.Answer] =
            fails
            ? [.failed(failure), .failed(failure), .failed(failure), .unreachable(failure), .unsent]
            : [.failed(failure), .unreachable(failure), .unsent, .acknowledged, .acknowledged, .acknowledged]
        let answer = answers.randomElement(using: &random)!
        if case .failed = answer { failures[event, default: 0] += 1 }
        guard let settled = owner.delivery.ended(event, answer, owner.now, expired: owner.expired) else { return }
        if case .dead(let attempts, _) = settled.result { checkDead(settled.event, attempts) }
        end(settled)
    }

    private func checkDead(_ event: Delivery.Event, _ attempts: Int) {
        if options.isExact { #expect(attempts == failures[event, default: 0], "seed \(options.seed)") }
        #expect(attempts <= options.attemptsMax ?? .max)
        #expect(attempts == options.attemptsMax || event.version < owner.expired)
    }

    private mutating func end(_ settled: Delivery.Settled) {
        ended[settled.event, default: 0] += 1
        failures[settled.event] = nil
        unstored.append(settled)
    }

    private mutating func expire(_ random: inout SeededGenerator) {
        if !options.expires { return }
        // Sometimes none is, as after a replay.
        owner.expired = Bool.random(using: &random) ? Int64.random(in: 0...added, using: &random) : 0
        for settled in owner.delivery.expire(before: owner.expired) { noteTooOld(settled) }
    }

    private mutating func noteTooOld(_ settled: Delivery.Settled) {
        let event = settled.event
        let before = Set(unstored.map(\.event))
        #expect(event.version < owner.expired && owner.queue.contains(event), "seed \(options.seed)")
        #expect(!before.contains(event) && !sending.contains(event), "seed \(options.seed)")
        if options.isOrdered { #expect(first(of: event, without: before) == event, "seed \(options.seed)") }
        if case .dead(let attempts, _) = settled.result { checkDead(event, attempts) }
        end(settled)
    }

    private mutating func store(_ random: inout SeededGenerator) {
        let count = Int.random(in: 0...unstored.count, using: &random)
        let stored = Array(unstored.prefix(count))
        unstored.removeFirst(count)
        let events = Set(stored.map(\.event))
        owner.queue.removeAll { events.contains($0) }
        owner.delivery.stored(stored)
    }
}
