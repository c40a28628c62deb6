import HearthModel
import HearthTree

/// The client's engine: what a program sees of a database, online and offline.
///
/// The invariant: what an observer sees of a query is the server's data as far as it is known, with the program's writes that
/// the server hasn't answered on top, then ordered and bounded. `ServerCache` is the first, `WriteTree` the second, a `View`
/// the third; `SyncTree` keeps the views of all places and brings each change to those it concerns.
///
/// It knows no sockets, threads or clocks. One serial queue, the caller's, calls everything here, the connection's callbacks
/// included; events and completions are called on it, too, in order, when the engine's state is whole again, so they may call
/// the engine. Only a transaction's function must not.
///
/// Source: the documentation of the Realtime Database's SDKs and what they show from outside.
final class DatabaseEngine {
    /// What comes from outside.
    struct Environment {
        /// The local clock, milliseconds since 1970.
        var now: () -> Int64
        /// Calls back on the engine's queue; the answer takes it back.
        var schedule: (_ afterMilliseconds: Int, _ body: @escaping () -> Void) -> (() -> Void)
        /// The disk let the engine down; it goes on with what it has in memory.
        var report: (Status) -> Void
    }

    let connection: any DatabaseConnection
    let environment: Environment
    let outputs = OutputQueue()
    let disk: Disk?
    let sync: SyncTree
    let info: InfoTree
    let transactions: Transactions
    var disconnectWrites = DisconnectWrites()
    let ids: WriteIDs
    private var lastObserver = 0
    private var isClosed = false
    /// While all writes are given up: those that are, with what waits for their answers.
    private var purged: [(id: Int64, completion: () -> Void)]?

    /// Applies and sends the writes that a former run left on the disk.
    /// - Parameters:
    ///   - connection: the caller makes the engine its delegate.
    ///   - folder: where the cache of this database lies; nil for none. One engine at a time may use it.
    ///   - cacheSizeBytesMax: beyond it data of queries that nobody observes goes.
    /// - Throws: FAILED_PRECONDITION when another client uses the folder; what the disk answers.
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
        outputs.finish = { [disk] in
            sync.removeSpent()
            info.sync.removeSpent()
            disk?.endOperation()
        }
        if let disk {
            perform {
                let (writes, lastID) = disk.pendingWrites()
                self.ids.skip(to: lastID)
                self.restore(writes)
            }
        }
    }

    /// Gives the folder back, and tells whoever waits that there will be no answer; nothing may be called after it. Writes that are
    /// on the disk stay there.
    func close(_ failure: WireFailure) {
        isClosed = true
        perform {
            transactions.abort(at: [.root], failure)
            connection.giveUp(failure)
        }
        disk?.close()
        // It holds what holds the outputs.
        outputs.finish = {}
    }

    func perform<Result>(_ body: () -> Result) -> Result { outputs.perform(body) }

    /// The server's clock as well as we know it.
    var serverNowMilliseconds: Int64 { environment.now() + info.serverTimeOffsetMilliseconds }

    // MARK: Observers

    /// What is known of the place comes at once, by the usual callbacks.
    /// - Parameters:
    ///   - isSingle: whether it is removed after its first event.
    ///   - onCancel: the server took the right to listen away; no event follows.
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

    /// Without effect when it is gone.
    func remove(_ id: ObserverID) {
        perform {
            sync.remove(id)
            info.sync.remove(id)
        }
    }

    /// All observers of one query at one place, but those that transactions need.
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

    /// - Parameter completion: nil when the server has it.
    func set(_ node: Node, at path: TreePath, completion: @escaping (WireFailure?) -> Void) {
        let write = PendingWrite(
            id: ids.next(), path: path, isMerge: false, changes: [TreeChange(path: path, node: node)],
            madeAtMilliseconds: serverNowMilliseconds)
        make(write, completion)
    }

    /// - Parameter priority: a leaf, or empty for none.
    func setPriority(_ priority: Node, at path: TreePath, completion: @escaping (WireFailure?) -> Void) {
        set(priority, at: path.child(.priority), completion: completion)
    }

    /// - Parameter members: places below `path`, none of which is above another; may end in `.priority`.
    func update(
        _ members: [(path: TreePath, node: Node)], at path: TreePath, completion: @escaping (WireFailure?) -> Void
    ) {
        if members.isEmpty { return perform { outputs.append { completion(nil) } } }
        let write = PendingWrite(
            id: ids.next(), path: path, isMerge: true,
            changes: members.map { TreeChange(path: path + $0.path, node: $0.node) },
            madeAtMilliseconds: serverNowMilliseconds)
        make(write, completion)
    }

    private func make(_ write: PendingWrite, _ completion: @escaping (WireFailure?) -> Void) {
        perform {
            // A write that cannot be kept isn't made: after a restart it would be gone without a word.
            if let status = disk?.save(write) {
                outputs.append { completion(WireFailure("disk", status.message)) }
                return
            }
            sync.add(write)
            send(write, completion)
            let places = write.changes.map(\.place)
            transactions.abort(at: places, .overriddenBySet)
            for place in places { transactions.rerun(at: place) }
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

    /// Writes of a former run, with the numbers they had.
    private func restore(_ writes: [PendingWrite]) {
        for write in writes {
            ids.skip(to: write.id)
            sync.add(write)
            send(write) { _ in }
        }
    }

    /// - Parameter update: from the best known data to the new data; nil aborts. Called at least once before this returns.
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

    /// All writes and transactions without an answer, and what was to happen on disconnect, fail with `write_canceled`.
    func purgeOutstandingWrites() {
        perform {
            transactions.abort(at: [.root], .cancelled)
            purged = []
            connection.purgeOutstandingWrites()
            let given = purged ?? []
            purged = nil
            // All at once: nobody needs to see what is left after each.
            if sync.refuse(given.map(\.id)) { transactions.rerun(at: .root) }
            for write in given { outputs.append(write.completion) }
            disconnectWrites = DisconnectWrites()
        }
    }

    // MARK: Connection

    func onDisconnectSet(_ node: Node, at path: TreePath, completion: @escaping (WireFailure?) -> Void) {
        connection.onDisconnectPut(at: path, node) { [weak self] failure in
            self?.keep([(path, node)], failure, completion)
        }
    }

    /// - Parameter members: places below `path`; may end in `.priority`.
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
