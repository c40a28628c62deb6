import HearthEngine
import HearthModel
import Synchronization

/// Maintenance of a database: deletes everything, deletes old states, and changes the index catalog.
extension Database {
    /// Deletes every document and the history; index definitions stay. Open transactions fail at their commit.
    package func clear(completion: @escaping @Sendable (Result<Void, Status>) -> Void) {
        pipeline.clear(completion)
    }

    /// Deletes states older than the retention, a bounded number at a time. Large ones take the store longer, so the time of a
    /// step is bounded, too.
    /// - Parameter completion: called with whether there is more to delete.
    package func collectGarbage(
        recordsMax: Int = 2000, completion: @escaping @Sendable (Result<Bool, Status>) -> Void
    ) {
        let horizon = horizon.version(newest: commitClock.lastCommit)
        let more = Mutex(false)
        let box = SharedBox(more)
        let recorder = pipeline.recorder.withLock { $0 }
        pipeline.perform(
            { [clock] transaction throws(Status) in
                let needed = recorder?.neededVersion
                let horizon = min(horizon, needed ?? .max)
                let range = Feed.range(before: horizon)
                let cursor = try transaction.scan(.feed, range, reverse: false, values: false)
                var last: [UInt8]?
                var count = 0
                let end = clock.monotonicNanoseconds() + Limits.garbageStepNanosecondsMax
                var isLate = false
                while count < recordsMax, !isLate, try cursor.next() {
                    let key = cursor.key
                    let documentKey = Array(key.dropFirst(8))
                    let version = Self.decode(Array(key.prefix(8)))
                    if try Feed.tombstone(documentKey, in: transaction) == version {
                        try transaction.delete(.meta, Feed.tombstoneKey(documentKey))
                    }
                    last = key
                    count += 1
                    isLate = clock.monotonicNanoseconds() > end
                }
                cursor.close()
                guard let last else { return }
                let bound = KeyRange(lower: [], upper: last + [0])
                try transaction.delete(.feed, bound, limit: recordsMax)
                // Changes at or before the last deleted one are no longer known.
                let earliest = Self.decode(Array(last.prefix(8)))
                try transaction.put(.meta, Self.earliestKey, Self.encode(earliest))
                box.value.withLock { $0 = count == recordsMax || isLate }
            }, completion: { result in completion(result.map { box.value.withLock { $0 } }) })
    }

    /// Has commits recorded from now on.
    package func setRecorder(_ recorder: (any EventRecorder)?) { pipeline.recorder.withLock { $0 = recorder } }

    /// Work on the store by the writer's thread, in a transaction of its own.
    /// - Parameter completion: called when it is durable, or has failed, on the writer's thread.
    package func perform(
        _ body: @escaping @Sendable (any StoreTransaction) throws(Status) -> Void,
        completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        pipeline.perform(body, completion: completion)
    }

    // MARK: Indexes

    /// Replaces the index catalog, and builds what is new. Definitions that stay keep their ids and entries.
    package func setCatalog(
        definitions: [IndexDefinition], overrides: [FieldOverride],
        completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        IndexBuilder(database: self, pipeline: pipeline).install(
            resuming: true, { _ in (definitions, overrides) }, installed: { _ in }, completion: completion)
    }

    /// Builds the indexes that an earlier run of the process left unfinished.
    /// - Parameter completion: called when they are ready; at once, when there are none.
    package func resumeIndexes(_ completion: @escaping @Sendable (Result<Void, Status>) -> Void) {
        if !catalog.definitions.contains(where: { $0.state == .creating }) { return completion(.success(())) }
        changeCatalog(resuming: true, { ($0.ownDefinitions, $0.overrides) }, completion: completion)
    }

    /// Changes the index catalog in one step that no other change can interrupt, and builds what is new.
    /// - Parameters:
    ///   - resuming: also builds what an earlier run of the process left unfinished.
    ///   - change: returns the new catalog for the present one; ids and states are filled in. May throw.
    ///   - installed: called with the new definitions, when writers maintain them and before they are built. Not called
    ///     when the change fails.
    ///   - completion: called when the new definitions are ready, or with the reason why not.
    package func changeCatalog(
        resuming: Bool = false,
        _ change:
            @escaping @Sendable (IndexCatalog) throws(Status) -> (
                definitions: [IndexDefinition], overrides: [FieldOverride]
            ),
        installed: @escaping @Sendable ([IndexDefinition]) -> Void = { _ in },
        completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        IndexBuilder(database: self, pipeline: pipeline).install(
            resuming: resuming, change, installed: installed, completion: completion)
    }
}
