import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTree
import Synchronization

/// One namespace's tree.
///
/// Reads are views, taken by anyone at any time. Writes queue for the writer's thread, and are answered from it when they
/// are durable.
package final class TreeDatabase: Sendable {
    package let name: String
    private let store: any Store
    private let writer: TreeWriter
    private let deferred: DeferredStore?
    private let isClosed = Atomic(false)

    /// Works things out beside the writer, unless somebody else does; it ends with the database.
    private let thread: WorkerThread<@Sendable () -> Void>?

    /// - Parameter store: holds nothing but this tree; closed with it.
    /// - Throws: what the store throws; DATA_LOSS when it is damaged.
    package convenience init(name: String, store: any Store, clock: any Clock) throws(Status) {
        try self.init(name: name, store: store, clock: clock, options: TreeWriterOptions())
    }

    /// - Parameter run: runs what is worked out beside the writer.
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

    /// Whether there is a store: a tree that nobody has written to has none.
    package var exists: Bool { deferred?.isMade ?? true }

    /// Makes the tree's store when there is none: what belongs to the tree is kept elsewhere, and needs it.
    package func makeStore() throws(Status) { try deferred?.keep() }

    /// Whether writes wait, for which nobody need hold the tree.
    package var isBusy: Bool { writer.statistics.queuedWrites > 0 }

    /// Whether a store holds what only clients can have put there: leaves, or what is to be written at their end.
    package static func hasContent(_ snapshot: any Snapshot) throws(Status) -> Bool {
        let records = KeyRange(prefix: [PathCode.Space.records])
        if try snapshot.count(.entries, records, limit: 1) > 0 { return true }
        // The first write may be a large one.
        if try snapshot.count(.entries, KeyRange(prefix: [PathCode.Space.staged]), limit: 1) > 0 { return true }
        return try snapshot.count(.meta, KeyRange(prefix: TreeMeta.journalPrefix), limit: 1) > 0
    }

    /// The tree with all that has been answered so far.
    package func view() throws(Status) -> TreeView { try writer.view() }

    /// The same for a long read, which ends with the view.
    package func view(under read: LongRead) throws(Status) -> TreeView {
        let view = try writer.view(.long)
        view.hold(read)
        return view
    }

    /// Queues a write.
    /// - Parameter completion: called once: on the writer's thread, or on this one when the write isn't even queued, for it
    ///   holds something invalid or too much is waiting.
    package func submit(_ write: TreeWrite, completion: @escaping @Sendable (TreeOutcome) -> Void) {
        submit(write, for: .server, completion: completion)
    }

    /// - Parameter requester: has its turn among others; what one connection submits and performs is done in that order.
    package func submit(
        _ write: TreeWrite, for requester: Requester, completion: @escaping @Sendable (TreeOutcome) -> Void
    ) {
        writer.submit(write, for: requester, completion)
    }

    /// Runs something on the writer's thread, after the writes that the same connection submitted before, on the tree as it is
    /// there: nothing is committed meanwhile. Writes that wait with it are made first, so that they are synced together. What
    /// was given first runs first.
    /// - Parameter job: its view is only valid during the call; when the store can't be read, everything that is asked of
    ///   it throws that error.
    /// - Returns: false when the database is closed: the job isn't run.
    @discardableResult
    package func perform(_ job: @escaping @Sendable (TreeView) -> Void) -> Bool { perform(for: .server, job) }

    @discardableResult
    package func perform(for requester: Requester, _ job: @escaping @Sendable (TreeView) -> Void) -> Bool {
        writer.perform(for: requester, job)
    }

    /// Whom commits are told to, from the next group of writes on; nil for nobody.
    package func setObserver(_ observer: (any TreeObserver)?) { writer.setObserver(observer) }

    /// Which indexes there shall be, instead of those before. New ones are filled in the background, and are used when they
    /// are complete; entries of old ones are deleted in the background.
    /// - Parameter completion: told on the writer's thread when the definitions are durable.
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

    /// Whether nothing is left to be done in the background for a large write.
    var isSettled: Bool { writer.isSettled }

    /// Whether a wide update is being made on a shadow, for tests.
    var isMakingWideUpdate: Bool { writer.isMakingWideUpdate }

    package var statistics: TreeStatistics {
        var statistics = writer.statistics
        statistics.store = store.statistics
        return statistics
    }

    /// Bytes of the store; nil when it can't tell.
    package var sizeBytes: Int? { store.sizeBytes }

    /// Ends the writer's thread, which works off what is queued, and closes the store. Once: the store may be somebody else's by
    /// the time that this object goes.
    /// - Parameter reason: what readers fail with that still use it.
    package func close(because reason: Status = .unavailable("The database is closed.")) {
        if isClosed.exchange(true, ordering: .acquiringAndReleasing) { return }
        writer.stop()
        thread?.stop()
        store.close(because: reason)
    }
}

/// What a tree's writer has done since it was opened.
package struct TreeStatistics: Sendable {
    package init() {}

    package var commits = 0
    /// Groups of writes that were made durable together.
    package var groups = 0
    /// Groups that the store refused.
    package var failedGroups = 0
    /// Writes that wait.
    package var queuedWrites = 0
    package var queuedBytes = 0
    package var store = StoreStatistics()
}
