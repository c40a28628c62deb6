import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthTree
import HearthTreeStorage

/// Who is told what happens to a place. All calls come on the loop of the listen.
protocol ListenReceiver: AnyObject {
    func listen(_ listen: RealtimeSubscription, changed push: RealtimePush)
    /// Changes were lost: the whole has to be loaded.
    func listenIsStale(_ listen: RealtimeSubscription)
    /// It can't go on.
    func listen(_ listen: RealtimeSubscription, failed status: Status)
}

/// One listener's interest in a place or a query. Begins held: `load` starts it.
///
/// While it is held, changes wait, within bounds: what is read from a state of the tree goes before the changes after that
/// state, and what that state has already is left out. `@unchecked Sendable`: belongs to the loop.
package final class RealtimeSubscription: @unchecked Sendable {
    private enum Phase {
        case held
        case live
        /// Changes are dropped until it is loaded.
        case stale
        case cancelled
    }

    let target: RealtimeTarget
    let loop: EventLoop
    private let hub: RealtimeHub
    private weak var receiver: (any ListenReceiver)?
    private let shared: SharedListen
    /// Where it stands among those that share with it.
    fileprivate(set) var position = 0
    private var phase = Phase.held
    private var pending: [RealtimeEvent] = []
    private var pendingBytes = 0
    private var isOverfull = false
    /// Counts what was begun, so that what comes too late is known.
    private var turn = 0
    private var loadsInARow = 0
    /// Set when what was begun last is not wanted any more.
    private var wanted = Cancellation()
    /// Reads that workers have, or will have, also of what is not wanted any more.
    private var readings = 0
    private var idleJobs: [() -> Void] = []

    /// Loads that are begun anew because too much changed meanwhile.
    private static let loadsInARowMax = 5

    init(_ target: RealtimeTarget, _ receiver: any ListenReceiver, shared: SharedListen, hub: RealtimeHub) {
        self.target = target
        self.receiver = receiver
        self.shared = shared
        self.hub = hub
        loop = shared.loop
    }

    var isCancelled: Bool { phase == .cancelled }
    package var isLive: Bool { phase == .live }

    /// Nothing is heard of it any more.
    func cancel() {
        if phase == .cancelled { return }
        phase = .cancelled
        endTick()
        forgetPending()
        shared.remove(self)
    }

    /// Drops changes from now on; to be loaded when there is room.
    func dropChanges() {
        if phase == .cancelled { return }
        phase = .stale
        endTick()
        forgetPending()
    }

    /// What was begun is not wanted any more: it isn't read, unless it is being read now.
    private func endTick() {
        turn += 1
        wanted.cancel()
    }

    /// Runs `job` when no worker has anything to read for this: now, or later on the loop.
    func whenIdle(_ job: @escaping () -> Void) {
        if readings == 0 { job() } else { idleJobs.append(job) }
    }

    /// Keeps changes back while it is asked elsewhere whether it may go on.
    /// - Returns: for `goOn`; nil when it isn't live.
    func pause() -> Int? {
        guard phase == .live else { return nil }
        phase = .held
        endTick()
        isOverfull = false
        return turn
    }

    /// Goes on with what has changed since `pause`, unless something else was begun.
    func goOn(_ turn: Int) {
        if turn == self.turn { release(after: .min) }
    }

    /// Reads on a worker's thread, and hands over what was read, before what changed since.
    /// - Parameters:
    ///   - requester: on whose account it is read.
    ///   - done: on the loop; unless the listen was cancelled, or something else begun, meanwhile.
    func load<Content: Sendable>(
        _ kind: WorkerPool.Kind = .long, for requester: Requester = .server,
        _ read: @escaping @Sendable (TreeView) throws(Status) -> Content,
        _ done: @escaping (Result<Content, Status>) -> Void
    ) {
        begin(kind, for: requester, read) { [self] result, version in
            if isOverfull, case .success = result {
                loadsInARow += 1
                if loadsInARow > Self.loadsInARowMax {
                    return done(.failure(.unavailable("The data changes too fast to be read.")))
                }
                return load(kind, for: requester, read, done)
            }
            loadsInARow = 0
            finish(result, done, after: version)
        }
    }

    /// Asks something of a state of the tree, and goes on with what changed meanwhile.
    /// - Parameter done: on the loop, as that of `load`.
    func ask<Content: Sendable>(
        for requester: Requester = .server,
        _ question: @escaping @Sendable (TreeView) throws(Status) -> Content,
        _ done: @escaping (Result<Content, Status>) -> Void
    ) {
        begin(.brief, for: requester, question) { [self] result, _ in finish(result, done, after: .min) }
    }

    /// Hands over what was read or asked, and goes on, unless whoever takes it has begun something else.
    private func finish<Content>(
        _ result: Result<Content, Status>, _ done: (Result<Content, Status>) -> Void, after version: Int64
    ) {
        guard case .success = result else { return done(result) }
        pending.removeAll { $0.version <= version }
        pendingBytes = pending.reduce(0) { $0 + $1.sizeBytes }
        let turn = turn
        done(result)
        if turn == self.turn { release(after: .min) }
    }

    /// Keeps changes back also behind what is just being handed over, as `pause` does.
    /// - Returns: for `goOn`; nil when it is over, or has gone on.
    func stay() -> Int? {
        guard phase == .held else { return nil }
        endTick()
        return turn
    }

    private func begin<Content: Sendable>(
        _ kind: WorkerPool.Kind, for requester: Requester,
        _ read: @escaping @Sendable (TreeView) throws(Status) -> Content,
        _ done: @escaping (Result<Content, Status>, _ version: Int64) -> Void
    ) {
        if phase == .cancelled { return }
        phase = .held
        endTick()
        isOverfull = false
        let turn = turn
        let wanted = Cancellation()
        self.wanted = wanted
        let done = LoopBound(done)
        shared.whenKnown { [self] in
            guard turn == self.turn else { return }
            readings += 1
            hub.read(kind, on: loop, for: requester, cancellation: wanted, read) { [self] result, version in
                readings -= 1
                if turn == self.turn { done.value(result, version) }
                endReading()
            }
        }
    }

    private func endReading() {
        guard readings == 0, !idleJobs.isEmpty else { return }
        let jobs = idleJobs
        idleJobs = []
        for job in jobs { job() }
    }

    private func release(after version: Int64) {
        guard phase == .held else { return }
        let events = pending
        forgetPending()
        phase = .live
        let turn = turn
        if isOverfull {
            receiver?.listenIsStale(self)
            return
        }
        for event in events where event.version > version {
            if turn != self.turn { return }
            tell(event)
        }
    }

    func take(_ event: RealtimeEvent) {
        switch phase {
        case .cancelled, .stale: break
        case .live: tell(event)
        case .held:
            if isOverfull { return }
            pending.append(event)
            pendingBytes += event.sizeBytes
            if pendingBytes > Limits.realtimePendingBytesMax || pending.count > Limits.realtimePendingChangesMax {
                isOverfull = true
                forgetPending()
            }
        }
    }

    private func tell(_ event: RealtimeEvent) {
        switch event.change {
        case .push(let push): receiver?.listen(self, changed: push)
        case .lost, .unknown: receiver?.listenIsStale(self)
        }
    }

    fileprivate func fail(_ status: Status) {
        if phase != .cancelled { receiver?.listen(self, failed: status) }
    }

    private func forgetPending() {
        pending = []
        pendingBytes = 0
    }
}

/// Carries what belongs to a loop through another thread and back.
package struct LoopBound<Value>: @unchecked Sendable {
    package let value: Value
    package init(_ value: Value) { self.value = value }
}

/// The listens of one loop to one place or query: what the hub knows of them. `@unchecked Sendable`: belongs to the loop.
final class SharedListen: @unchecked Sendable {
    let target: RealtimeTarget
    /// Of the first listen.
    let requester: Requester
    let loopListens: RealtimeLoopSubscriptions
    private var listens: [RealtimeSubscription] = []
    /// Whether the hub tells of every commit from here.
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

    fileprivate func remove(_ listen: RealtimeSubscription) {
        let last = listens.removeLast()
        if last !== listen {
            last.position = listen.position
            listens[listen.position] = last
        }
        if listens.isEmpty {
            // Nobody is there any more for whom it would become known; the jobs hold their listens, and these this.
            waiting = []
            loopListens.forget(self)
        }
    }

    fileprivate func whenKnown(_ job: @escaping () -> Void) {
        if isKnown { job() } else { waiting.append(job) }
    }

    func becameKnown() {
        isKnown = true
        wasKnown = true
        let jobs = waiting
        waiting = []
        for job in jobs { job() }
    }

    /// The hub tells of every commit after a version.
    func becameKnown(at version: Int64) {
        // Those who had it before missed what came between.
        if wasKnown {
            let event = RealtimeEvent(version: version, change: .lost)
            for listen in listens { listen.take(event) }
        }
        becameKnown()
    }

    /// The hub can't watch it.
    func fail(_ status: Status) {
        waiting = []
        for listen in listens { listen.fail(status) }
    }

    /// The listens that an event is for, now that its turn has come.
    func receivers(of event: RealtimeEvent) -> [RealtimeSubscription] {
        // What is loaded from now on waits until it tells again.
        if case .unknown = event.change { isKnown = false }
        return listens
    }
}
