import HearthModel
import HearthCache
import HearthTree

/// What the engine keeps on disk: the server's data as far as it was listened to, which places and queries that is, and the
/// writes that have no answer.
///
/// All that one operation of the engine changes is one transaction, ended before anybody is told of the operation. A process
/// that is killed leaves the state after some operation; only a pending write is there as soon as it is made. Data that is
/// older than the server's is nothing bad: the next listen brings it up to date. So when the disk fails, the cache is left as
/// it is and the engine goes on without it.
final class Disk {
    private let file: DiskFile
    private let report: (Status) -> Void
    private let sizeBytesMax: Int64
    private let leaves: DiskLeaves
    private let tracked: DiskQueries
    private let writes: DiskWrites
    /// The cache isn't kept any more; pending writes are, as far as that goes.
    private var isLeftBehind = false
    private var serverUpdates = 0
    /// Pending writes that have their answers, and are to go from the disk: those that went in the present transaction, and those
    /// that could not.
    private var removing: Set<Int64> = []
    private var unremoved: Set<Int64> = []

    /// How often the size is looked at, in server updates.
    static let updatesPerPruning = 1000
    /// Queries that nobody uses.
    static let unusedQueriesMax = 1000

    init(folder: String, sizeBytesMax: Int64, report: @escaping (Status) -> Void) throws(Status) {
        file = try DiskFile(folder: folder, report: report)
        self.report = report
        self.sizeBytesMax = sizeBytesMax
        leaves = DiskLeaves(database: file.database)
        tracked = DiskQueries(database: file.database)
        writes = DiskWrites(database: file.database)
        do throws(Status) {
            try tracked.load()
        } catch {
            file.close(isClean: false)
            throw error
        }
    }

    func close() { file.close(isClean: file.database.damage == nil) }

    // MARK: Operations

    /// Does something to the cache as a part of the present operation.
    private func attempt<Result>(_ body: () throws(Status) -> Result?) -> Result? {
        if isLeftBehind { return nil }
        do throws(Status) {
            try beginIfNeeded()
            return try body()
        } catch {
            leaveBehind(error)
            return nil
        }
    }

    private func beginIfNeeded() throws(Status) {
        if !file.database.isInTransaction { try file.database.begin() }
    }

    private func leaveBehind(_ error: Status) {
        isLeftBehind = true
        unremoved.formUnion(removing)
        removing = []
        report(Status(error.code, "The cache is not kept any longer in this run: \(error.message)"))
        do throws(Status) {
            try file.database.rollBack()
        } catch {
            report(error)
        }
    }

    /// Before anybody is told of an operation.
    func endOperation() {
        guard file.database.isInTransaction || !unremoved.isEmpty else { return }
        do throws(Status) {
            try beginIfNeeded()
            try removeUnremoved()
            try commit()
        } catch {
            leaveBehind(error)
        }
    }

    private func commit() throws(Status) {
        try file.database.commit()
        removing = []
    }

    private func removeUnremoved() throws(Status) {
        for id in unremoved { try writes.remove(id) }
        removing.formUnion(unremoved)
        unremoved = []
    }

    // MARK: Queries

    /// What is known of a query.
    struct Stored {
        /// The data of its place, or of its window, if there is all of it.
        var node: Node?
        /// Else what is known completely below its place.
        var parts: [(path: TreePath, node: Node)] = []
    }

    /// - Parameter query: one without bounds is its place as a whole.
    func startUsing(_ query: TreeQuery, at path: TreePath) -> Stored? {
        attempt { () throws(Status) in
            var stored = Stored(node: try self.node(query, at: path))
            if stored.node == nil, query.isUnfiltered {
                for place in tracked.completePlaces(below: path) {
                    stored.parts.append((place, try leaves.node(at: place, in: DiskLeaves.tree)))
                }
            }
            try tracked.use(query.disk, at: path)
            return stored
        }
    }

    func stopUsing(_ query: TreeQuery, at path: TreePath) {
        attempt { () throws(Status) in
            if let unused = try tracked.stopUsing(query.disk, at: path) { try remove([unused]) }
        }
    }

    /// The data of a query, if all of it is there.
    func stored(_ query: TreeQuery, at path: TreePath) -> Node? {
        attempt { () throws(Status) in
            try self.node(query, at: path).map { query.result(of: $0) }
        }
    }

    private func node(_ query: TreeQuery, at path: TreePath) throws(Status) -> Node? {
        let whole = tracked.completePlace(onTheWayTo: path)
        if !query.isUnfiltered, let own = tracked[query, path], own.isComplete {
            // Of two the one that is kept current, or was last.
            let isWholeNewer = whole.map { $0.users > 0 || own.users == 0 && $0.lastUse > own.lastUse } ?? false
            if !isWholeNewer {
                return try leaves.node(at: .root, in: own.id)
            }
        }
        return try whole.map { _ throws(Status) in try leaves.node(at: path, in: DiskLeaves.tree) }
    }

    // MARK: Server data

    /// - Parameter changes: of places that are listened to as a whole.
    func apply(_ changes: [TreeChange]) {
        attempt { () throws(Status) in
            try leaves.apply(changes, in: DiskLeaves.tree)
            for change in changes where !change.isPriority { try tracked.completeUsed(below: change.path) }
        }
    }

    /// - Parameter changes: relative to the query's place.
    func apply(_ changes: [TreeChange], to query: TreeQuery, at path: TreePath) {
        attempt { () throws(Status) in
            guard let own = tracked[query, path] else { return }
            try leaves.apply(changes, in: own.id)
            if changes.contains(where: \.path.isRoot) { try tracked.complete(own) }
        }
    }

    /// All of a query's data has come.
    /// - Parameters:
    ///   - query: nil for the place as a whole.
    ///   - node: the data.
    func markComplete(_ query: TreeQuery?, at path: TreePath, _ node: @autoclosure () -> Node) {
        attempt { () throws(Status) in
            guard let own = tracked[query, path], !own.isComplete else { return }
            let change = TreeChange(path: query == nil ? path : .root, node: node())
            try leaves.apply([change], in: query == nil ? DiskLeaves.tree : own.id)
            try tracked.complete(own)
        }
    }

    /// What the server has taken, or answered to a single read, of a place that nobody listens to.
    func keepWhole(_ node: Node, at path: TreePath) {
        attempt { () throws(Status) in
            try leaves.apply([TreeChange(path: path, node: node)], in: DiskLeaves.tree)
            if tracked.completePlace(onTheWayTo: path) == nil { try tracked.complete(try tracked.make(nil, at: path)) }
        }
    }

    /// The server's answer to a single read of a query.
    func keepWindow(_ node: Node, of query: TreeQuery, at path: TreePath) {
        attempt { () throws(Status) in
            let own = try tracked.make(query, at: path)
            try leaves.apply([TreeChange(path: .root, node: node)], in: own.id)
            try tracked.complete(own)
        }
    }

    // MARK: Size

    /// After each message of the server: now and then what nobody uses is removed, if it is too much.
    func countServerUpdate() {
        serverUpdates += 1
        guard serverUpdates >= Self.updatesPerPruning else { return }
        serverUpdates = 0
        prune()
    }

    /// A fifth of what is unused goes at a time, what was used longest ago first, until the rest fits.
    func prune() {
        attempt { () throws(Status) in
            while true {
                let unused = tracked.unused
                if unused.isEmpty { return }
                let isTooMuch = try leaves.sizeBytes() > sizeBytesMax || unused.count > Self.unusedQueriesMax
                if !isTooMuch { return }
                try remove(Array(unused.prefix(max(1, unused.count / 5))))
            }
        }
    }

    private func remove(_ queries: [DiskQueries.Query]) throws(Status) {
        for query in queries {
            try tracked.remove(query)
            if query.query != nil {
                try leaves.removeAll(in: query.id)
            } else if !tracked.isKept(at: query.path) {
                try leaves.remove(at: query.path, keeping: tracked.keptPlaces(below: query.path))
            }
        }
    }

    // MARK: Pending writes

    /// Keeps a write at once.
    /// - Returns: why that wasn't possible.
    func save(_ write: PendingWrite) -> Status? {
        do throws(Status) {
            try beginIfNeeded()
            try removeUnremoved()
            try writes.save(write)
            try commit()
            return nil
        } catch {
            leaveBehind(error)
            return error
        }
    }

    /// Where the disk doesn't take it now, it is tried with each later operation: what is left would be sent again by the next run.
    func remove(_ id: Int64) {
        do throws(Status) {
            try beginIfNeeded()
            try writes.remove(id)
            removing.insert(id)
        } catch {
            unremoved.insert(id)
            leaveBehind(error)
        }
    }

    /// What can't be read of them is told of, and isn't sent.
    /// - Returns: with the highest number that was ever given to one.
    func pendingWrites() -> (writes: [PendingWrite], lastID: Int64) {
        attempt { () throws(Status) in
            try (writes.all { report($0) }, writes.lastID())
        } ?? ([], 0)
    }
}

extension TreeQuery {
    /// As the disk names it: nil for the place as a whole.
    fileprivate var disk: TreeQuery? { isUnfiltered ? nil : self }
}
