import HearthModel
import HearthStorage
import HearthTree
import Synchronization

/// One namespace's tree.
///
/// Reads are views, taken by anyone at any time. Writes queue for the writer's thread, and are answered from it when they
/// are durable.
public final class TreeDatabase: Sendable {
    public let name: String
    private let store: any Store
    private let writer: TreeWriter
    private let isClosed = Atomic(false)

    /// - Parameter store: holds nothing but this tree; closed with it.
    /// - Throws: what the store throws; DATA_LOSS when it is damaged.
    public init(name: String, store: any Store, clock: any Clock) throws(Status) {
        self.name = name
        self.store = store
        writer = try TreeWriter(store: store, clock: clock)
    }

    deinit { close() }

    /// The tree with all that has been answered so far.
    public func view() throws(Status) -> TreeView { try writer.view() }

    /// The same for a long read, which ends with the view.
    package func view(under read: LongRead) throws(Status) -> TreeView {
        let view = try writer.view(.long)
        view.hold(read)
        return view
    }

    /// Queues a write.
    /// - Parameter completion: called once: on the writer's thread, or on this one when the write isn't even queued, for it
    ///   holds something invalid or too much is waiting.
    public func submit(_ write: TreeWrite, completion: @escaping @Sendable (TreeOutcome) -> Void) {
        writer.submit(write, completion)
    }

    /// Runs something on the writer's thread, after the writes that were submitted before, on the tree as it is there: nothing
    /// is committed meanwhile. Writes that wait with it are made first, so that they are synced together. What was given
    /// first runs first.
    /// - Parameter job: its view is only valid during the call; when the store can't be read, everything that is asked of
    ///   it throws that error.
    /// - Returns: false when the database is closed: the job isn't run.
    @discardableResult
    public func perform(_ job: @escaping @Sendable (TreeView) -> Void) -> Bool { writer.perform(job) }

    /// Whom commits are told to, from the next group of writes on; nil for nobody.
    public func setObserver(_ observer: (any TreeObserver)?) { writer.setObserver(observer) }

    /// Which indexes there shall be, instead of those before. New ones are filled in the background, and are used when they
    /// are complete; entries of old ones are deleted in the background.
    /// - Parameter completion: told on the writer's thread when the definitions are durable.
    public func setIndexes(
        _ definitions: [TreeIndexDefinition],
        completion: @escaping @Sendable (Result<Void, Status>) -> Void = { _ in }
    ) {
        writer.setIndexes(definitions, completion)
    }

    /// Definitions whose entries are complete.
    public var readyIndexes: [TreeIndexDefinition] {
        writer.indexes.all.filter { $0.state == .ready }.map(\.definition)
    }

    /// Whether entries of indexes are being made or deleted in the background.
    public var isBuilding: Bool { !writer.indexes.all.allSatisfy { $0.state == .ready } }

    public var statistics: TreeStatistics { writer.statistics }

    /// Bytes of the store; nil when it can't tell.
    public var sizeBytes: Int? { store.sizeBytes }

    /// Ends the writer's thread, which works off what is queued, and closes the store. Once: the store may be somebody else's by
    /// the time that this object goes.
    public func close() {
        if isClosed.exchange(true, ordering: .acquiringAndReleasing) { return }
        writer.stop()
        store.close()
    }
}

/// What a tree's writer has done since it was opened.
public struct TreeStatistics: Sendable {
    public init() {}

    public var commits = 0
    /// Groups of writes that were made durable together.
    public var groups = 0
    /// Groups that the store refused.
    public var failedGroups = 0
    /// Writes that wait.
    public var queuedWrites = 0
    public var queuedBytes = 0
}
