import HearthCache
import HearthModel
import HearthTree

/// The client's engine: a program's view of a database, online and offline.
///
/// The invariant: an observer of a query sees the known server data, with the program's unanswered writes applied,
/// then ordered and filtered. `ServerCache` holds the first, `WriteTree` the second, a `View` the third. `SyncTree`
/// holds the views of all locations and updates those that a change affects.
///
/// It does not use sockets, threads or clocks. One serial queue of the caller calls everything here, including the
/// connection's callbacks. Events and completions run on this queue, in order, when the engine's state is consistent
/// again, so they may call the engine. Only a transaction's function must not.
///
/// Source: the documentation of the Realtime Database's SDKs and their observable behaviour.
final class DatabaseEngine {
    /// The engine's dependencies.
    struct Environment {
        /// The local clock, milliseconds since 1970.
        var now: () -> Int64
        /// Calls back on the engine's queue; the returned function cancels the timer.
        var schedule: (_ afterMilliseconds: Int, _ body: @escaping () -> Void) -> (() -> Void)
        /// The disk failed; the engine continues with the data in memory.
        var report: (Status) -> Void
    }

    let connection: any DatabaseConnection
    let environment: Environment
    let outputs = OutputQueue()
    let disk: Disk?
    let sync: SyncTree
    let info: InfoTree
    let transactions: Transactions
    let pendingWrites: PendingWriteCounter
    var disconnectWrites = DisconnectWrites()
    let ids: WriteIDs
    private var lastObserver = 0
    private var isClosed = false
    /// While all writes are cancelled: these writes and their completions.
    private var purged: [(id: Int64, completion: () -> Void)]?

    /// Applies and sends the writes that an earlier run stored on disk.
    /// - Parameters:
    ///   - connection: the caller makes the engine its delegate.
    ///   - folder: the folder of this database's cache; nil for none. Only one engine at a time may use it.
    ///   - cacheSizeBytesMax: above this size, data of queries without observers is deleted.
    /// - Throws: FAILED_PRECONDITION when another client uses the folder; the errors of the disk.
    init(
        connection: any DatabaseConnection, environment: Environment, folder: String? = nil,
        cacheSizeBytesMax: Int64 = 10 << 20
    ) throws(Status) {
        self.connection = connection
        self.environment = environment
        if let folder {
            disk = try Disk(folder: folder, sizeBytesMax: cacheSizeBytesMax, report: environment.report)
        } else {
            disk = nil
        }
        let info = InfoTree(outputs: outputs)
        let ids = WriteIDs()
        let sync = SyncTree(connection: connection, disk: disk, outputs: outputs)
        self.info = info
        self.ids = ids
        self.sync = sync
        transactions = Transactions(sync: sync, connection: connection, outputs: outputs) { node, path, isVisible in
            PendingWrite(
                id: ids.next(), path: path, isMerge: false, changes: [TreeChange(path: path, node: node)],
                isVisible: isVisible, madeAtMilliseconds: environment.now() + info.serverTimeOffsetMilliseconds)
        }
        let pendingWrites = PendingWriteCounter(outputs: outputs)
        self.pendingWrites = pendingWrites
        outputs.finish = { [disk] in
            sync.removeSpent()
            info.sync.removeSpent()
            pendingWrites.take(sync.writes.writes.count)
            disk?.endOperation()
        }
        if let disk {
            perform {
                let (writes, lastID) = disk.pendingWrites()
                self.ids.skip(to: lastID)
                self.restore(writes)
            }
            do throws(Status) {
                let journaled = try disk.storeJournaled { ids.next() }
                perform { restore(journaled) }
            } catch {
                close(WireFailure(error))
                throw error
            }
        }
    }

    /// Releases the folder and fails all pending requests; nothing may be called afterwards. Writes on disk stay
    /// there.
    func close(_ failure: WireFailure) {
        isClosed = true
        pendingWrites.removeAll()
        perform {
            transactions.abort(at: [.root], failure)
            connection.giveUp(failure)
        }
        disk?.close()
        // It has a reference to the object that has the outputs.
        outputs.finish = {}
    }

    func perform<Result>(_ body: () -> Result) -> Result { outputs.perform(body) }

    /// The estimated time of the server's clock.
    var serverNowMilliseconds: Int64 { environment.now() + info.serverTimeOffsetMilliseconds }

    // MARK: Observers

    /// Known data of the location is delivered immediately, by the usual callbacks.
    /// - Parameters:
    ///   - isSingle: whether it is removed after its first event.
    ///   - onCancel: the server revoked the listen; no event follows.
    func observe(
        _ query: TreeQuery, at path: TreePath, kinds: EngineEventKinds, isSingle: Bool = false,
        onEvent: @escaping (EngineEvent) -> Void, onCancel: @escaping (WireFailure) -> Void
    ) -> ObserverID {
        lastObserver += 1
        let observer = EngineObserver(
            id: ObserverID(number: lastObserver), kinds: kinds, isSingle: isSingle, onEvent: onEvent, onCancel: onCancel
        )
        perform { tree(of: path).add(observer, to: query, at: path) }
        return observer.id
    }

    /// Has no effect for a removed observer.
    func remove(_ id: ObserverID) {
        perform {
            sync.remove(id)
            info.sync.remove(id)
        }
    }

    /// Removes all observers of one query at one location, except those of transactions.
    func removeAll(_ query: TreeQuery, at path: TreePath) {
        perform { tree(of: path).removeAll(query, at: path) { !$0.kinds.isEmpty } }
    }

    /// Keeps a query's data current without an observer. Not for `.info`.
    func keepSynced(_ isKept: Bool, _ query: TreeQuery, at path: TreePath) {
        if path.first == InfoTree.name { return }
        perform { sync.keepSynced(isKept, query, at: path) }
    }

    private func tree(of path: TreePath) -> SyncTree { path.first == InfoTree.name ? info.sync : sync }

    // MARK: Writes

    /// - Parameters:
    ///   - entry: of the write in the disk's journal.
    ///   - completion: its argument is nil when the server has the write.
    func set(
        _ node: Node, at path: TreePath, _ entry: WriteJournal.Entry? = nil,
        completion: @escaping (WireFailure?) -> Void
    ) {
        let write = PendingWrite(
            id: ids.next(), path: path, isMerge: false, changes: [TreeChange(path: path, node: node)],
            madeAtMilliseconds: serverNowMilliseconds)
        make(write, entry, completion)
    }

    /// - Parameter priority: a leaf, or empty for none.
    func setPriority(
        _ priority: Node, at path: TreePath, _ entry: WriteJournal.Entry? = nil,
        completion: @escaping (WireFailure?) -> Void
    ) {
        set(priority, at: path.child(.priority), entry, completion: completion)
    }

    /// - Parameter members: locations below `path`, none of which is an ancestor of another; they may end in
    ///   `.priority`.
    func update(
        _ members: [(path: TreePath, node: Node)], at path: TreePath, _ entry: WriteJournal.Entry? = nil,
        completion: @escaping (WireFailure?) -> Void
    ) {
        if members.isEmpty { return perform { outputs.append { completion(nil) } } }
        let write = PendingWrite(
            id: ids.next(), path: path, isMerge: true,
            changes: members.map { TreeChange(path: path + $0.path, node: $0.node) },
            madeAtMilliseconds: serverNowMilliseconds)
        make(write, entry, completion)
    }

    private func make(
        _ write: PendingWrite, _ entry: WriteJournal.Entry?, _ completion: @escaping (WireFailure?) -> Void
    ) {
        perform {
            // A write that cannot be stored fails: otherwise a restart would lose it silently.
            if let status = disk?.save(write, entry) {
                outputs.append { completion(WireFailure("disk", status.message)) }
                return
            }
            sync.add(write)
            send(write, completion)
            let locations = write.changes.map(\.location)
            transactions.abort(at: locations, .overriddenBySet)
            for location in locations { transactions.rerun(at: location) }
        }
    }

    private func send(_ write: PendingWrite, _ completion: @escaping (WireFailure?) -> Void) {
        let done = { [weak self] (failure: WireFailure?) in
            guard let self else { return }
            self.perform { self.answer(write, failure, completion) }
        }
        if write.isMerge {
            let members = write.changes.map { (path: $0.path.relative(to: write.path), node: $0.node) }
            connection.merge(at: write.path, members, done: done)
        } else if let change = write.changes.first {
            connection.put(at: write.path, change.node, hash: nil, done: done)
        }
    }

    private func answer(
        _ write: PendingWrite, _ failure: WireFailure?, _ completion: @escaping (WireFailure?) -> Void
    ) {
        if isClosed { return outputs.append { completion(failure) } }
        disk?.remove(write.id)
        if purged != nil {
            purged?.append((write.id, { completion(failure) }))
            return
        }
        if sync.answer(write.id, isAccepted: failure == nil) { transactions.rerun(at: write.path) }
        outputs.append { completion(failure) }
    }

    /// Writes of an earlier run, with their original numbers.
    private func restore(_ writes: [PendingWrite]) {
        for write in writes {
            ids.skip(to: write.id)
            sync.add(write)
            send(write) { _ in }
        }
    }

    /// - Parameter update: returns the new data for the best known data; nil aborts. Called at least once before
    ///   this returns.
    func runTransaction(
        at path: TreePath, localEvents: Bool, update: @escaping (Node) -> Node?,
        completion: @escaping (TransactionOutcome) -> Void
    ) {
        perform {
            let observer = observe(TreeQuery(), at: path, kinds: [], onEvent: { _ in }, onCancel: { _ in })
            transactions.run(
                at: path, isVisible: localEvents, observer: observer, update: update, completion: completion)
        }
    }

    /// All unanswered writes, transactions and onDisconnect operations fail with `write_canceled`.
    func purgeOutstandingWrites() {
        perform {
            transactions.abort(at: [.root], .cancelled)
            purged = []
            connection.purgeOutstandingWrites()
            let given = purged ?? []
            purged = nil
            // One refresh for all: the intermediate states need no events.
            if sync.refuse(given.map(\.id)) { transactions.rerun(at: .root) }
            for write in given { outputs.append(write.completion) }
            disconnectWrites = DisconnectWrites()
        }
    }

    /// - Parameter onCount: receives the number of unanswered writes, now and after each change.
    /// - Returns: the observer's id in `pendingWrites`.
    func observePendingWrites(_ onCount: @escaping (Int) -> Void) -> Int { perform { pendingWrites.add(onCount) } }

    // MARK: Connection

    func onDisconnectSet(_ node: Node, at path: TreePath, completion: @escaping (WireFailure?) -> Void) {
        connection.onDisconnectPut(at: path, node) { [weak self] failure in
            self?.keep([(path, node)], failure, completion)
        }
    }

    /// - Parameter members: locations below `path`; they may end in `.priority`.
    func onDisconnectUpdate(
        _ members: [(path: TreePath, node: Node)], at path: TreePath, completion: @escaping (WireFailure?) -> Void
    ) {
        if members.isEmpty { return perform { outputs.append { completion(nil) } } }
        connection.onDisconnectMerge(at: path, members) { [weak self] failure in
            self?.keep(members.map { (path + $0.path, $0.node) }, failure, completion)
        }
    }

    private func keep(
        _ writes: [(path: TreePath, node: Node)], _ failure: WireFailure?,
        _ completion: @escaping (WireFailure?) -> Void
    ) {
        perform {
            if failure == nil {
                for write in writes { disconnectWrites.put(write.node, at: write.path) }
            }
            outputs.append { completion(failure) }
        }
    }

    func onDisconnectCancel(at path: TreePath, completion: @escaping (WireFailure?) -> Void) {
        connection.onDisconnectCancel(at: path) { [weak self] failure in
            guard let self else { return }
            self.perform {
                if failure == nil { self.disconnectWrites.cancel(at: path) }
                self.outputs.append { completion(failure) }
            }
        }
    }

    func goOnline(reason: String) { connection.goOnline(reason: reason) }
    func goOffline(reason: String) { connection.goOffline(reason: reason) }
}

/// The numbers of writes.
final class WriteIDs {
    private var last: Int64 = 0

    func next() -> Int64 {
        last += 1
        return last
    }

    func skip(to id: Int64) { last = max(last, id) }
}
