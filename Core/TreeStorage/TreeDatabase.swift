import HearthConcurrency
import HearthModel
import HearthEngine
import Synchronization

/// The tree of one namespace.
///
/// Reads are views, which any thread can take at any time. Writes are queued for the writer's thread, which answers
/// them when they are durable.
package final class TreeDatabase: Sendable {
    package let name: String
    private let store: any Store
    private let writer: TreeWriter
    private let deferred: DeferredStore?
    private let isClosed = Atomic(false)

    /// Runs computations beside the writer, unless the caller provides another executor; it ends with the database.
    private let thread: WorkerThread<@Sendable () -> Void>?

    /// - Parameter store: contains nothing but this tree; closed with it.
    /// - Throws: errors of the store; DATA_LOSS when it is damaged.
    package convenience init(name: String, store: any Store, clock: any Clock) throws(Status) {
        try self.init(name: name, store: store, clock: clock, options: TreeWriterOptions())
    }

    /// - Parameter run: runs the computations beside the writer.
    package convenience init(
        name: String, store: any Store, clock: any Clock,
        run: @escaping TreeBackground.Run
    ) throws(Status) {
        try self.init(
            name: name, store: store, clock: clock, options: TreeWriterOptions(), TreeBackground(run: run))
    }

    init(
        name: String, store: any Store, clock: any Clock, options: TreeWriterOptions,
        _ background: TreeBackground? = nil
    ) throws(Status) {
        self.name = name
        self.store = store
        deferred = store as? DeferredStore
        let thread = WorkerThread<@Sendable () -> Void>(name: "hearth-tree-bg") { jobs in for job in jobs { job() } }
        self.thread = background == nil ? thread : nil
        writer = try TreeWriter(
            store: store, clock: clock, options: options,
            background: background ?? TreeBackground { _, _, job in thread.push(job) })
    }

    deinit { close() }

    /// Whether there is a store: a tree without a write has none.
    package var exists: Bool { deferred?.isMade ?? true }

    /// Makes the tree's store when there is none, for data of the tree that is stored elsewhere and requires the tree.
    package func makeStore() throws(Status) { try deferred?.keep() }

    /// Whether writes wait that do not need a reference to the tree.
    package var isBusy: Bool { writer.statistics.queuedWrites > 0 }

    /// Whether the store contains data of clients: leaves, or disconnect writes.
    package static func hasContent(_ snapshot: any Snapshot) throws(Status) -> Bool {
        let records = KeyRange(prefix: [PathCode.Space.records])
        if try snapshot.count(.entries, records, limit: 1) > 0 { return true }
        // The first write may be a large one.
        if try snapshot.count(.entries, KeyRange(prefix: [PathCode.Space.staged]), limit: 1) > 0 { return true }
        return try snapshot.count(.meta, KeyRange(prefix: TreeMeta.journalPrefix), limit: 1) > 0
    }

    /// The tree with all writes that have been answered so far.
    package func view() throws(Status) -> TreeView { try writer.view() }

    /// The same for a long read, which ends with the view.
    package func view(under read: LongRead) throws(Status) -> TreeView {
        let view = try writer.view(.long)
        view.hold(read)
        return view
    }

    /// Queues a write.
    /// - Parameter completion: is called once: on the writer's thread, or on the calling thread when the write isn't
    ///   queued because it contains something invalid or too many writes wait.
    package func submit(_ write: TreeWrite, completion: @escaping @Sendable (TreeOutcome) -> Void) {
        submit(write, for: .server, completion: completion)
    }

    /// - Parameter requester: accounts are served round-robin; the writes and jobs of one connection keep their order.
    package func submit(
        _ write: TreeWrite, for requester: Requester, completion: @escaping @Sendable (TreeOutcome) -> Void
    ) {
        writer.submit(write, for: requester, completion)
    }

    /// Runs a job on the writer's thread, after the writes that the same connection submitted before, on the tree at
    /// that point: nothing is committed meanwhile. Waiting writes that were taken with it are made first, so that they
    /// are synced together. Jobs run in the order of the calls.
    /// - Parameter job: its view is only valid during the call. When the store cannot be read, every read of the view
    ///   throws that error.
    /// - Returns: false when the database is closed: the job isn't run.
    @discardableResult
    package func perform(_ job: @escaping @Sendable (TreeView) -> Void) -> Bool { perform(for: .server, job) }

    @discardableResult
    package func perform(for requester: Requester, _ job: @escaping @Sendable (TreeView) -> Void) -> Bool {
        writer.perform(for: requester, job)
    }

    /// The observer of commits, from the next group of writes on; nil for none.
    package func setObserver(_ observer: (any TreeObserver)?) { writer.setObserver(observer) }

    /// The recorder of commits, from the next group of writes on; nil for none. Without one it costs nothing.
    package func setRecorder(_ recorder: (any TreeRecorder)?) { writer.setRecorder(recorder) }

    /// Changes records that a recorder has put, in a transaction that may be shared with writes.
    /// - Parameters:
    ///   - edit: on the writer's thread; may only throw what the store throws, which fails that transaction.
    ///   - completion: called once when the change is durable, or has failed: on the writer's thread, or on this one
    ///     when too many writes wait.
    package func edit(
        _ edit: @escaping @Sendable (any StoreTransaction) throws(Status) -> Void,
        completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        var write = TreeWrite(changes: [], nowMilliseconds: 0)
        write.edit = edit
        submit(write) { outcome in
            switch outcome {
            case .committed, .stale: completion(.success(()))
            case .failed(let status): completion(.failure(status))
            }
        }
    }

    /// Replaces the definitions of indexes. New indexes are filled in the background, and are used when they are
    /// complete; entries of old ones are deleted in the background.
    /// - Parameter completion: is called on the writer's thread when the definitions are durable.
    package func setIndexes(
        _ definitions: [TreeIndexDefinition],
        completion: @escaping @Sendable (Result<Void, Status>) -> Void = { _ in }
    ) {
        writer.setIndexes(definitions, completion)
    }

    /// Whether there are any definitions, complete or not.
    package var hasIndexes: Bool { !writer.indexes.all.isEmpty }

    /// Definitions whose entries are complete.
    package var readyIndexes: [TreeIndexDefinition] {
        writer.indexes.all.filter { $0.state == .ready }.map(\.definition)
    }

    /// Whether entries of indexes are being made or deleted in the background.
    package var isBuilding: Bool { !writer.indexes.all.allSatisfy { $0.state == .ready } }

    /// Whether the background work of large writes is complete.
    var isSettled: Bool { writer.isSettled }

    /// Whether a wide update is being made on a shadow, for tests.
    var isMakingWideUpdate: Bool { writer.isMakingWideUpdate }

    package var statistics: TreeStatistics {
        var statistics = writer.statistics
        statistics.store = store.statistics
        return statistics
    }

    /// The bytes of the store; nil when it cannot report them.
    package var sizeBytes: Int? { store.sizeBytes }

    /// Ends the writer's thread, which finishes the queued writes, and closes the store. Must be called once, before
    /// another owner opens the store.
    /// - Parameter reason: the error of later reads.
    /// Whether it was closed.
    package var isEnded: Bool { isClosed.load(ordering: .acquiring) }

    package func close(because reason: Status = .unavailable("The database is closed.")) {
        if isClosed.exchange(true, ordering: .acquiringAndReleasing) { return }
        writer.stop()
        thread?.stop()
        store.close(because: reason)
    }
}
