import HearthConcurrency

/// One trigger in one database, for the dispatcher's thread.
///
/// `@unchecked Sendable`: everything but `id` and `source` belongs to that thread.
final class EventRoute: HeapTimer, @unchecked Sendable {
    let id: EventDispatcher.RouteID
    let source: any EventSource
    let endpoint: EventEndpoint
    var delivery: Delivery
    /// Settled events that the queue still has: those that wait, and those that are being removed.
    var settled: [Delivery.Settled] = []
    var settling: [Delivery.Settled] = []
    /// When the next of them are removed, unless there are `settledMax`.
    var settleAt: UInt64 = 0
    var isEnded = false
    var isDue = false
    /// Whether it waits for its endpoint; of the endpoint.
    fileprivate(set) var isWaiting = false
    fileprivate var isHeld = false
    /// Of another order: nothing new is sent until all that was sent is answered and settled; then the queue is read anew, with
    /// these terms.
    private(set) var termsAfterwards: DeliveryTerms?
    /// Requests of this route under way.
    var sending = 0
    /// When it next looks for events that are too old.
    var expiryAt: UInt64 = 0
    /// Nothing is read or stored before: the store failed, or is closed.
    var pausedUntil: UInt64 = 0
    /// How long it waited last for a database to be opened.
    var openingPause: UInt64 = 0
    var deadline: UInt64 = 0
    var heapIndex = -1

    static let settlePauseNanoseconds: UInt64 = 20_000_000
    /// So many are stored at once without a pause; beyond, nothing is sent until some are stored.
    private static let settledMax = 1000

    init(_ id: EventDispatcher.RouteID, _ source: any EventSource, _ endpoint: EventEndpoint) {
        self.id = id
        self.source = source
        self.endpoint = endpoint
        delivery = Delivery(endpoint.trigger.terms, to: endpoint.delivery)
    }

    func change(_ terms: DeliveryTerms) {
        if termsAfterwards != nil {
            termsAfterwards = terms
        } else if terms.isOrdered == delivery.terms.isOrdered {
            delivery.change(terms)
        } else {
            termsAfterwards = terms
        }
    }

    /// Begins anew when the order is another one, and nothing is under way.
    func beginAnew() {
        guard let terms = termsAfterwards, !isUnderWay else { return }
        delivery.end()
        delivery = Delivery(terms, to: endpoint.delivery)
        termsAfterwards = nil
    }

    /// Ends it: what is under way is not settled any more.
    func end() {
        isEnded = true
        delivery.end()
        endpoint.remove(self)
    }

    func isSettlingDue(_ now: UInt64, _ isDraining: Bool) -> Bool {
        isDraining || now >= settleAt || settled.count >= Self.settledMax
    }

    /// Whether there is something to store now, or the first events are to be read, whose age counts from then on, or those that are
    /// too old and not in memory. All others are read when the endpoint can have them: while it can't be reached, databases may be closed.
    func needsSource(_ now: UInt64, _ isDraining: Bool) -> Bool {
        if !settled.isEmpty, settling.isEmpty, isSettlingDue(now, isDraining) { return true }
        if isDraining || termsAfterwards != nil || settled.count >= Self.settledMax { return false }
        return delivery.wantsExpired || !delivery.isWaiting && delivery.wantsEvents != nil
    }

    /// Whether it has, or may have, something to send, and what was settled doesn't wait for the store.
    var wantsToSend: Bool { termsAfterwards == nil && settled.count < Self.settledMax && delivery.hasMore }

    /// Whether all that it has to send has failed, and the endpoint has enough of that.
    var wantsToRepeat: Bool { termsAfterwards == nil && settled.count < Self.settledMax && delivery.isHeld }

    /// Whether all events are settled, and removed from the queue; or those of a trigger that is paused, which wait there.
    var isIdle: Bool {
        if !settled.isEmpty || !settling.isEmpty || sending > 0 { return false }
        if delivery.terms.isPaused { return true }
        return !delivery.isWaiting && delivery.wantsEvents == nil && termsAfterwards == nil
    }

    /// Whether something was sent that is not answered, or answered and not stored.
    var isUnderWay: Bool { sending > 0 || !settled.isEmpty || !settling.isEmpty }

    func markDue(_ due: inout Queue<EventRoute>) {
        if isDue || isEnded { return }
        isDue = true
        due.append(self)
    }
}

/// Where a trigger's events go, and the routes that wait for it: one after the other gets a request. As a timer, its next probe.
final class EventEndpoint: HeapTimer {
    private(set) var trigger: EventDispatcher.Trigger
    let delivery: DeliveryEndpoint
    /// By database.
    private(set) var routes: [String: EventRoute] = [:]
    private var waiting = Queue<EventRoute>()
    /// Those that wait again when another event that has failed may be sent.
    private var held = Queue<EventRoute>()
    /// Events were asked for again: until then none is too old.
    var sparedUntil: UInt64 = 0
    var isDue = false
    var deadline: UInt64 = 0
    var heapIndex = -1

    init(_ trigger: EventDispatcher.Trigger, _ budget: DeliveryBudget) {
        self.trigger = trigger
        delivery = DeliveryEndpoint(budget, concurrency: trigger.terms.concurrency)
    }

    func change(_ new: EventDispatcher.Trigger) {
        if new.target.url != trigger.target.url { delivery.moved() }
        trigger = new
        delivery.concurrency = new.terms.concurrency
    }

    func add(_ route: EventRoute) { routes[route.id.database] = route }

    fileprivate func remove(_ route: EventRoute) {
        if routes[route.id.database] === route { routes[route.id.database] = nil }
        if route.isWaiting { waiting.retain { $0 !== route } }
        if route.isHeld { held.retain { $0 !== route } }
        (route.isWaiting, route.isHeld) = (false, false)
    }

    // MARK: The queue

    var isWaitedFor: Bool { !waiting.isEmpty || !held.isEmpty && delivery.mayRepeat }

    /// - Parameter isFirst: whether it was, and goes on: the one that probes, so that others' databases stay closed.
    func wait(_ route: EventRoute, isFirst: Bool = false) {
        if route.isWaiting || route.isEnded { return }
        route.isWaiting = true
        if isFirst { waiting.prepend(route) } else { waiting.append(route) }
    }

    /// Has it wait as soon as another event that has failed may be sent.
    func hold(_ route: EventRoute) {
        if route.isHeld || route.isWaiting || route.isEnded { return }
        route.isHeld = true
        held.append(route)
    }

    func nextWaiting() -> EventRoute? {
        if delivery.mayRepeat, let route = held.popFirst() {
            route.isHeld = false
            wait(route)
        }
        let route = waiting.popFirst()
        route?.isWaiting = false
        return route
    }

    func markDue(_ due: inout Queue<EventEndpoint>) {
        if isDue { return }
        isDue = true
        due.append(self)
    }
}

/// Is notified of what becomes of events, on the dispatcher's thread.
package protocol EventObserver: Sendable {
    /// An attempt has ended.
    func answered(_ id: EventDispatcher.RouteID, _ event: Delivery.Event, _ answer: Delivery.Answer)
    /// An event is not sent any more.
    func settled(_ id: EventDispatcher.RouteID, _ settled: Delivery.Settled)
    /// An endpoint exists, or says that it does not (404). On the sender's thread.
    /// - Parameter revision: of the trigger that the request was sent for.
    func responded(_ id: EventDispatcher.RouteID, _ revision: UInt64, isMissing: Bool)
}

extension EventObserver {
    package func responded(_ id: EventDispatcher.RouteID, _ revision: UInt64, isMissing: Bool) {}
}

extension Delivery.Answer {
    /// Whether the endpoint says that it does not exist; nil when it says nothing.
    var isMissing: Bool? {
        switch self {
        case .acknowledged: false
        case .failed(let failure, _): failure.kind == .status(404)
        case .unsent, .impossible, .gone, .unreachable: nil
        }
    }
}
