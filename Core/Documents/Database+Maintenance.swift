import HearthEngine
import HearthModel
import Synchronization

/// What keeps a database in order: deletion of everything, of old states, and the index catalog.
extension Database {
    /// Deletes every document and the history; index definitions stay. Open transactions fail at their commit.
    package func clear(completion: @escaping @Sendable (Result<Void, Status>) -> Void) {
        pipeline.clear(completion)
    }

    /// Forgets states older than the retention, a bounded number at a time.
    /// - Parameter completion: told whether there is more to forget.
    package func collectGarbage(
        recordsMax: Int = 2000, completion: @escaping @Sendable (Result<Bool, Status>) -> Void
    ) {
        let horizon = horizon.version(newest: commitClock.lastCommit)
        let more = Mutex(false)
        let box = SharedBox(more)
        pipeline.perform(
            { transaction throws(Status) in
                let range = Feed.range(before: horizon)
                let cursor = try transaction.scan(.feed, range, reverse: false, values: false)
                var last: [UInt8]?
                var count = 0
                while count < recordsMax, try cursor.next() {
                    let key = cursor.key
                    let documentKey = Array(key.dropFirst(8))
                    let version = Self.decode(Array(key.prefix(8)))
                    if try Feed.tombstone(documentKey, in: transaction) == version {
                        try transaction.delete(.meta, Feed.tombstoneKey(documentKey))
                    }
                    last = key
                    count += 1
                }
                cursor.close()
                guard let last else { return }
                let bound = KeyRange(lower: [], upper: last + [0])
                try transaction.delete(.feed, bound, limit: recordsMax)
                // Everything at or before the last forgotten change can't be told any more.
                let earliest = Self.decode(Array(last.prefix(8)))
                try transaction.put(.meta, Self.earliestKey, Self.encode(earliest))
                box.value.withLock { $0 = count == recordsMax }
            }, completion: { result in completion(result.map { box.value.withLock { $0 } }) })
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

    /// Changes the index catalog in one step that no other change can come between, and builds what is new.
    /// - Parameters:
    ///   - resuming: also builds what an earlier run of the process left unfinished.
    ///   - change: what is wanted in place of the present catalog; ids and states are filled in. May be refused.
    ///   - installed: told which definitions are new, when writers maintain them and before they are built. Not called
    ///     when the change fails.
    ///   - completion: told when the new definitions are ready, or why not.
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
