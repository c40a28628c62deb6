import HearthCache
import HearthConcurrency
import HearthModel
import HearthWire
import Synchronization

/// All components of one client on one worker queue. `SyncClient` is its public interface. The spec tests use it
/// directly.
///
/// `engine` and `maintenance` belong to the worker queue.
final class SyncCore: @unchecked Sendable {
    /// The settings that differ between a program and a test.
    struct Options {
        var clock: any Clock = SystemClock()
        /// See `WorkerQueue`.
        var firesTimers = true
        var limboResolutionsMax = 100
        /// Runs background work: garbage collection and index backfill.
        var schedulesMaintenance = true
        /// nil: the tokens come from the credentials.
        var tokens: TokenSource?
        var onWarning: @Sendable (String) -> Void = { _ in }
    }

    let database: DatabaseName
    let serializer: TargetSerializer
    let queue: WorkerQueue
    let datastore: any Datastore
    let credentials: any CredentialsProvider
    private let persistence: PersistenceBox
    private let journal: WriteJournal?
    /// The user of the writes that are enqueued now: a change is enqueued with this lock, and so is each write.
    private let writer = Mutex(ClientUser.unauthenticated)
    private let options: Options
    private var engine: SyncEngine?
    private var maintenance: Maintenance?
    private var isTerminated = false
    /// The end handlers of work that runs on other threads.
    private var ends: [ObjectIdentifier: @Sendable (Status) -> Void] = [:]

    init(
        database: DatabaseName, persistence: any Persistence, datastore: any Datastore,
        credentials: any CredentialsProvider, options: Options = Options()
    ) {
        self.database = database
        serializer = TargetSerializer(database: database)
        queue = WorkerQueue(label: "hearth.sync", clock: options.clock, firesTimers: options.firesTimers)
        self.datastore = datastore
        self.credentials = credentials
        self.persistence = PersistenceBox(persistence)
        journal = persistence.journal
        self.options = options
    }

    /// Starts with the user that the credentials report immediately.
    func start() {
        credentials.observeUser { [weak self] user in
            guard let self else { return }
            writer.withLock { writer in
                writer = user
                queue.enqueue { [weak self] in self?.take(user) }
            }
        }
        // A provider that did not report a user yet reports it later, as a change.
        queue.enqueue { [weak self] in
            guard let self, engine == nil, !isTerminated else { return }
            begin(.unauthenticated)
        }
        datastore.observeReachability { [weak self] in
            guard let self else { return }
            queue.enqueue { [weak self] in self?.engine?.remoteStore.restartForNewNetwork() }
        }
    }

    private func take(_ user: ClientUser) {
        if isTerminated { return }
        guard let engine else { return begin(user) }
        engine.attempt { () throws(Status) in try engine.changeUser(user) }
    }

    private func begin(_ user: ClientUser) {
        let localStore = LocalStore(persistence.persistence, user: user, clock: options.clock)
        let remoteStore = RemoteStore(
            database: database, localStore: localStore, datastore: datastore, queue: queue,
            tokens: options.tokens ?? { [weak self] in self?.fetchToken($0) },
            invalidateToken: { [credentials] in credentials.invalidateToken() })
        let engine = SyncEngine(localStore, remoteStore, user: user, limboResolutionsMax: options.limboResolutionsMax)
        engine.onWarning = options.onWarning
        self.engine = engine
        engine.attempt { () throws(Status) in try engine.start() }
        if options.schedulesMaintenance {
            maintenance = Maintenance(engine, queue)
            maintenance?.start()
        }
    }

    /// Starts to write the entries of new indexes. Call it only on the queue.
    func fillIndexesSoon() { maintenance?.fillIndexesSoon() }

    private static let changingUser = Status.unavailable(
        "The token is of another user than the one whom its provider has reported.")

    /// The token of the engine's user. Fails with `UNAVAILABLE` between a change of user and the provider's report of
    /// it.
    private func fetchToken(_ completion: @escaping (Result<String?, Status>) -> Void) {
        let completion = OnQueue(body: completion)
        let credentials = credentials
        let queue = queue
        Task {
            let result: Result<(user: ClientUser, token: String?), Status>
            do throws(Status) { result = .success(try await credentials.token()) } catch { result = .failure(error) }
            queue.enqueue { [weak self] in
                completion.body(
                    result.flatMap { credentials in
                        // Writes of one user must not be sent with the token of another user.
                        if let user = self?.engine?.user, user != credentials.user {
                            return .failure(Self.changingUser)
                        }
                        return .success(credentials.token)
                    })
            }
        }
    }

    // MARK: Running work

    static let terminated = Status.failedPrecondition("The client was terminated.")

    /// Runs work on the worker queue, asynchronously.
    /// - Parameter refused: runs instead when the client was terminated or its cache failed.
    func enqueue(
        _ body: @escaping @Sendable (SyncEngine) throws(Status) -> Void,
        refused: @escaping @Sendable (Status) -> Void = { _ in }
    ) {
        queue.enqueue { [self] in
            guard !isTerminated, let engine else { return refused(Self.terminated) }
            if let failure = engine.failure { return refused(failure) }
            do throws(Status) { try body(engine) } catch {
                // A transient failure affects only this call.
                if !error.isPassing { engine.fail(error) }
                refused(error)
            }
        }
    }

    /// Enqueues a write. With a cache on the disk it is stored when this returns: see `WriteJournal`.
    /// - Parameter completion: receives the server's answer, or the reason why the write is not stored.
    func write(_ mutations: [Mutation], completion: @escaping @Sendable (Status?) -> Void) {
        let time = options.clock.now()
        guard let journal else { return enqueue(mutations, at: time, nil, completion: completion) }
        let contents = JournaledWrite.encode(mutations, at: time, MutationSerializer(database: database))
        do throws(Status) {
            try writer.withLock { (user) throws(Status) in
                try journal.append(JournaledWrite.encode(user) + contents) { entry in
                    enqueue(mutations, at: time, entry, completion: completion)
                }
            }
        } catch {
            completion(error == WriteJournal.closed ? Self.terminated : error)
        }
    }

    private func enqueue(
        _ mutations: [Mutation], at time: Timestamp, _ entry: WriteJournal.Entry?,
        completion: @escaping @Sendable (Status?) -> Void
    ) {
        queue.enqueue { [self] in
            guard !isTerminated, let engine else {
                // What is in the journal is made by the next client.
                return completion(entry == nil ? Self.terminated : SyncEngine.endedBeforeAnswer)
            }
            if let failure = engine.failure {
                if let entry { engine.withdraw(entry) }
                return completion(failure)
            }
            do throws(Status) { try engine.write(mutations, at: time, entry, completion: completion) } catch {
                engine.fail(error)
                completion(error)
            }
        }
    }

    /// Runs work on the worker queue and waits for it. Do not call it on the queue itself.
    func perform<Output: Sendable>(_ body: (SyncEngine) throws(Status) -> Output) throws(Status) -> Output {
        let result = queue.sync { () -> Result<Output, Status> in
            guard !isTerminated, let engine else { return .failure(Self.terminated) }
            if let failure = engine.failure { return .failure(failure) }
            do throws(Status) { return .success(try body(engine)) } catch {
                if !error.isPassing { engine.fail(error) }
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// - Parameter end: runs once, on the worker queue, when the client ends or has already ended. It does not run
    ///   after `forgetEnd`.
    func atEnd(of work: AnyObject & Sendable, _ end: @escaping @Sendable (Status) -> Void) {
        queue.enqueue { [self] in
            if isTerminated { end(Self.terminated) } else { ends[ObjectIdentifier(work)] = end }
        }
    }

    func forgetEnd(of work: AnyObject & Sendable) {
        queue.enqueue { [self] in ends[ObjectIdentifier(work)] = nil }
    }

    /// Ends everything. The cache stays.
    func terminate(completion: @escaping @Sendable () -> Void) {
        credentials.observeUser(nil)
        queue.enqueue { [self] in
            if !isTerminated {
                isTerminated = true
                engine?.end()
                let ends = ends.values
                self.ends = [:]
                for end in ends { end(Self.terminated) }
                queue.cancelAllTimers()
                datastore.shutDown()
                persistence.persistence.shutDown()
                engine = nil
                maintenance = nil
            }
            completion()
        }
    }
}

/// Moves the persistence to the worker queue, the only queue that uses it.
private struct PersistenceBox: @unchecked Sendable {
    let persistence: any Persistence
    init(_ persistence: any Persistence) { self.persistence = persistence }
}

/// A closure that is called only on the worker queue.
private struct OnQueue: @unchecked Sendable {
    let body: (Result<String?, Status>) -> Void
}
