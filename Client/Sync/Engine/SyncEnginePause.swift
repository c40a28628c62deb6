import HearthModel

/// What waits while the cache can't be written or read: a disk that is full, or answers with errors.
struct CachePause {
    static let secondsMin = 1.0
    static let secondsMax = 30.0

    /// What the server has made of writes and the cache doesn't have yet. Such a write must not be sent again.
    enum WriteOutcome {
        case made(BatchResult, of: ClientUser)
        case refused(batchID: Int, Status, of: ClientUser)
    }

    var writes: [WriteOutcome] = []
    /// Lookups of documents in limbo that the server refused.
    var events: [RemoteEvent] = []
    /// News passed views by.
    var hasStaleViews = false
    fileprivate var retry: WorkerQueue.Delayed?
    fileprivate var seconds = Self.secondsMin

    fileprivate(set) var isOn = false

    /// Something of the server's was written.
    mutating func over() { if !isOn { seconds = Self.secondsMin } }

    mutating func end() {
        retry?.cancel()
        retry = nil
    }
}

/// A cache that can't be written for a while: nothing more comes from the server, so that nothing of it is lost, and nothing more
/// is sent; what the server has answered waits. Calls that need the cache fail with its error, the others go on. It is tried
/// again after a second, and less and less often up to every half minute.
extension SyncEngine {
    func beginPause(because error: Status) {
        if failure != nil || pause.isOn { return }
        pause.isOn = true
        remoteStore.pause()
        onWarning("The cache can't be used at the moment, and the client is offline until it can: \(error)")
        tryAgainLater()
    }

    private func tryAgainLater() {
        pause.retry = remoteStore.queue.schedule(.cacheRetry, afterSeconds: pause.seconds) { [unowned self] in
            tryAgain()
        }
        pause.seconds = min(pause.seconds * 2, CachePause.secondsMax)
    }

    private func tryAgain() {
        if failure != nil { return }
        do throws(Status) {
            try localStore.probe()
            try settleWrites()
            try settleEvents()
            if pause.hasStaleViews {
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

    /// Takes what the server has made of writes into the cache, in its order.
    func settleWrites() throws(Status) {
        while let outcome = pause.writes.first {
            let changed: [ResourcePath: ClientDocument]
            switch outcome {
            case .made(let result, let writer):
                changed = try localStore.asUser(writer, insteadOf: user) { () throws(Status) in
                    try localStore.acknowledge(result)
                }
                completeWaiters(result.batch.id)
                settleOverlaysLater()
            case .refused(let batchID, let error, let writer):
                changed = try localStore.asUser(writer, insteadOf: user) { () throws(Status) in
                    try localStore.reject(batchID)
                }
                completeRefused(batchID, error, changed, of: writer)
            }
            pause.writes.removeFirst()
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
