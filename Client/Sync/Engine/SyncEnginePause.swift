import HearthConcurrency
import HearthModel

/// The work that waits while the cache temporarily cannot be written or read: the disk is full or reports errors.
struct CachePause {
    private static let policy = Backoff.Policy(
        firstMilliseconds: 1_000, factor: 2, maxMilliseconds: 30_000, jitter: 1...1, isFirstImmediate: false)

    /// The outcome of a write that the server has decided and that is not yet in the cache. Such a write must not be
    /// sent again.
    enum WriteOutcome {
        case made(BatchResult, of: ClientUser)
        case refused(batchID: Int, Status, of: ClientUser)
    }

    var writes: [WriteOutcome] = []
    /// Lookups of documents in limbo that the server rejected.
    var events: [RemoteEvent] = []
    /// Views missed changes.
    var hasStaleViews = false
    fileprivate var retry: WorkerQueue.Delayed?
    fileprivate var backoff = Backoff(Self.policy)

    fileprivate(set) var isOn = false

    /// Something of the server's was written.
    mutating func over() { if !isOn { backoff.reset() } }

    mutating func end() {
        retry?.cancel()
        retry = nil
    }
}

/// A cache that temporarily cannot be written. The client stops reading from the server, so that it loses no changes,
/// and sends nothing more. Answers of the server that have arrived wait. Calls that need the cache fail with its error;
/// other calls continue. The client retries after one second and doubles the delay up to 30 seconds.
extension SyncEngine {
    func beginPause(because error: Status) {
        if failure != nil || pause.isOn { return }
        pause.isOn = true
        remoteStore.pause()
        onWarning("The cache temporarily cannot be used, and the client is offline until it can: \(error)")
        tryAgainLater()
    }

    private func tryAgainLater() {
        let seconds = pause.backoff.next(random: 0) / 1_000
        pause.retry = remoteStore.queue.schedule(.cacheRetry, afterSeconds: seconds) { [unowned self] in
            tryAgain()
        }
    }

    private func tryAgain() {
        if failure != nil { return }
        do throws(Status) {
            try localStore.probe()
            try settleWrites()
            try settleEvents()
            if pause.hasStaleViews {
                try recountPendingWrites()
                pause.hasStaleViews = false
                try renewViews()
            }
            if pause.hasStaleViews { return tryAgainLater() }
        } catch {
            return error.isPassing ? tryAgainLater() : fail(error)
        }
        pause.isOn = false
        remoteStore.resume()
    }

    /// Stores the outcomes of writes in the cache, in the server's order.
    func settleWrites() throws(Status) {
        while let outcome = pause.writes.first {
            let changed: [ResourcePath: ClientDocument]
            let writer: ClientUser
            switch outcome {
            case .made(let result, of: let author):
                writer = author
                changed = try localStore.asUser(writer, insteadOf: user) { () throws(Status) in
                    try localStore.acknowledge(result)
                }
                completeWaiters(result.batch.id)
                settleOverlaysLater()
            case .refused(let batchID, let error, of: let author):
                writer = author
                changed = try localStore.asUser(writer, insteadOf: user) { () throws(Status) in
                    try localStore.reject(batchID)
                }
                completeRefused(batchID, error, changed, of: writer)
            }
            pause.writes.removeFirst()
            if writer == user { pendingWrites.add(-1) }
            pause.over()
            try emit(changed)
        }
    }

    func settleEvents() throws(Status) {
        while let event = pause.events.first {
            try apply(event)
            pause.events.removeFirst()
        }
    }
}
