import HearthModel

/// What happens by itself from time to time: collecting garbage and filling indexes.
final class Maintenance {
    static let collectionFirstSeconds = 60.0
    static let collectionSeconds = 300.0
    static let backfillFirstSeconds = 15.0
    static let backfillSeconds = 60.0

    private unowned let engine: SyncEngine
    private let queue: WorkerQueue

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
            engine.attempt { () throws(Status) in _ = try engine.localStore.collectGarbage() }
            scheduleCollection(Self.collectionSeconds)
        }
    }

    private func scheduleBackfill(_ seconds: Double) {
        _ = queue.schedule(.indexBackfill, afterSeconds: seconds) { [weak self] in
            guard let self else { return }
            engine.attempt { () throws(Status) in try engine.localStore.backfillIndexes() }
            scheduleBackfill(Self.backfillSeconds)
        }
    }
}
