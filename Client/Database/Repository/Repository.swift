import Foundation
import HearthApp
import HearthCache
import HearthModel
import HearthTree

/// One open database: the engine, its connection, and the serial queue that both belong to. The public classes call
/// it from any thread.
///
/// `@unchecked Sendable`: `engine` and `connection` are used on `queue` alone, the rest is constant or locked.
final class Repository: @unchecked Sendable {
    /// The parameters of a repository.
    struct Configuration: Sendable {
        var location: DatabaseLocation
        var tls = TLSSettings()
        var appName: String
        /// nil: nothing is stored on disk.
        var cacheFolder: String?
        var cacheSizeBytesMax: Int64
        var provider: any AuthTokenProvider
    }

    /// Makes the connection to the server; tests provide another one.
    typealias MakeDriver = @Sendable (Configuration, DispatchQueue) throws(Status) -> any WireDriver

    let configuration: Configuration
    let queue: DispatchQueue
    private var engine: DatabaseEngine?
    private var connection: WireConnection?
    private var driver: (any WireDriver)?
    /// The reason why there is no engine: every call fails with it.
    private var failure = WireFailure.closed

    /// Left when the engine has started or failed.
    private let starting = DispatchGroup()
    /// Of the cache on the disk, from the start on.
    private let journal = Locked<WriteJournal?>(nil)

    private let callbacks = Locked(Callbacks())
    private let observations = Locked(Observations())
    private let pendingWrites = PendingWriteObservers()
    private let serverTimeOffset = Locked<Int64>(0)
    private static let lastHandle = Locked<DatabaseHandle>(0)
    private static let pushIDs = Locked(PushID.Generator())

    init(configuration: Configuration, makeDriver: @escaping MakeDriver) {
        self.configuration = configuration
        queue = DispatchQueue(label: "FirebaseDatabase.\(configuration.appName).\(configuration.location.namespace)")
        starting.enter()
        queue.async { [self] in
            start(makeDriver)
            starting.leave()
        }
    }

    private func start(_ makeDriver: MakeDriver) {
        if let folder = configuration.cacheFolder { Self.endings.wait(folder, secondsMax: Self.endingSecondsMax) }
        do throws(Status) {
            let driver = try makeDriver(configuration, queue)
            let connection = WireConnection(driver: driver)
            connection.onServerTimeOffset = { [serverTimeOffset] offset in serverTimeOffset.with { $0 = offset } }
            let engine = try DatabaseEngine(
                connection: connection, environment: environment, folder: configuration.cacheFolder,
                cacheSizeBytesMax: configuration.cacheSizeBytesMax)
            connection.delegate = engine
            self.driver = driver
            self.connection = connection
            self.engine = engine
            journal.with { $0 = engine.disk?.journal }
            driver.start(connection)
            connection.start()
        } catch {
            Log.warning("The database \(configuration.location.namespace) could not start: \(error)")
            failure = WireFailure(error)
        }
    }

    private var environment: DatabaseEngine.Environment {
        DatabaseEngine.Environment(
            now: { Self.nowMilliseconds },
            schedule: { [queue] milliseconds, body in
                let carried = Carried(body)
                let item = DispatchWorkItem { carried.value() }
                queue.asyncAfter(deadline: .now() + .milliseconds(milliseconds), execute: item)
                return { item.cancel() }
            },
            report: { Log.warning("The cache: \($0)") })
    }

    static var nowMilliseconds: Int64 { Int64((Date().timeIntervalSince1970 * 1000).rounded(.down)) }

    /// Databases of deleted apps that are closing and still hold their folders.
    private static let endings = CacheEndings<String>()
    private static let endingSecondsMax = 10

    /// Closes everything; later calls fail.
    /// - Parameter completion: runs when it is closed.
    func close(_ completion: @escaping @Sendable () -> Void) {
        let use = configuration.cacheFolder.map { Self.endings.begin($0) }
        queue.async { [self] in
            engine?.goOffline(reason: "closed")
            driver?.stop()
        }
        // Closing the connection notifies the engine of failed requests first.
        queue.async { [self] in
            engine?.close(.closed)
            engine = nil
            connection = nil
            driver = nil
            use?.end()
            endObservations()
            completion()
        }
    }

    /// - Parameter otherwise: runs instead when there is no engine.
    func perform(
        _ work: @escaping @Sendable (DatabaseEngine) -> Void, otherwise: @escaping @Sendable (WireFailure) -> Void
    ) {
        queue.async { [self] in
            if let engine { work(engine) } else { otherwise(failure) }
        }
    }

    func perform(_ work: @escaping @Sendable (DatabaseEngine) -> Void) { perform(work, otherwise: { _ in }) }

    /// Runs a change on the engine. With a cache on the disk a write is stored when this returns: see `WriteJournal`.
    func perform(_ change: Change, at path: TreePath, completion: @escaping @Sendable (WireFailure?) -> Void) {
        // The first call waits until the cache is open.
        if configuration.cacheFolder != nil { starting.wait() }
        guard let journal = journal.with({ $0 }),
            let write = change.pendingWrite(
                at: path, madeAtMilliseconds: Self.nowMilliseconds + serverTimeOffset.with { $0 })
        else { return perform({ change.run(on: $0, at: path, completion: completion) }, otherwise: completion) }
        do throws(Status) {
            try journal.append(JournaledWrite.encode(write)) { entry in
                perform({ change.run(on: $0, at: path, entry, completion: completion) }, otherwise: completion)
            }
        } catch {
            completion(error == WriteJournal.closed ? .closed : WireFailure("disk", error.message))
        }
    }

    /// A new key; later keys sort after earlier ones.
    func pushID() -> TreeKey {
        let now = Self.nowMilliseconds + serverTimeOffset.with { $0 }
        return Self.pushIDs.with { $0.next(nowMilliseconds: now) }
    }

    // MARK: The user's queue

    private struct Callbacks {
        /// A serial queue that targets the user's queue.
        var serial = DispatchQueue.main
    }

    func setCallbackQueue(_ chosen: DispatchQueue) {
        callbacks.with { callbacks in
            // On Linux `DispatchQueue.main` is a new object at each call, so it is recognized by its label, which
            // the system sets.
            let isMain = chosen.label == DispatchQueue.main.label
            callbacks.serial =
                isMain ? .main : DispatchQueue(label: "FirebaseDatabase.callbacks", target: chosen)
        }
    }

    /// The queue that runs an observer's code.
    enum CallbackTarget {
        /// On the user's queue.
        case users
        /// On the repository's queue: the callback only resumes a task.
        case none
    }

    /// Runs the user's code, one callback after another on any queue of the user.
    func deliver(_ work: @escaping @Sendable () -> Void) {
        callbacks.with { $0.serial }.async(execute: work)
    }

    // MARK: Observers

    /// An observer of the API.
    private final class Observation: Sendable {
        let path: TreePath
        let query: TreeQuery
        /// Called when the database is closed, if a caller waits for an event or for the end.
        let waiting: (@Sendable (WireFailure) -> Void)?
        /// Whether that caller is an `async` call or a sequence, which must end also when the observer is removed.
        let isAwaited: Bool
        private let state = Locked<(isRemoved: Bool, id: ObserverID?)>((false, nil))

        init(
            path: TreePath, query: TreeQuery, waiting: (@Sendable (WireFailure) -> Void)?, callbacks: CallbackTarget
        ) {
            self.path = path
            self.query = query
            self.waiting = waiting
            isAwaited = if case .none = callbacks { true } else { false }
        }

        var isRemoved: Bool { state.with { $0.isRemoved } }
        var id: ObserverID? { state.with { $0.id } }
        func remove() { state.with { $0.isRemoved = true } }
        func begin(_ id: ObserverID) { state.with { $0.id = id } }

        /// An observer of a location without a filter covers all data of the location.
        func belongs(to query: TreeQuery, at path: TreePath) -> Bool {
            self.path == path && (query == TreeQuery() || query == self.query)
        }
    }

    /// All observers, by their handles and by their locations.
    private struct Observations {
        private(set) var byHandle: [DatabaseHandle: Observation] = [:]
        private var byPath: [TreePath: [DatabaseHandle: Observation]] = [:]

        mutating func add(_ observation: Observation, _ handle: DatabaseHandle) {
            byHandle[handle] = observation
            byPath[observation.path, default: [:]][handle] = observation
        }

        mutating func remove(_ handle: DatabaseHandle) {
            guard let path = byHandle.removeValue(forKey: handle)?.path else { return }
            byPath[path]?[handle] = nil
            if byPath[path]?.isEmpty == true { byPath[path] = nil }
        }

        /// The observers of a query at a location, in the order of registration; without a filter all observers of
        /// the location.
        mutating func removeAll(of query: TreeQuery, at path: TreePath) -> [Observation] {
            let removed = (byPath[path] ?? [:]).filter { $0.value.belongs(to: query, at: path) }
            for handle in removed.keys { remove(handle) }
            return removed.sorted { $0.key < $1.key }.map(\.value)
        }
    }

    /// - Parameters:
    ///   - endsWithDatabase: whether `onCancel` is called when the database is closed, as for a single event.
    ///   - onEvent: not called after the observer is removed.
    ///   - onCancel: the server rejects the listen; no event follows.
    @discardableResult
    func observe(
        _ query: TreeQuery, at path: TreePath, kinds: EngineEventKinds, isSingle: Bool = false,
        callbacks: CallbackTarget = .users, endsWithDatabase: Bool = false,
        onEvent: @escaping @Sendable (EngineEvent) -> Void, onCancel: @escaping @Sendable (WireFailure) -> Void
    ) -> DatabaseHandle {
        let handle = Self.lastHandle.with { last in
            last += 1
            return last
        }
        let run: @Sendable (@escaping @Sendable () -> Void) -> Void = { [self] work in
            if case .users = callbacks { deliver(work) } else { work() }
        }
        let fail: @Sendable (WireFailure) -> Void = { failure in run { onCancel(failure) } }
        let observation = Observation(
            path: path, query: query, waiting: isSingle || endsWithDatabase ? fail : nil, callbacks: callbacks)
        observations.with { $0.add(observation, handle) }
        let notify: @Sendable (@escaping @Sendable () -> Void) -> Void = { work in
            run { if !observation.isRemoved { work() } }
        }
        let cancel: @Sendable (WireFailure) -> Void = { [self] failure in
            observations.with { $0.remove(handle) }
            notify { onCancel(failure) }
        }
        perform(
            { [self] engine in
                guard !observation.isRemoved else { return }
                let id = engine.observe(
                    query, at: path, kinds: kinds, isSingle: isSingle,
                    onEvent: { [self] event in
                        if isSingle { observations.with { $0.remove(handle) } }
                        notify { onEvent(event) }
                    }, onCancel: cancel)
                observation.begin(id)
            }, otherwise: cancel)
        return handle
    }

    /// - Parameters:
    ///   - onCount: receives the number of unanswered writes on the repository's queue, now and after each change.
    ///   - onEnd: there is no engine, or no more. Nothing follows.
    /// - Returns: a closure that removes the observer.
    func observePendingWrites(
        onCount: @escaping @Sendable (Int) -> Void, onEnd: @escaping @Sendable (WireFailure) -> Void
    ) -> @Sendable () -> Void {
        let observer = pendingWrites.add(onEnd)
        let id = Locked<Int?>(nil)
        perform(
            { [pendingWrites] engine in
                guard pendingWrites.contains(observer) else { return }
                let number = engine.observePendingWrites { count in
                    if pendingWrites.contains(observer) { onCount(count) }
                }
                id.with { $0 = number }
            }, otherwise: { [pendingWrites] in pendingWrites.remove(observer)?($0) })
        return { [self] in
            _ = pendingWrites.remove(observer)
            perform { engine in
                if let number = id.with({ $0 }) { engine.pendingWrites.remove(number) }
            }
        }
    }

    /// The database is closed.
    private func endObservations() {
        for end in pendingWrites.removeAll() { end(failure) }
        let ended = observations.with { observations in
            defer { observations = Observations() }
            return observations.byHandle
        }
        for (_, observation) in ended.sorted(by: { $0.key < $1.key }) {
            observation.remove()
            observation.waiting?(failure)
        }
    }

    /// The number of observers and of observers of pending writes that are not removed.
    var observerCount: Int { observations.with { $0.byHandle.count } + pendingWrites.count }

    func remove(_ handle: DatabaseHandle, of query: TreeQuery, at path: TreePath) {
        let observation = observations.with { observations in
            guard let observation = observations.byHandle[handle], observation.belongs(to: query, at: path) else {
                return nil as Observation?
            }
            observations.remove(handle)
            return observation
        }
        if let observation { remove(observation) }
    }

    func removeAll(of query: TreeQuery, at path: TreePath) {
        for observation in observations.with({ $0.removeAll(of: query, at: path) }) { remove(observation) }
    }

    private func remove(_ observation: Observation) {
        observation.remove()
        if observation.isAwaited { observation.waiting?(.removed) }
        perform { engine in
            if let id = observation.id { engine.remove(id) }
        }
    }
}
