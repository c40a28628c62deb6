import Testing

@testable import HearthTriggers

/// A queue, and an owner that follows the rules of `Delivery`.
struct DeliveryOwner {
    var delivery: Delivery
    let budget: DeliveryBudget
    let endpoint: DeliveryEndpoint
    /// In the order of versions; settled ones go.
    var queue: [Delivery.Event] = []
    var now: UInt64 = 0
    var expired: Int64 = 0
    var settled: [Delivery.Settled] = []
    /// Settled by readings, and not stored.
    var tooOld: [Delivery.Settled] = []
    /// How many records of the queue were read, again and again ones too.
    var readCount = 0

    init(
        _ terms: DeliveryTerms = DeliveryTerms(), bounds: Delivery.Bounds = Delivery.Bounds(),
        sharing other: DeliveryOwner? = nil, budget: DeliveryBudget = DeliveryBudget(),
        hash: @escaping ([UInt8]) -> UInt64 = Delivery.hash
    ) {
        self.budget = other?.budget ?? budget
        endpoint = other?.endpoint ?? DeliveryEndpoint(budget)
        delivery = Delivery(terms, to: endpoint, bounds: bounds, jitter: { 1 }, hash: hash)
    }

    mutating func add(_ events: (Int64, String)...) {
        queue += events.map { Delivery.Event(version: $0.0, key: Array($0.1.utf8)) }
        delivery.notify()
    }

    /// Where the events behind one begin; a version has one event here, and one without a key is before it.
    private func index(after event: Delivery.Event?) -> Int {
        guard let event else { return 0 }
        let version = event.version + (event.key.isEmpty ? 0 : 1)
        var (lower, upper) = (0, queue.count)
        while lower < upper {
            let middle = (lower + upper) / 2
            if queue[middle].version < version { lower = middle + 1 } else { upper = middle }
        }
        return lower
    }

    mutating func read() {
        for _ in 0..<10_000 {
            guard let wanted = delivery.wantsEvents else { return }
            let rest = queue[index(after: wanted.after)...]
            readCount += min(rest.count, wanted.countMax)
            tooOld += delivery.take(Array(rest.prefix(wanted.countMax)), isEnd: rest.count <= wanted.countMax)
        }
        Issue.record("It reads and reads.")
    }

    /// One part of what is left.
    mutating func read(from isLeft: (Delivery.Event) -> Bool) {
        guard let wanted = delivery.wantsEvents else { return }
        let start = wanted.after.map { $0.version + ($0.key.isEmpty ? 0 : 1) } ?? 1
        let rest = queue[min(queue.count, Int(max(1, start)) - 1)...].lazy.filter(isLeft).prefix(wanted.countMax)
        let events = Array(rest)
        readCount += events.count
        tooOld += delivery.take(events, isEnd: events.count < wanted.countMax)
    }

    mutating func next() -> (version: Int64, attempt: Int)? {
        read()
        return delivery.next(now).map { ($0.event.version, $0.attempt) }
    }

    /// The versions and the attempts of the next two events.
    mutating func nextTwo() -> [Int64: Int] {
        let events = [next(), next()].compactMap { $0 }
        return Dictionary(uniqueKeysWithValues: events.map { ($0.version, $0.attempt) })
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
        store([result])
    }

    /// Has what is too old end, also of what is parked.
    mutating func expire() {
        store(delivery.expire(before: expired))
        delivery.wake(now)
        read()
        store(tooOld)
        tooOld = []
    }

    private mutating func store(_ results: [Delivery.Settled]) {
        settled += results
        let events = Set(results.map(\.event))
        queue.removeAll { events.contains($0) }
        delivery.stored(results)
    }

    /// Puts events into the queue that may lie before what was read.
    mutating func addAgain(_ events: [Delivery.Event]) {
        queue = (queue + events).sorted { $0.version < $1.version }
        delivery.readAnew()
    }
}
