import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthTree
import HearthTreeStorage
import Synchronization

/// Notifies the listeners of a namespace of the changes that its commits make.
///
/// A trie stores listeners by location (`HubLocation`). The writer's thread finds the locations of a commit in it.
/// Listeners at or above a location receive the change itself. Listeners below it receive the new value at their own
/// location. Other listeners receive nothing. When the commits are durable, the events are passed to the loops, one job
/// per loop, in the order of the commits. Completions of writes follow the events, so that a client receives the
/// changes of its write before the answer to the write.
///
/// A listen is registered first and read afterwards (`RealtimeSubscription`): no commit is missed between the two.
///
/// `@unchecked Sendable`: the trie and the staged events belong to the writer's thread, which also adds and removes
/// listeners. The rest is guarded by locks.
final class RealtimeHub: @unchecked Sendable {
    let database: TreeDatabase
    private let pool: WorkerPool
    private let loops = Mutex<[ObjectIdentifier: RealtimeLoopSubscriptions]>([:])
    /// Every commit up to this version has been passed to the loops.
    private let published = Atomic<Int64>(0)
    private let listenCount = Atomic<Int>(0)

    // These belong to the writer's thread.
    private let root = HubLocation(path: .root)
    private var stagedLoops: [RealtimeLoopSubscriptions] = []
    private var stagedVersion: Int64 = 0
    private var changedWindows: [RealtimeSharedQuery] = []
    /// Windows that must be read after the present group.
    private var unreadWindows: [RealtimeSharedQuery] = []
    /// Windows that wait to be read, and the number of reads that run.
    private var windowsToRead = FairQueue<RealtimeSharedQuery>()
    private var windowReadings = 0
    private static let windowReadingsMax = 4
    /// The number of changes below a location that are examined for its windows.
    static let touchedMax = 1_000
    /// Of the present write.
    private var routes: [HubRoute] = []
    /// Of the present group: the tree before it, when a window needed it, and the locations that the group has changed.
    private var groupBefore: TreeView?
    private var groupLocations: Set<ObjectIdentifier> = []

    /// The remaining number of reads for finding out which listeners need no event.
    let reads = HubReads()

    /// The number of windows that examined a commit; for tests that count work.
    let windowsVisited = Atomic<Int>(0)

    /// The memory of the windows.
    private let windowMemory: MemoryBudget

    /// - Parameters:
    ///   - pool: for reads.
    ///   - windows: the memory for the queries that have listeners.
    init(_ database: TreeDatabase, pool: WorkerPool, windows: MemoryBudget = ServerMemory().windows) {
        self.database = database
        self.pool = pool
        windowMemory = windows
        database.setObserver(HubObserver(self))
    }

    /// Whether there are listeners.
    var isUsed: Bool { listenCount.load(ordering: .relaxed) > 0 }

    /// Makes a new listen, paused until it is loaded. Must be called on the loop, and the listen must be cancelled in
    /// the end.
    /// - Parameter requester: the account that is charged for reading a window that no other listener has yet.
    func listen(
        to target: RealtimeTarget, on loop: EventLoop, for requester: Requester = .server,
        _ receiver: any ListenReceiver
    ) -> RealtimeSubscription {
        listens(of: loop).listen(to: target, for: requester, of: self, receiver)
    }

    private func listens(of loop: EventLoop) -> RealtimeLoopSubscriptions {
        loops.withLock { loops in
            let key = ObjectIdentifier(loop)
            if let known = loops[key] { return known }
            let made = RealtimeLoopSubscriptions(loop, self)
            loops[key] = made
            return made
        }
    }

    /// Runs a job on a loop, after the events of all commits so far have been delivered to the loop's listens. May be
    /// called on any thread.
    func execute(on loop: EventLoop, _ job: @escaping @Sendable () -> Void) { listens(of: loop).execute(job) }

    /// Reads a version of the tree on a worker's thread, and delivers the result on the loop after every commit that
    /// the version contains.
    /// - Parameters:
    ///   - requester: the account that is charged for the read.
    ///   - afterWrites: whether the version must contain the requester's queued writes.
    func read<Content: Sendable>(
        _ kind: WorkerPool.Kind = .long, on loop: EventLoop, for requester: Requester = .server,
        afterWrites: Bool = false, cancellation: Cancellation? = nil,
        _ read: @escaping @Sendable (TreeView) throws(Status) -> Content,
        _ done: @escaping @Sendable (Result<Content, Status>, _ version: Int64) -> Void
    ) {
        if afterWrites,
            database.perform(
                for: requester,
                { [self] _ in
                    self.read(kind, on: loop, for: requester, cancellation: cancellation, read, done)
                })
        {
            return
        }
        let refused: @Sendable (Status) -> Void = { [self] status in execute(on: loop) { done(.failure(status), 0) } }
        pool.runInSlices(kind, for: requester, cancellation: cancellation, refused: refused) { [self] slice in
            var version: Int64 = 0
            let result = Result { () throws(Status) in
                let view = try database.view()
                defer { view.close() }
                view.askWhileReading { slice.giveWay() }
                if kind == .brief { view.judgeStepsMax = Limits.treeJudgeStepsMax }
                version = view.version
                return try read(view)
            }
            if kind == .brief, case .failure(RealtimeAccess.readTakesLong) = result {
                return self.read(.long, on: loop, for: requester, cancellation: cancellation, read, done)
            }
            let reached = version
            if reached <= published.load(ordering: .acquiring) {
                execute(on: loop) { done(result, reached) }
            } else {
                // The commit is durable, but its events may not be delivered yet. They are delivered first.
                let isQueued = database.perform { [self] view in
                    announced(view.version)
                    execute(on: loop) { done(result, reached) }
                }
                if !isQueued { execute(on: loop) { done(result, reached) } }
            }
        }
    }

    func add(_ shared: SharedListen) {
        listenCount.add(1, ordering: .relaxed)
        database.perform { [self] view in
            announced(view.version)
            let location = root.descendant(shared.target.path)
            guard let query = shared.target.query else {
                location.add(shared)
                return known([shared])
            }
            let window = location.window(of: query)
            window.listens.append(shared)
            if window.isKnown {
                known([shared])
            } else if window.listens.count == 1 {
                read(window)
            }
        }
    }

    private func known(_ listens: [SharedListen]) {
        for listen in listens { listen.loopListens.execute { listen.becameKnown() } }
    }

    /// Reads a window on a worker's thread while the writer continues: without an index this reads all children. The
    /// number of concurrent reads is limited, so that a commit that affects very many windows does not fill the
    /// workers' queue.
    private func read(_ window: RealtimeSharedQuery) {
        if window.isToBeRead { return }
        window.isToBeRead = true
        windowsToRead.append(window, for: window.requester)
        continueReading()
    }

    private func continueReading() {
        while windowReadings < Self.windowReadingsMax, let window = windowsToRead.popFirst() {
            // The window may have no listeners any more.
            if window.listens.isEmpty { continue }
            windowReadings += 1
            window.beginReading()
            let (query, path, requester) = (window.query, window.path, window.requester)
            let bound = LoopBound(window)
            let ended: @Sendable (Result<RealtimeSharedQuery.Reading, Status>) -> Void = { [self] result in
                database.perform { [self] view in began(bound.value, with: result, view) }
            }
            let refused: @Sendable (Status) -> Void = { ended(.failure($0)) }
            pool.run(.brief, for: requester, refused: refused) { [self] in
                let result = Result { () throws(Status) in try reading(of: query, path, requester, isBrief: true) }
                if case .failure(let status) = result, status.code == .resourceExhausted {
                    // The read takes longer.
                    return pool.runInSlices(.long, for: requester, refused: refused) { [self] slice in
                        ended(
                            Result { () throws(Status) in
                                try reading(of: query, path, requester, isBrief: false, slice)
                            })
                    }
                }
                ended(result)
            }
        }
    }

    /// Whether windows are being read, or wait to be read. Must be called on the writer's thread.
    var isReadingWindows: Bool { windowReadings > 0 || !windowsToRead.isEmpty }

    private func reading(
        of query: TreeQuery, _ path: TreePath, _ requester: Requester, isBrief: Bool, _ slice: WorkerSlice? = nil
    ) throws(Status) -> RealtimeSharedQuery.Reading {
        let view = try database.view()
        defer { view.close() }
        if let slice { view.askWhileReading { slice.giveWay() } }
        let memory = windowMemory.reservation(for: requester)
        let window = try RealtimeSharedQuery.read(query, path, view, memory, isBrief: isBrief)
        return RealtimeSharedQuery.Reading(version: view.version, window: window, memory: memory)
    }

    private func began(
        _ window: RealtimeSharedQuery, with result: Result<RealtimeSharedQuery.Reading, Status>, _ view: TreeView
    ) {
        windowReadings -= 1
        window.isToBeRead = false
        defer { continueReading() }
        if window.listens.isEmpty { return }
        do throws(Status) {
            announced(view.version)
            guard try window.begin(with: try result.get(), view) else { return read(window) }
            root.find(window.path)?.hasChanged(window)
            let version = view.version
            for listen in window.listens { listen.loopListens.execute { listen.becameKnown(at: version) } }
        } catch {
            let listens = window.listens
            root.find(window.path)?.forget(window)
            root.prune(window.path)
            for listen in listens { listen.loopListens.execute { listen.fail(error) } }
        }
    }

    func remove(_ shared: SharedListen) {
        listenCount.subtract(1, ordering: .relaxed)
        database.perform { [self] _ in
            root.find(shared.target.path)?.remove(shared)
            root.prune(shared.target.path)
        }
    }

    // MARK: Commits

    /// Finds the listeners that a write affects, and the positions of the children that it changes before the write.
    fileprivate func willChange(_ changes: [TreeChange], before: TreeView) {
        routes = []
        if root.isEmpty { return }
        routes = HubRoutes(root, changes, before: before, reads).all
        for (number, route) in routes.enumerated() where !route.location.windows.isEmpty && route.above == nil {
            // Windows are read again beside the writer when they would have to read very many children.
            if route.inside.count > Self.touchedMax { continue }
            let path = route.location.path
            let inside = route.inside.map { changes[$0] }
            if inside.contains(where: { $0.path == path }) { continue }
            let children = TouchedChildren(path, inside)
            do throws(Status) {
                try children.read(before: before, for: route.location.filed)
                routes[number].children = children
            } catch {
                // The windows are read again.
            }
        }
    }

    fileprivate func prepare(_ commit: TreeCommit, after: TreeView) {
        let routes = routes
        self.routes = []
        stagedVersion = commit.version
        if commit.isNoChange || root.isEmpty { return }
        let pushes = HubPushes(commit)
        for route in routes where !isUnchanged(route, after) {
            stage(pushes.plain(for: route), commit.version, to: route.location.plain)
            if !route.location.windows.isEmpty { prepareWindows(route, commit.version, after) }
        }
    }

    private func prepareWindows(_ route: HubRoute, _ version: Int64, _ after: TreeView) {
        do throws(Status) {
            if let children = route.children {
                try children.read(after: after, for: route.location.filed)
                for (window, keys) in route.location.filed.concerned(by: children) {
                    changed(window, of: route.location, version, window.change(keys, children, version, after))
                }
                return
            }
            let node = try route.replacement(after)
            for window in route.location.windows.values {
                changed(window, of: route.location, version, window.change(to: node))
            }
        } catch {
            // A node that cannot be read here may be readable beside the writer. Otherwise the listeners receive the
            // error there.
            for window in route.location.windows.values {
                changed(window, of: route.location, version, window.change(to: nil))
            }
        }
    }

    private func changed(
        _ window: RealtimeSharedQuery, of location: HubLocation, _ version: Int64, _ change: RealtimeSharedQuery.Change?
    ) {
        windowsVisited.add(1, ordering: .relaxed)
        changedWindows.append(window)
        location.hasChanged(window)
        switch change {
        case nil: break
        case .push(let push): stage(.push(push), version, to: window.listens)
        case .lost: stage(.lost, version, to: window.listens)
        case .unknown:
            unreadWindows.append(window)
            stage(.unknown, version, to: window.listens)
        }
    }

    /// Whether a location below the write has the same value as before. It is only checked where the check is cheap: an
    /// event without a difference does no harm.
    private func isUnchanged(_ route: HubRoute, _ after: TreeView) -> Bool {
        let isFirst = groupLocations.insert(ObjectIdentifier(route.location)).inserted
        guard route.above != nil, isFirst, !route.isChanged else { return false }
        do throws(Status) {
            let before = if let groupBefore { groupBefore } else { try database.view() }
            groupBefore = before
            guard let old = try reads.node(at: route.location.path, before) else { return false }
            if let part = route.part { return old == part }
            guard let new = try reads.node(at: route.location.path, after) else { return false }
            return old == new
        } catch {
            return false
        }
    }

    private func endGroup() {
        stagedLoops = []
        changedWindows = []
        unreadWindows = []
        routes = []
        groupBefore?.close()
        groupBefore = nil
        groupLocations = []
        reads.reset()
    }

    private func stage(_ change: RealtimeEvent.Change?, _ version: Int64, to listens: [SharedListen]) {
        guard let change else { return }
        let event = RealtimeEvent(version: version, change: change)
        for listen in listens {
            if listen.loopListens.staged.isEmpty { stagedLoops.append(listen.loopListens) }
            listen.loopListens.staged.append((listen, event))
        }
    }

    fileprivate func publish() {
        for loopListens in stagedLoops {
            let batch = loopListens.staged
            loopListens.staged = []
            loopListens.deliver(batch)
        }
        let unread = unreadWindows
        endGroup()
        announced(stagedVersion)
        for window in unread { read(window) }
    }

    /// Must be called on the writer's thread: passes all pending events of commits up to a version to the loops.
    private func announced(_ version: Int64) {
        published.store(max(version, published.load(ordering: .relaxed)), ordering: .releasing)
    }

    fileprivate func discard() {
        for loopListens in stagedLoops { loopListens.staged = [] }
        // They are newer than the stored data. Windows that were given up for it remain given up.
        for window in changedWindows {
            window.discard()
            root.find(window.path)?.hasChanged(window)
        }
        let unread = unreadWindows
        endGroup()
        for window in unread { read(window) }
    }
}

/// The database refers to this object in place of the hub, because the hub refers to the database.
private final class HubObserver: TreeObserver {
    private let hub: WeakHub

    init(_ hub: RealtimeHub) {
        self.hub = WeakHub(hub)
    }

    func willChange(_ changes: [TreeChange], before: TreeView) { hub.value?.willChange(changes, before: before) }
    func prepare(_ commit: TreeCommit, after: TreeView) { hub.value?.prepare(commit, after: after) }
    func publish() { hub.value?.publish() }
    func discard() { hub.value?.discard() }
}

/// `@unchecked Sendable`: is not written after initialization; the runtime guards weak references.
private final class WeakHub: @unchecked Sendable {
    private(set) weak var value: RealtimeHub?
    init(_ value: RealtimeHub) { self.value = value }
}
