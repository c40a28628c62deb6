import HearthConcurrency
import HearthModel
import HearthNetwork

/// The listens of one loop in one namespace, and the order of the namespace's events on the loop.
///
/// `@unchecked Sendable`: belongs to the loop, except `staged`, which belongs to the writer's thread.
final class RealtimeLoopSubscriptions: @unchecked Sendable {
    /// The jobs of the loop. `notify` uses as many ticks as it needs, and the jobs behind it wait.
    private enum Step {
        case notify(SharedListen, RealtimeEvent)
        case run(() -> Void)
    }

    let loop: EventLoop
    /// The hub refers to this object. Each listen refers to the hub, so the hub exists while there are listeners.
    private weak var hub: RealtimeHub?
    private var shared: [RealtimeTarget: SharedListen] = [:]
    /// The events of the present group's commits, in order.
    var staged: [(listen: SharedListen, event: RealtimeEvent)] = []

    private var steps = Queue<Step>()
    /// The listens that have not received the present event, from `next` on.
    private var notifying: (event: RealtimeEvent, listens: [RealtimeSubscription], next: Int)?
    private var isWorking = false

    /// The milliseconds after which the loop runs other jobs in between (ours).
    private static let tickMilliseconds = 10
    /// The listens that are notified between two reads of the clock.
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

    /// Runs a job on the loop after all jobs that were added before. May be called on any thread.
    func execute(_ job: @escaping @Sendable () -> Void) {
        loop.execute { [self] in
            steps.append(.run(job))
            begin()
        }
    }

    /// Delivers the staged events of a group of commits. May be called on any thread.
    func deliver(_ batch: [(listen: SharedListen, event: RealtimeEvent)]) {
        let batch = LoopBound(batch)
        loop.execute { [self] in
            for (listen, event) in batch.value { steps.append(.notify(listen, event)) }
            begin()
        }
    }

    private func begin() {
        if !isWorking { work() }
    }

    /// Runs the waiting jobs, for one tick.
    private func work() {
        isWorking = true
        let end = MonotonicTime.now.advanced(milliseconds: Self.tickMilliseconds)
        while notifySome() || takeStep() {
            if MonotonicTime.now < end { continue }
            // All other jobs of the loop run in between.
            loop.execute { [self] in work() }
            return
        }
        isWorking = false
    }

    /// - Returns: whether there was a listen to notify.
    private func notifySome() -> Bool {
        guard let (event, listens, first) = notifying else { return false }
        let end = min(first + Self.listensPerRead, listens.count)
        notifying = end < listens.count ? (event, listens, end) : nil
        for listen in listens[first..<end] { listen.take(event) }
        return true
    }

    /// - Returns: whether there was a step to run.
    private func takeStep() -> Bool {
        switch steps.popFirst() {
        case nil: return false
        case .run(let job): job()
        case .notify(let listen, let event):
            // A listen that is added later reads a version that contains this event; one that is removed meanwhile does
            // not receive it.
            let listens = listen.receivers(of: event)
            if !listens.isEmpty { notifying = (event, listens, 0) }
        }
        return true
    }
}
