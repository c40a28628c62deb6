import HearthModel
import HearthCache
import HearthTree

/// The engine's data on disk: known server data of listens, the locations and queries that it belongs to, and the
/// unanswered writes.
///
/// All changes of one operation of the engine are one transaction, which is committed before any callback of the
/// operation runs. A killed process leaves the state after some operation; a pending write is stored as soon as it is
/// made. Data may be older than the server's: the next listen updates it. Therefore, when the disk fails, the cache
/// stays as it is and the engine continues without it.
final class Disk {
    private let file: DiskFile
    private let report: (Status) -> Void
    private let sizeBytesMax: Int64
    private let leaves: DiskLeaves
    private let tracked: DiskQueries
    private let writes: DiskWrites
    /// Where writes are stored before the engine has them.
    let journal: WriteJournal
    private var journaled: [WriteJournal.Record]
    /// The cache is not written any more; pending writes still are, where possible.
    private var isLeftBehind = false
    private var serverUpdates = 0
    /// Answered pending writes that must be deleted from the disk: those that the present transaction deletes, and
    /// those whose deletion failed.
    private var removing: Set<Int64> = []
    private var unremoved: Set<Int64> = []

    /// The interval of size checks, in server updates.
    static let updatesPerPruning = 1000
    /// The limit for queries without users.
    static let unusedQueriesMax = 1000

    init(folder: String, sizeBytesMax: Int64, report: @escaping (Status) -> Void) throws(Status) {
        file = try DiskFile(folder: folder, report: report)
        self.report = report
        self.sizeBytesMax = sizeBytesMax
        leaves = DiskLeaves(database: file.database)
        tracked = DiskQueries(database: file.database)
        writes = DiskWrites(database: file.database)
        do throws(Status) {
            (journal, journaled) = try WriteJournal.open(file.paths, applied: writes.journalNumber()) { warning in
                report(Status(.dataLoss, warning))
            }
            try tracked.load()
        } catch {
            file.close(isClean: false)
            throw error
        }
    }

    func close() {
        journal.close()
        file.close(isClean: file.database.damage == nil)
    }

    // MARK: Operations

    /// Changes the cache as a part of the present operation.
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

    /// Called before any callback of an operation.
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

    /// The stored data of a query.
    struct Stored {
        /// The data of the location or of the query's window, if it is complete.
        var node: Node?
        /// Otherwise the complete data of locations below.
        var parts: [(path: TreePath, node: Node)] = []
    }

    /// - Parameter query: one without filters means the whole location.
    func startUsing(_ query: TreeQuery, at path: TreePath) -> Stored? {
        attempt { () throws(Status) in
            var stored = Stored(node: try self.node(query, at: path))
            if stored.node == nil, query.isUnfiltered {
                for location in tracked.completeLocations(below: path) {
                    stored.parts.append((location, try leaves.node(at: location, in: DiskLeaves.tree)))
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

    /// The data of a query, if it is complete.
    func stored(_ query: TreeQuery, at path: TreePath) -> Node? {
        attempt { () throws(Status) in
            try self.node(query, at: path).map { query.result(of: $0) }
        }
    }

    private func node(_ query: TreeQuery, at path: TreePath) throws(Status) -> Node? {
        let whole = tracked.completeLocation(atOrAbove: path)
        if !query.isUnfiltered, let own = tracked[query, path], own.isComplete {
            // Of two candidates the one with users, or else the one that was used last.
            let isWholeNewer = whole.map { $0.users > 0 || own.users == 0 && $0.lastUse > own.lastUse } ?? false
            if !isWholeNewer {
                return try leaves.node(at: .root, in: own.id)
            }
        }
        return try whole.map { _ throws(Status) in try leaves.node(at: path, in: DiskLeaves.tree) }
    }

    // MARK: Server data

    /// - Parameter changes: of locations with a listen for all data.
    func apply(_ changes: [TreeChange]) {
        attempt { () throws(Status) in
            try leaves.apply(changes, in: DiskLeaves.tree)
            for change in changes where !change.isPriority { try tracked.completeUsed(below: change.path) }
        }
    }

    /// - Parameter changes: relative to the query's location.
    func apply(_ changes: [TreeChange], to query: TreeQuery, at path: TreePath) {
        attempt { () throws(Status) in
            guard let own = tracked[query, path] else { return }
            try leaves.apply(changes, in: own.id)
            if changes.contains(where: \.path.isRoot) { try tracked.complete(own) }
        }
    }

    /// All data of a query has arrived.
    /// - Parameters:
    ///   - query: nil for the whole location.
    ///   - node: the data.
    func markComplete(_ query: TreeQuery?, at path: TreePath, _ node: @autoclosure () -> Node) {
        attempt { () throws(Status) in
            guard let own = tracked[query, path], !own.isComplete else { return }
            let change = TreeChange(path: query == nil ? path : .root, node: node())
            try leaves.apply([change], in: query == nil ? DiskLeaves.tree : own.id)
            try tracked.complete(own)
        }
    }

    /// Stores data that the server has accepted, or sent for a single read, of a location without listens.
    func keepWhole(_ node: Node, at path: TreePath) {
        attempt { () throws(Status) in
            try leaves.apply([TreeChange(path: path, node: node)], in: DiskLeaves.tree)
            if tracked.completeLocation(atOrAbove: path) == nil {
                try tracked.complete(try tracked.make(nil, at: path))
            }
        }
    }

    /// Stores the server's answer to a single read of a query.
    func keepWindow(_ node: Node, of query: TreeQuery, at path: TreePath) {
        attempt { () throws(Status) in
            let own = try tracked.make(query, at: path)
            try leaves.apply([TreeChange(path: .root, node: node)], in: own.id)
            try tracked.complete(own)
        }
    }

    // MARK: Size

    /// Called after each message of the server: at intervals it deletes unused data above the size limit.
    func countServerUpdate() {
        serverUpdates += 1
        guard serverUpdates >= Self.updatesPerPruning else { return }
        serverUpdates = 0
        prune()
    }

    /// Deletes a fifth of the unused queries at a time, the least recently used first, until the size is below the
    /// limit.
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
                try leaves.remove(at: query.path, keeping: tracked.storedLocations(below: query.path))
            }
        }
    }

    // MARK: Pending writes

    /// Stores a write immediately.
    /// - Parameter entry: of the write in the journal.
    /// - Returns: the reason when it fails.
    func save(_ write: PendingWrite, _ entry: WriteJournal.Entry?) -> Status? {
        let failure = save(write, journalNumber: entry?.number)
        if failure != nil, let entry {
            do throws(Status) { try journal.withdraw(entry) } catch { report(error) }
        }
        return failure
    }

    private func save(_ write: PendingWrite, journalNumber number: Int64?) -> Status? {
        do throws(Status) {
            try beginIfNeeded()
            try removeUnremoved()
            try writes.save(write)
            if let number { try writes.setJournalNumber(number) }
            try commit()
        } catch {
            leaveBehind(error)
            return error
        }
        if let number { journal.applied(number) }
        return nil
    }

    /// Stores the writes of calls that had returned when the last process ended, and reports those that can never be stored,
    /// which are lost.
    /// - Throws: when they cannot be stored now, or the cache is damaged: later writes must not pass them.
    func storeJournaled(_ id: () -> Int64) throws(Status) -> [PendingWrite] {
        // They may be large, and are needed once.
        defer { journaled = [] }
        var stored: [PendingWrite] = []
        for record in journaled {
            do throws(Status) {
                let write = try JournaledWrite.decode(record.contents, id: id())
                if let failure = save(write, journalNumber: record.number) { throw failure }
                stored.append(write)
            } catch {
                // What fails in every run must not keep the engine from starting.
                let isPassing = error.code == .resourceExhausted || error.code == .unavailable
                if isPassing || file.database.damage != nil { throw error }
                report(writes.unreadable(error))
                try skip(record)
            }
        }
        return stored
    }

    private func skip(_ record: WriteJournal.Record) throws(Status) {
        try beginIfNeeded()
        try writes.setJournalNumber(record.number)
        try commit()
        journal.applied(record.number)
    }

    /// When deleting fails, each later operation tries again: the next run would send a stored write again.
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

    /// Reports unreadable writes, which are not sent.
    /// - Returns: the writes, and the highest number ever used.
    func pendingWrites() -> (writes: [PendingWrite], lastID: Int64) {
        attempt { () throws(Status) in
            try (writes.all { report($0) }, writes.lastID())
        } ?? ([], 0)
    }
}

extension TreeQuery {
    /// The query's form on disk: nil for the whole location.
    fileprivate var disk: TreeQuery? { isUnfiltered ? nil : self }
}
