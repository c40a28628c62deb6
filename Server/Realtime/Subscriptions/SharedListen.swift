import HearthModel
import HearthNetwork

/// The listens of one loop to one location or query, as the hub knows them. `@unchecked Sendable`: belongs to the loop.
final class SharedListen: @unchecked Sendable {
    let target: RealtimeTarget
    /// Of the first listen.
    let requester: Requester
    let loopListens: RealtimeLoopSubscriptions
    private var listens: [RealtimeSubscription] = []
    /// The hub delivers every commit from this version on.
    private var isKnown = false
    /// Whether it has ever done so.
    private var wasKnown = false
    private var waiting: [() -> Void] = []

    var loop: EventLoop { loopListens.loop }

    init(_ target: RealtimeTarget, for requester: Requester, _ loopListens: RealtimeLoopSubscriptions) {
        self.target = target
        self.requester = requester
        self.loopListens = loopListens
    }

    func add(_ listen: RealtimeSubscription) {
        listen.position = listens.count
        listens.append(listen)
    }

    func remove(_ listen: RealtimeSubscription) {
        guard listens.indices.contains(listen.position), listens[listen.position] === listen else { return }
        let last = listens.removeLast()
        if last !== listen {
            last.position = listen.position
            listens[listen.position] = last
        }
        if listens.isEmpty {
            // No listener is left that needs the window; the jobs refer to their listens, and these to this object.
            waiting = []
            loopListens.forget(self)
        }
    }

    func whenKnown(_ job: @escaping () -> Void) {
        if isKnown { job() } else { waiting.append(job) }
    }

    func becameKnown() {
        isKnown = true
        wasKnown = true
        let jobs = waiting
        waiting = []
        for job in jobs { job() }
    }

    /// The hub delivers every commit after a version.
    func becameKnown(at version: Int64) {
        // Earlier listeners missed the commits between.
        if wasKnown {
            let event = RealtimeEvent(version: version, change: .lost)
            for listen in listens { listen.take(event) }
        }
        becameKnown()
    }

    /// The hub cannot watch it.
    func fail(_ status: Status) {
        waiting = []
        for listen in listens { listen.fail(status) }
    }

    /// The listens that receive an event, at the time when it is delivered.
    func receivers(of event: RealtimeEvent) -> [RealtimeSubscription] {
        // Listens that are loaded from now on wait until the hub delivers again.
        if case .unknown = event.change { isKnown = false }
        return listens
    }
}
