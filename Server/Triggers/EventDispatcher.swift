import HearthConcurrency
import HearthEvents
import HearthModel

/// Delivers the events of all triggers, on one thread: reads queues, has events sent, and settles them.
///
/// A *route* is one trigger in one database; each has a `Delivery`. Other threads only leave notes: that a route is new or
/// gone, that its queue has more, that a request was answered.
///
/// `@unchecked Sendable`: the monitor guards the notes; everything else belongs to the thread.
package final class EventDispatcher: @unchecked Sendable {
    package struct RouteID: Hashable, Sendable {
        package let trigger: String
        /// The database, or the namespace.
        package let database: String
        /// Of the trigger; see `TriggerID`.
        package let serial: UInt64

        package init(trigger: String, database: String, serial: UInt64 = 0) {
            self.trigger = trigger
            self.database = database
            self.serial = serial
        }

        var triggerID: TriggerID { TriggerID(name: trigger, serial: serial) }
    }

    /// What a trigger is, as far as its events' ways are concerned.
    package struct Trigger: Sendable, Equatable {
        package var target: EventSender.Target
        package var terms: DeliveryTerms
        /// Of the definition.
        package var revision: UInt64

        package init(target: EventSender.Target, terms: DeliveryTerms, revision: UInt64 = 0) {
            self.target = target
            self.terms = terms
            self.revision = revision
        }
    }

    private enum Note: Sendable {
        case set(String, Trigger)
        case remove(String)
        case retry(String)
        case events(RouteID, isEarlier: Bool, @Sendable () -> (any EventSource)?)
        case answer(EventRoute, Delivery.Event, Delivery.Answer, bodyBytes: Int)
        case settled(EventRoute, Result<Void, Status>)
        case drain
    }

    private let sender: any EventSending
    private let observer: any EventObserver
    private let clock: any Clock
    private let monitor = Monitor()
    private var notes: [Note] = []
    /// Routes that a note says have more events, behind which no definition has changed: one note is enough.
    private var noted: Set<RouteID> = []
    private var isStopping = false
    private var isDrained = false
    private var thread: NamedThread?

    // Of the thread.
    private var endpoints: [String: EventEndpoint] = [:]
    private var routes: [RouteID: EventRoute] = [:]
    private let budget: DeliveryBudget
    private var timers = TimerHeap<EventRoute>()
    private var probes = TimerHeap<EventEndpoint>()
    private var due = Queue<EventRoute>()
    /// Those that may have another request, and those that wait for what others have.
    private var dueEndpoints = Queue<EventEndpoint>()
    /// Nothing new is sent any more.
    private var isDraining = false

    /// Routes look for events that are too old so often.
    private static let expiryNanoseconds: UInt64 = 5_000_000_000
    /// For events that were asked for again; a day, as long as events are sent again by default.
    private static let replayNanoseconds: UInt64 = 86_400_000_000_000
    /// After the store failed.
    private static let storePauseNanoseconds: UInt64 = 1_000_000_000
    /// Between looks at a database that is not open yet, if nobody reports it: from one that doubles.
    private static let openingPauseNanoseconds: ClosedRange<UInt64> = 1_000_000_000...60_000_000_000

    /// - Parameter bounds: of all triggers together.
    package init(
        sender: any EventSending, observer: any EventObserver, clock: any Clock = SystemClock(),
        bounds: DeliveryBudget.Amounts = .all
    ) {
        budget = DeliveryBudget(bounds)
        self.sender = sender
        self.observer = observer
        self.clock = clock
    }

    /// Starts the thread if it doesn't run. By one thread at a time.
    /// - Throws: RESOURCE_EXHAUSTED when the system provides no thread.
    package func start() throws(Status) {
        if thread != nil { return }
        thread = NamedThread.start("hearth-triggers") { [self] in
            NamedThread.giveWay()
            run()
        }
        if thread == nil { throw .resourceExhausted("No thread can be started.") }
    }

    /// Sends nothing new, and waits until what was sent is answered, and that is stored.
    /// - Parameter seconds: at most so long.
    package func drain(seconds: Double) {
        // Nothing was ever sent.
        if thread == nil { return }
        startDraining()
        let end = clock.monotonicNanoseconds() + UInt64(max(0, seconds) * 1e9)
        monitor.lock()
        defer { monitor.unlock() }
        while !isDrained, clock.monotonicNanoseconds() < end {
            monitor.wait(until: MonotonicTime(nanoseconds: Int64(end)))
        }
    }

    /// Sends nothing new.
    func startDraining() { leave(.drain) }

    /// Begins nothing any more, and waits for the thread. What was sent and not answered is sent again after the next start.
    package func stop() {
        monitor.withLock {
            isStopping = true
            monitor.signal()
        }
        thread?.join()
        thread = nil
    }

    // MARK: From any thread

    /// Takes a trigger, or another definition of one.
    package func set(_ name: String, _ trigger: Trigger) { leave(.set(name, trigger)) }

    /// Ends a trigger: no event of its routes is sent or settled any more.
    package func remove(_ name: String) { leave(.remove(name)) }

    /// Has everything of a trigger that waits for another attempt, or for its endpoint to be reached, sent now.
    package func retry(_ name: String) { leave(.retry(name)) }

    /// There are events in the queue of a route, of a trigger that was `set` and is not paused. The route is made when there is
    /// none, and ends when all its events are settled.
    /// - Parameters:
    ///   - isEarlier: whether they may lie before events that were read already. They were asked for again, so that for a day
    ///     no event of the trigger is too old.
    ///   - source: makes the route's source; nil when the database is closed.
    package func notify(
        _ id: RouteID, isEarlier: Bool = false, _ source: @escaping @Sendable () -> (any EventSource)?
    ) {
        leave(.events(id, isEarlier: isEarlier, source))
    }

    private func leave(_ note: Note) {
        monitor.withLock {
            switch note {
            // Commits that come while the thread waits for a disk don't pile up.
            case .events(let id, isEarlier: false, _): if !noted.insert(id).inserted { return }
            // A note before it may have been for a trigger that was paused.
            case .set, .remove: noted = []
            default: break
            }
            notes.append(note)
            if notes.count == 1 { monitor.signal() }
        }
    }

    /// All notes, for the thread; with the monitor locked.
    private func takeNotes() -> [Note] {
        defer {
            notes = []
            noted = []
        }
        return notes
    }

    // MARK: The thread

    private func run() {
        while let notes = nextNotes() {
            advance(notes)
        }
    }

    private func advance(_ notes: [Note]) {
        for note in notes { take(note) }
        let now = clock.monotonicNanoseconds()
        while let route = timers.popDue(now) { route.markDue(&due) }
        while let endpoint = probes.popDue(now) { endpoint.markDue(&dueEndpoints) }
        while let route = due.popFirst() {
            route.isDue = false
            work(route, now)
        }
        serve(now)
        noteDrained()
    }

    /// Nothing is under way any more, and everything that was answered is stored.
    private func noteDrained() {
        if !isDraining || routes.values.contains(where: { $0.isUnderWay }) { return }
        monitor.withLock {
            isDrained = true
            monitor.signal()
        }
    }

    /// Waits for notes or for a timer; nil at the end.
    private func nextNotes() -> [Note]? {
        monitor.lock()
        defer { monitor.unlock() }
        while notes.isEmpty, !isStopping {
            let deadline = min(timers.earliestDeadline ?? .max, probes.earliestDeadline ?? .max)
            if deadline == .max {
                monitor.wait()
                continue
            }
            if deadline <= clock.monotonicNanoseconds() { break }
            monitor.wait(until: MonotonicTime(nanoseconds: Int64(deadline)))
        }
        return isStopping ? nil : takeNotes()
    }

    /// Does what is due, without a thread, for tests.
    func runOnce() {
        advance(monitor.withLock { takeNotes() })
    }

    /// For tests.
    var hasDrained: Bool { monitor.withLock { isDrained } }

    /// For tests.
    var free: DeliveryBudget.Amounts { budget.free }

    private func take(_ note: Note) {
        switch note {
        case .set(let name, let trigger): apply(trigger, to: name)
        case .remove(let name): remove(endpointOf: name)
        case .retry(let name): retry(endpointOf: name)
        case .events(let id, let isEarlier, let source):
            if isEarlier {
                endpoints[id.trigger]?.sparedUntil = clock.monotonicNanoseconds() + Self.replayNanoseconds
            }
            guard let route = routes[id] ?? newRoute(id, source) else { return }
            route.delivery.notify()
            route.pausedUntil = 0
            if isEarlier { route.delivery.readAnew() }
            route.markDue(&due)
        case .answer(let route, let event, let answer, let bodyBytes):
            route.sending -= 1
            ended(route, event, answer, bodyBytes)
            // The next probe is of the same database.
            if case .unreachable = answer, route.wantsToSend { route.endpoint.wait(route, isFirst: true) }
            route.endpoint.markDue(&dueEndpoints)
            route.markDue(&due)
        case .drain: isDraining = true
        case .settled(let route, let result):
            if case .failure = result {
                route.settled = route.settling + route.settled
                route.pausedUntil = clock.monotonicNanoseconds() + Self.storePauseNanoseconds
            } else {
                route.delivery.stored(route.settling)
            }
            route.settling = []
            route.markDue(&due)
        }
    }

    private func apply(_ trigger: Trigger, to name: String) {
        guard let endpoint = endpoints[name] else {
            endpoints[name] = EventEndpoint(trigger, budget)
            return
        }
        endpoint.change(trigger)
        endpoint.markDue(&dueEndpoints)
        for route in endpoint.routes.values {
            route.change(trigger.terms)
            route.markDue(&due)
        }
    }

    private func retry(endpointOf name: String) {
        guard let endpoint = endpoints[name] else { return }
        endpoint.delivery.moved()
        endpoint.markDue(&dueEndpoints)
        for route in endpoint.routes.values {
            route.delivery.retry()
            route.markDue(&due)
        }
    }

    private func remove(endpointOf name: String) {
        guard let endpoint = endpoints.removeValue(forKey: name) else { return }
        probes.remove(endpoint)
        while endpoint.nextWaiting() != nil {}
        for route in endpoint.routes.values { end(route) }
    }

    private func newRoute(_ id: RouteID, _ source: () -> (any EventSource)?) -> EventRoute? {
        // Of a trigger that is paused nothing is known but its queues.
        guard let endpoint = endpoints[id.trigger], !endpoint.trigger.terms.isPaused, let source = source()
        else { return nil }
        let route = EventRoute(id, source, endpoint)
        routes[id] = route
        endpoint.add(route)
        return route
    }

    private func end(_ route: EventRoute) {
        routes[route.id] = nil
        timers.remove(route)
        route.end()
    }

    // MARK: One route

    private func work(_ route: EventRoute, _ now: UInt64) {
        if route.isEnded { return }
        if now >= route.pausedUntil {
            expire(route, now)
            route.delivery.wake(now)
            if !isDraining { route.beginAnew() }
            if route.needsSource(now, isDraining) {
                use(route, now) { () throws(Status) in
                    settle(route, now)
                    if route.needsSource(now, isDraining) {
                        try read(route)
                        // They may be too old, and others behind them.
                        route.expiryAt = 0
                    }
                }
            }
        }
        conclude(route, now)
    }

    /// Opens the database for as long as something of it is needed.
    private func use(_ route: EventRoute, _ now: UInt64, _ body: () throws(Status) -> Void) {
        switch route.source.access() {
        case .gone: return end(route)
        case .opening:
            let pauses = Self.openingPauseNanoseconds
            route.openingPause = min(pauses.upperBound, max(pauses.lowerBound, route.openingPause * 2))
            route.pausedUntil = now + route.openingPause
            return
        case .open: break
        }
        defer { route.source.release() }
        route.openingPause = 0
        do throws(Status) {
            try body()
        } catch {
            // The store reports its failure itself.
            route.pausedUntil = now + Self.storePauseNanoseconds
        }
    }

    /// Ends the route, or has it go on when there is something to do.
    /// - Parameter goesOn: whether it may do so at once, before others have their time.
    private func conclude(_ route: EventRoute, _ now: UInt64, goesOn: Bool = true) {
        if route.isEnded { return }
        timers.remove(route)
        if now >= route.pausedUntil {
            if route.isIdle { return end(route) }
            if !isDraining, route.wantsToSend {
                if !goesOn { return setTimer(route, at: now) }
                route.endpoint.wait(route)
                route.endpoint.markDue(&dueEndpoints)
            } else if !isDraining, route.wantsToRepeat {
                route.endpoint.hold(route)
            }
        }
        setTimer(route, now)
    }

    // MARK: Sending

    /// Has the routes that wait for endpoints send what these may have.
    private func serve(_ now: UInt64) {
        var short: [EventEndpoint] = []
        while let endpoint = dueEndpoints.popFirst() {
            endpoint.isDue = false
            if isDraining || endpoint.trigger.terms.isPaused { continue }
            probes.remove(endpoint)
            while endpoint.delivery.mayBegin(now), let route = endpoint.nextWaiting() { serve(route, now) }
            if !endpoint.isWaitedFor { continue }
            if let time = endpoint.delivery.probeTime, time > now {
                endpoint.deadline = time
                probes.insert(endpoint)
            } else if endpoint.delivery.isShort {
                short.append(endpoint)
            }
        }
        for endpoint in short { endpoint.markDue(&dueEndpoints) }
    }

    private func serve(_ route: EventRoute, _ now: UInt64) {
        let isProbe = route.endpoint.delivery.isDown
        var count = 0
        if now >= route.pausedUntil, route.termsAfterwards == nil {
            use(route, now) { () throws(Status) in
                // One part of the queue at a time: what it holds is sent before the next is read.
                try read(route)
                // Each route that waits gets one, then this one again.
                while try sendNext(route, now) {
                    count += 1
                    if route.endpoint.isWaitedFor { break }
                }
            }
        }
        if count > 0, isProbe, route.wantsToSend { route.endpoint.wait(route, isFirst: true) }
        conclude(route, now, goesOn: count > 0)
    }

    /// - Returns: false when there is nothing to send, or it may not be sent now.
    private func sendNext(_ route: EventRoute, _ now: UInt64) throws(Status) -> Bool {
        while true {
            guard let (event, attempt) = route.delivery.next(now) else { return false }
            let answer: Delivery.Answer
            do throws(Status) {
                if let request = try route.source.request(for: event) {
                    send(request, event, attempt, route)
                    return true
                }
                answer = .gone
            } catch {
                answer = error.code == .unavailable ? .unsent : .impossible(DeliveryFailure(.cut, error.message))
            }
            ended(route, event, answer)
            if answer == .unsent { throw .unavailable("The store can't be read.") }
        }
    }

    private func send(_ request: EventRequest, _ event: Delivery.Event, _ attempt: Int, _ route: EventRoute) {
        route.sending += 1
        let bodyBytes = request.body.count
        route.endpoint.delivery.changeBodyBytes(by: bodyBytes)
        let (trigger, observer) = (route.endpoint.trigger, observer)
        sender.send(request, to: trigger.target, attempt: attempt) { [weak self] answer in
            self?.leave(.answer(route, event, answer, bodyBytes: bodyBytes))
            if let isMissing = answer.isMissing {
                observer.responded(route.id, trigger.revision, isMissing: isMissing)
            }
        }
    }

    private func read(_ route: EventRoute) throws(Status) {
        guard let wanted = route.delivery.wantsEvents else { return }
        let events = try route.source.events(after: wanted.after, countMax: wanted.countMax)
        let tooOld = route.delivery.take(events, isEnd: events.count < wanted.countMax)
        for settled in tooOld { note(settled, route) }
    }

    private func ended(
        _ route: EventRoute, _ event: Delivery.Event, _ answer: Delivery.Answer, _ bodyBytes: Int = 0
    ) {
        route.endpoint.delivery.changeBodyBytes(by: -bodyBytes)
        let now = clock.monotonicNanoseconds()
        let settled = route.delivery.ended(event, answer, now, expired: expiredVersion(route, now))
        if route.isEnded { return }
        observer.answered(route.id, event, answer)
        if let settled { note(settled, route) }
    }

    private func note(_ settled: Delivery.Settled, _ route: EventRoute) {
        route.settled.append(settled)
        observer.settled(route.id, settled)
    }

    private func expire(_ route: EventRoute, _ now: UInt64) {
        if now < route.expiryAt { return }
        route.expiryAt = now + Self.expiryNanoseconds
        for settled in route.delivery.expire(before: expiredVersion(route, now)) { note(settled, route) }
    }

    /// Events of commits before this version are too old.
    private func expiredVersion(_ route: EventRoute, _ now: UInt64) -> Int64 {
        now < route.endpoint.sparedUntil ? 0 : route.source.expiredVersion()
    }

    /// One batch at a time, and not too many a second: what comes meanwhile makes the next one. An event that was delivered
    /// and is not stored as such is sent again after a crash, as one whose answer was lost.
    private func settle(_ route: EventRoute, _ now: UInt64) {
        if route.settled.isEmpty || !route.settling.isEmpty || !route.isSettlingDue(now, isDraining) { return }
        route.settleAt = now + EventRoute.settlePauseNanoseconds
        let count = route.source.settle(route.settled) { [weak self] result in self?.leave(.settled(route, result)) }
        route.settling = Array(route.settled.prefix(count))
        route.settled.removeFirst(count)
    }

    private func setTimer(_ route: EventRoute, _ now: UInt64) {
        // While the route waits for what is under way, its ends are what goes on.
        var time = route.termsAfterwards == nil && !isDraining ? route.delivery.retryTime : nil
        if route.delivery.isWaiting { time = min(time ?? .max, route.expiryAt) }
        if !route.settled.isEmpty, route.settling.isEmpty { time = min(time ?? .max, max(now, route.settleAt)) }
        // Whatever there is to do is done then.
        if route.pausedUntil > now { time = route.pausedUntil }
        if let time { setTimer(route, at: time) }
    }

    private func setTimer(_ route: EventRoute, at time: UInt64) {
        route.deadline = time
        timers.insert(route)
    }
}
