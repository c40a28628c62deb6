import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthTreeStorage

/// One listener's interest in a location or a query. It begins paused: `load` starts it.
///
/// While it is paused, changes wait, within bounds. Data that is read from a version of the tree is delivered before
/// the changes after that version, and changes that the version already contains are omitted. `@unchecked Sendable`:
/// belongs to the loop.
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
    /// Its index among the listens that share the query.
    var position = 0
    private var phase = Phase.held
    private var pending: [RealtimeEvent] = []
    private var pendingBytes = 0
    private var isOverfull = false
    /// Counts the operations that were begun, so that a late result is recognized.
    private var token = 0
    private var loadsInARow = 0
    /// Set when the last operation is not wanted any more.
    private var wanted = Cancellation()
    /// The reads that workers run or will run, also those that are not wanted any more.
    private var readings = 0
    private var idleJobs: [() -> Void] = []

    /// The number of loads that were repeated because too much changed meanwhile.
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

    /// Delivers no more events.
    func cancel() {
        if phase == .cancelled { return }
        phase = .cancelled
        endOperation()
        forgetPending()
        shared.remove(self)
    }

    /// Drops changes from now on. Must be loaded when there is capacity.
    func dropChanges() {
        if phase == .cancelled { return }
        phase = .stale
        endOperation()
        forgetPending()
    }

    /// Cancels the present operation: it is not read, unless the read already runs.
    private func endOperation() {
        token += 1
        wanted.cancel()
    }

    /// Runs `job` when no worker has a read for this listen: now, or later on the loop.
    func whenIdle(_ job: @escaping () -> Void) {
        if readings == 0 { job() } else { idleJobs.append(job) }
    }

    /// Holds changes back while its right to continue is checked.
    /// - Returns: the token for `goOn`; nil when the listen isn't live.
    func pause() -> Int? {
        guard phase == .live else { return nil }
        phase = .held
        endOperation()
        isOverfull = false
        return token
    }

    /// Continues with the changes since `pause`, unless another operation was begun.
    func goOn(_ token: Int) {
        if token == self.token { release(after: .min) }
    }

    /// Reads on a worker's thread, and delivers the data before the changes that followed it.
    /// - Parameters:
    ///   - requester: the account that is charged for the read.
    ///   - done: is called on the loop, unless the listen was cancelled or another operation begun meanwhile.
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

    /// Evaluates something on a version of the tree, and continues with the changes that followed it.
    /// - Parameter done: is called on the loop, as that of `load`.
    func ask<Content: Sendable>(
        for requester: Requester = .server,
        _ question: @escaping @Sendable (TreeView) throws(Status) -> Content,
        _ done: @escaping (Result<Content, Status>) -> Void
    ) {
        begin(.brief, for: requester, question) { [self] result, _ in finish(result, done, after: .min) }
    }

    /// Delivers the result, and continues unless the receiver has begun another operation.
    private func finish<Content>(
        _ result: Result<Content, Status>, _ done: (Result<Content, Status>) -> Void, after version: Int64
    ) {
        guard case .success = result else { return done(result) }
        pending.removeAll { $0.version <= version }
        pendingBytes = pending.reduce(0) { $0 + $1.sizeBytes }
        let token = token
        done(result)
        if token == self.token { release(after: .min) }
    }

    /// Holds changes back also during the delivery of a result, as `pause` does.
    /// - Returns: the token for `goOn`; nil when the listen has ended or has continued.
    func stay() -> Int? {
        guard phase == .held else { return nil }
        endOperation()
        return token
    }

    private func begin<Content: Sendable>(
        _ kind: WorkerPool.Kind, for requester: Requester,
        _ read: @escaping @Sendable (TreeView) throws(Status) -> Content,
        _ done: @escaping (Result<Content, Status>, _ version: Int64) -> Void
    ) {
        if phase == .cancelled { return }
        phase = .held
        endOperation()
        isOverfull = false
        let token = token
        let wanted = Cancellation()
        self.wanted = wanted
        let done = LoopBound(done)
        shared.whenKnown { [self] in
            guard token == self.token else { return }
            readings += 1
            hub.read(kind, on: loop, for: requester, cancellation: wanted, read) { [self] result, version in
                readings -= 1
                if token == self.token { done.value(result, version) }
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
        let token = token
        if isOverfull {
            receiver?.listenIsStale(self)
            return
        }
        for event in events where event.version > version {
            if token != self.token { return }
            notify(event)
        }
    }

    func take(_ event: RealtimeEvent) {
        switch phase {
        case .cancelled, .stale: break
        case .live: notify(event)
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

    private func notify(_ event: RealtimeEvent) {
        switch event.change {
        case .push(let push): receiver?.listen(self, changed: push)
        case .lost, .unknown: receiver?.listenIsStale(self)
        }
    }

    func fail(_ status: Status) {
        if phase != .cancelled { receiver?.listen(self, failed: status) }
    }

    private func forgetPending() {
        pending = []
        pendingBytes = 0
    }
}
