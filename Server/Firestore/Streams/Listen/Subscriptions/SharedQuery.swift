import HearthConcurrency
import HearthModel
import HearthDocuments

/// A query that one or more targets of a loop watch. The effect of a commit on it is computed once for all of them.
/// `@unchecked Sendable`: belongs to the loop.
final class SharedQuery: @unchecked Sendable {
    /// Equal for equal queries.
    let digest: ByteDigest
    let live: LiveQuery
    /// On the account of the first watcher.
    private let held: MemoryReservation
    private(set) var targets: [ObjectIdentifier: ListenSubscription] = [:]
    /// The window of a query with a limit or an offset.
    private(set) var watched: WatchedWindow
    /// The last result, in this tick of the loop.
    private var window: WindowResult?
    private var waiting: [Int64: [(Result<WindowResult, Status>) -> Void]] = [:]
    /// Cancels the work of workers; replaced when nobody watches the query any more.
    private var cancellation = Cancellation()
    /// For tests: results that were found in the store.
    private(set) var resultsFound = 0

    private static let unwanted = Status(.cancelled, "Nobody watches the query any more.")

    init(_ digest: ByteDigest, _ live: LiveQuery, _ held: MemoryReservation) {
        self.digest = digest
        self.live = live
        self.held = held
        watched = WatchedWindow(live)
    }

    func add(_ target: ListenSubscription) { targets[ObjectIdentifier(target)] = target }

    func remove(_ target: ListenSubscription) {
        targets[ObjectIdentifier(target)] = nil
        guard targets.isEmpty else { return }
        // From here on nothing reports changes.
        watched = WatchedWindow(live)
        window = nil
        cancellation.cancel()
        cancellation = Cancellation()
        let unwanted = waiting.values.flatMap { $0 }
        waiting = [:]
        for done in unwanted { done(.failure(Self.unwanted)) }
    }

    // MARK: Windows

    /// Applies a change of a document that matches the query, or matched it.
    /// - Parameter after: nil when it no longer matches.
    /// - Returns: whether the change can be seen in the window.
    func take(
        key: [UInt8], before: FieldTable?, after: (fields: FieldTable, updateVersion: Int64)?, _ version: Int64
    ) throws(Status) -> Bool { try watched.take(key: key, before: before, after: after, version) }

    /// Everything was deleted.
    func forgetWindow(_ version: Int64) {
        window = nil
        watched.forget(version)
    }

    /// See `WatchedWindow.changes(since:at:)`.
    func changes(since version: Int64, at now: Int64) -> [(key: [UInt8], updateVersion: Int64?)]? {
        watched.changes(since: version, at: now)
    }

    /// Windows above this size are found by a worker.
    private static let inlineResultsMax = 300

    private var isSmall: Bool {
        let query = live.query.query
        let (size, overflow) = (query.limit ?? .max).addingReportingOverflow(query.offset)
        return !overflow && size <= Self.inlineResultsMax
    }

    /// The window of a query with a limit or an offset at a version.
    /// - Parameter done: called on the loop, now or later.
    func results(
        at version: Int64, in listeners: LoopSubscriptions, _ service: FirestoreService, for requester: Requester,
        _ done: @escaping (Result<WindowResult, Status>) -> Void
    ) {
        if let window, window.version == version { return done(.success(window)) }
        if waiting[version] != nil {
            waiting[version]?.append(done)
            return
        }
        do throws(Status) {
            let memory = service.memory.sorting.reservation(for: requester)
            let view = try listeners.database.view(atVersion: version)
            if let documents = try watched.documents(at: version) {
                let result = try WindowResult(documents, view, memory)
                share(result, in: listeners)
                return done(.success(result))
            }
            let cacheMemory = watched.needsCache() ? service.memory.cachedWindows.reservation(for: requester) : nil
            let run = try WindowRun(live, view, memory, cacheMemory: cacheMemory)
            if run.isLight, isSmall, let result = try run.finish(onLoop: true) {
                try note(result)
                share(result, in: listeners)
                return done(.success(result))
            }
            waiting[version] = [done]
            watched.beginFinding(service.memory.cachedWindows.reservation(for: requester))
            find(at: version, in: listeners, service, for: requester, memory, cacheMemory)
        } catch {
            done(.failure(error))
        }
    }

    private func note(_ result: WindowResult) throws(Status) {
        resultsFound += result.resultsFound
        try watched.note(found: result)
    }

    /// Holds a result, with its snapshot, for the other streams of this tick.
    private func share(_ result: WindowResult, in listeners: LoopSubscriptions) {
        window = result
        listeners.loop.execute { [weak self] in self?.window = nil }
    }

    /// Has a worker find the window for the callers that wait for a version.
    private func find(
        at version: Int64, in listeners: LoopSubscriptions, _ service: FirestoreService, for requester: Requester,
        _ memory: MemoryReservation, _ cacheMemory: MemoryReservation?
    ) {
        let (database, live, pool, cancellation) = (listeners.database, live, service.pool, cancellation)
        let found: @Sendable (Result<WindowResult, Status>) -> Void = { [self] result in
            listeners.loop.execute { [self] in
                // The callers that watched the query then have been answered.
                guard cancellation === self.cancellation else { return }
                let result = result.flatMap { found in
                    Result { () throws(Status) in
                        try note(found)
                        return found
                    }
                }
                watched.endFinding()
                for done in waiting.removeValue(forKey: version) ?? [] { done(result) }
            }
        }
        service.longReads.whenFree(for: requester, cancellation: cancellation) { read in
            switch read {
            case .failure(let status): found(.failure(status))
            case .success(let read):
                pool.runInSlices(
                    .short, for: requester, cancellation: cancellation, refused: { found(.failure($0)) }
                ) { slice in
                    found(
                        Result { () throws(Status) in
                            let view = try database.view(atVersion: version, under: read)
                            return try Self.find(live, view, memory, cacheMemory) { () throws(Status) in
                                slice.giveWay()
                                try cancellation.check()
                            }
                        })
                }
            }
        }
    }

    /// - Parameter check: called regularly; ends the run when it throws.
    private static func find(
        _ live: LiveQuery, _ view: ReadView, _ memory: MemoryReservation, _ cacheMemory: MemoryReservation?,
        check: @escaping () throws(Status) -> Void
    ) throws(Status) -> WindowResult {
        do throws(Status) {
            let run = try WindowRun(live, view, memory, cacheMemory: cacheMemory, check: check)
            guard let result = try run.finish(onLoop: false) else {
                throw .internalError("A window has ended early.")
            }
            return result
        } catch {
            // The search for cached results must not use up the memory of the window itself.
            guard cacheMemory != nil, error.code == .resourceExhausted else { throw error }
            return try find(live, view, memory, nil, check: check)
        }
    }
}
