import HearthModel

/// Background work that runs periodically: garbage collection and index backfill.
final class Maintenance {
    static let collectionFirstSeconds = 60.0
    static let collectionSeconds = 300.0
    static let backfillFirstSeconds = 15.0
    static let backfillSeconds = 60.0
    /// The pause between two runs while more entries must be written. A new index of many documents is complete within
    /// seconds, and no run blocks the engine for long.
    static let backfillPauseSeconds = 0.01

    private unowned let engine: SyncEngine
    private let queue: WorkerQueue
    private var backfill: WorkerQueue.Delayed?

    init(_ engine: SyncEngine, _ queue: WorkerQueue) {
        self.engine = engine
        self.queue = queue
    }

    func start() {
        if engine.localStore.persistence.collector != nil { scheduleCollection(Self.collectionFirstSeconds) }
        scheduleBackfill(Self.backfillFirstSeconds)
    }

    private func scheduleCollection(_ seconds: Double) {
        _ = queue.schedule(.garbageCollection, afterSeconds: seconds) { [weak self] in
            guard let self else { return }
            engine.attemptQuietly { () throws(Status) in _ = try engine.localStore.collectGarbage() }
            scheduleCollection(Self.collectionSeconds)
        }
    }

    /// Starts to write the entries of new indexes. Call it only on the queue.
    func fillIndexesSoon() { scheduleBackfill(Self.backfillPauseSeconds) }

    private func scheduleBackfill(_ seconds: Double) {
        backfill?.cancel()
        backfill = queue.schedule(.indexBackfill, afterSeconds: seconds) { [weak self] in
            guard let self else { return }
            var count = 0
            engine.attemptQuietly { () throws(Status) in count = try engine.localStore.backfillIndexes() }
            scheduleBackfill(count < LocalStore.backfillCountMax ? Self.backfillSeconds : Self.backfillPauseSeconds)
        }
    }
}
