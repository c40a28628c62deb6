import HearthConcurrency
import HearthModel
import HearthNetwork

/// The listens of one loop in one namespace, and the order in which the loop hears of the namespace.
///
/// `@unchecked Sendable`: belongs to the loop, but for `staged`, which is the writer's thread's.
final class RealtimeLoopSubscriptions: @unchecked Sendable {
    /// What is to be done on the loop. `tell` takes as many turns as it needs, and what comes behind it waits.
    private enum Step {
        case tell(SharedListen, RealtimeEvent)
        case run(() -> Void)
    }

    let loop: EventLoop
    /// The hub holds this object. Each listen holds the hub, so it is there while anybody listens.
    private weak var hub: RealtimeHub?
    private var shared: [RealtimeTarget: SharedListen] = [:]
    /// What the commits of the present group have to tell, in order.
    var staged: [(listen: SharedListen, event: RealtimeEvent)] = []

    private var steps = Queue<Step>()
    /// Those who are still to hear of an event, from `next` on.
    private var telling: (event: RealtimeEvent, listens: [RealtimeSubscription], next: Int)?
    private var isWorking = false

    /// Milliseconds after which the loop does other things in between (ours).
    private static let turnMilliseconds = 10
    /// Listens that are told between two looks at the time.
    private static let listensPerRead = 16

    init(_ loop: EventLoop, _ hub: RealtimeHub) {
        self.loop = loop
        self.hub = hub
    }

    func listen(
        to target: RealtimeTarget, for requester: Requester, of hub: RealtimeHub, _ receiver: any ListenReceiver
    ) -> RealtimeSubscription {
        let known = shared[target]
        let shared = known ?? SharedListen(target, for: requester, self)
        let listen = RealtimeSubscription(target, receiver, shared: shared, hub: hub)
        shared.add(listen)
        if known == nil {
            self.shared[target] = shared
            hub.add(shared)
        }
        return listen
    }

    func forget(_ shared: SharedListen) {
        if self.shared[shared.target] === shared { self.shared[shared.target] = nil }
        hub?.remove(shared)
    }

    // MARK: Order

    /// Runs a job on the loop behind everything that it was handed before. On any thread.
    func execute(_ job: @escaping @Sendable () -> Void) {
        loop.execute { [self] in
            steps.append(.run(job))
            begin()
        }
    }

    /// Tells what a group of commits has staged. On any thread.
    func deliver(_ batch: [(listen: SharedListen, event: RealtimeEvent)]) {
        let batch = LoopBound(batch)
        loop.execute { [self] in
            for (listen, event) in batch.value { steps.append(.tell(listen, event)) }
            begin()
        }
    }

    private func begin() {
        if !isWorking { work() }
    }

    /// Does what waits, for one turn.
    private func work() {
        isWorking = true
        let end = MonotonicTime.now.advanced(milliseconds: Self.turnMilliseconds)
        while notifySome() || takeStep() {
            if MonotonicTime.now < end { continue }
            // Everything else of the loop comes in between.
            loop.execute { [self] in work() }
            return
        }
        isWorking = false
    }

    /// - Returns: whether there was anybody to tell.
    private func notifySome() -> Bool {
        guard let (event, listens, first) = telling else { return false }
        let end = min(first + Self.listensPerRead, listens.count)
        telling = end < listens.count ? (event, listens, end) : nil
        for listen in listens[first..<end] { listen.take(event) }
        return true
    }

    /// - Returns: whether there was a step to take.
    private func takeStep() -> Bool {
        switch steps.popFirst() {
        case nil: return false
        case .run(let job): job()
        case .tell(let listen, let event):
            // Who comes later reads a state that has this; who goes meanwhile hears nothing of it.
            let listens = listen.receivers(of: event)
            if !listens.isEmpty { telling = (event, listens, 0) }
        }
        return true
    }
}
