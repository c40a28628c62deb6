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
    /// Whether the trigger had all the requests under way that it may have.
    var isHeldBack = false
    /// Nothing new is sent until all that was sent is answered and settled; then the queue is read anew, with these terms.
    private(set) var termsAfterwards: DeliveryTerms?
    /// Requests of this route under way.
    var sending = 0
    /// When it next looks for events that are too old.
    var expiryAt: UInt64 = 0
    /// The store failed.
    var storePausedUntil: UInt64 = 0
    var deadline: UInt64 = 0
    var heapIndex = -1

    static let settlePauseNanoseconds: UInt64 = 20_000_000
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

    /// The queue has events behind which it was read already.
    func readAnew() { termsAfterwards = termsAfterwards ?? delivery.terms }

    /// Begins anew when that was asked for, and nothing is under way.
    /// - Returns: false while something is, and nothing may be sent.
    func beginAnew() -> Bool {
        guard let terms = termsAfterwards else { return true }
        guard sending == 0, settled.isEmpty, settling.isEmpty else { return false }
        delivery = Delivery(terms, to: endpoint.delivery)
        termsAfterwards = nil
        return true
    }

    func isSettlingDue(_ now: UInt64, _ isDraining: Bool) -> Bool {
        isDraining || now >= settleAt || settled.count >= Self.settledMax
    }

    /// Whether there is something to read or to store now.
    func needsSource(_ now: UInt64, _ isDraining: Bool) -> Bool {
        if !settled.isEmpty, settling.isEmpty, isSettlingDue(now, isDraining) { return true }
        if isDraining { return false }
        if termsAfterwards != nil { return sending == 0 && settled.isEmpty && settling.isEmpty }
        return delivery.wantsFollowers != nil || delivery.wantsEvents != nil
            || delivery.nextTime.map { $0 <= now } ?? false
    }

    /// Whether all events are settled, and removed from the queue; or those of a trigger that is paused, which wait there.
    var isIdle: Bool {
        if !settled.isEmpty || !settling.isEmpty || sending > 0 { return false }
        if delivery.terms.isPaused { return true }
        return !delivery.isWaiting && delivery.wantsEvents == nil && termsAfterwards == nil
    }

    /// Whether something was sent that is not answered, or answered and not stored.
    var isUnderWay: Bool { sending > 0 || !settled.isEmpty || !settling.isEmpty }

    func markDue(_ due: inout [EventRoute]) {
        if isDue || isEnded { return }
        isDue = true
        due.append(self)
    }
}

/// Where a trigger's events go.
final class EventEndpoint {
    var trigger: EventDispatcher.Trigger
    let delivery = DeliveryEndpoint()
    var routes: [EventRoute] = []

    init(_ trigger: EventDispatcher.Trigger) { self.trigger = trigger }
}

/// Is notified of what becomes of events, on the dispatcher's thread.
package protocol EventObserver: Sendable {
    /// An attempt has ended.
    func answered(_ id: EventDispatcher.RouteID, _ event: Delivery.Event, _ answer: Delivery.Answer)
    /// An event is not sent any more.
    func settled(_ id: EventDispatcher.RouteID, _ settled: Delivery.Settled)
    /// An endpoint says that it does not exist (404). On the sender's thread.
    /// - Parameter revision: of the trigger that the request was sent for.
    func missing(_ id: EventDispatcher.RouteID, _ revision: UInt64)
}

extension EventObserver {
    package func missing(_ id: EventDispatcher.RouteID, _ revision: UInt64) {}
}

extension Delivery.Answer {
    /// The endpoint says that it does not exist.
    var isMissing: Bool {
        if case .failed(let failure, _) = self { failure.kind == .status(404) } else { false }
    }
}
