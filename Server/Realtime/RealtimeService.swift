import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthRules
import HearthEngine
import HearthTreeStorage

/// The Realtime Database of a server: its namespaces, opened on first use, and the resources that its front ends share.
package final class RealtimeService: Sendable {
    package struct Configuration: Sendable {
        package var isEmulator = true
        /// The project of all namespaces.
        package var project = "demo-hearth"
        /// Files with rules.
        package var rules = RealtimeRulesFiles.Paths()
        /// The store of the rules that are set over HTTP; nil: they are lost when the server stops.
        package var folder: String?
        package var log = Log()

        package init() {}
    }

    let isEmulator: Bool
    let project: String
    let authenticator: RealtimeAuthenticator
    let access: RealtimeAccess
    /// For requests that cost more than their answer.
    let pool: WorkerPool
    /// Event streams, which only a shutdown would end.
    package let streams = OpenStreams()
    let connections = RealtimeConnections()
    /// Decodes large requests.
    let large: LargeRequests
    let pushIDs = RealtimePushIDs()
    let clock: any Clock
    let log: Log
    let rulesFiles: RealtimeRulesFiles
    /// The folder for large answers: `/tmp` may be in memory.
    let spoolFolder: String
    /// The disk space of these answers.
    let spools = MemoryBudget(
        bytesMax: Limits.realtimeSpoolBytesMax, shareBytesMax: Limits.realtimeSpoolShareBytesMax,
        smallBytesMax: Limits.realtimeSpoolSmallBytesMax)
    /// The disk space of large changes, which all listeners share.
    let pushFiles = MemoryBudget(
        bytesMax: Limits.realtimePushFilesBytesMax, shareBytesMax: Limits.realtimePushFilesBytesMax)
    /// Snapshots that workers read.
    let longReads: LongReads
    private let store: RealtimeRulesStore
    private let prepare: Preparation
    private let provider: any StoreProvider
    private let registry: Registry<String, RealtimeNamespace>
    /// Nil when their owner ends them.
    private let ownThreads: LifecycleThreads?
    /// The service itself, for objects that are opened when it is complete.
    private let itself: WeakService

    /// Called with each namespace that is opened, before anything is read or written; what it throws fails the opening.
    package typealias Preparation = @Sendable (RealtimeNamespace) throws(Status) -> Void

    /// - Parameter prepare: on a thread that may wait.
    /// - Throws: INVALID_ARGUMENT with the error in a rules file, FAILED_PRECONDITION for a missing one.
    package init(
        _ configuration: Configuration, provider: any StoreProvider, authenticator: Authenticator, pool: WorkerPool,
        memory: ServerMemory = ServerMemory(), longReads: LongReads = LongReads(),
        lifecycle: (threads: LifecycleThreads, openStores: OpenStores)? = nil, clock: any Clock = SystemClock(),
        prepare: @escaping Preparation = { (_) throws(Status) in }
    ) throws(Status) {
        self.prepare = prepare
        isEmulator = configuration.isEmulator
        project = configuration.project
        self.provider = provider
        self.pool = pool
        self.longReads = longReads
        large = LargeRequests(pool: pool, memory: memory)
        self.clock = clock
        log = configuration.log
        self.authenticator = RealtimeAuthenticator(authenticator)
        access = RealtimeAccess(isEmulator: configuration.isEmulator, project: configuration.project)
        rulesFiles = try RealtimeRulesFiles(configuration.rules, log: configuration.log)
        store = RealtimeRulesStore(folder: configuration.folder, log: configuration.log)
        spoolFolder = configuration.folder ?? SpillFile.temporaryFolder
        let threads = lifecycle?.threads ?? LifecycleThreads()
        let openStores = lifecycle?.openStores ?? OpenStores(threads: threads)
        ownThreads = lifecycle == nil ? threads : nil
        let itself = WeakService()
        self.itself = itself
        registry = Registry(
            threads: threads, openStores: openStores, clock: clock,
            open: { name throws(Status) in
                guard let service = itself.service else { throw Registry<String, RealtimeNamespace>.shutdown }
                return try service.open(name, openStores)
            },
            remove: { name throws(Status) in try provider.delete(Self.stored(name)) })
        itself.service = self
    }

    /// The present time in milliseconds since 1970.
    var nowMilliseconds: Int64 { clock.now().microseconds / 1000 }

    /// The namespace of addresses that name none.
    var standardName: String { RealtimeName.standard(ofProject: project) }

    /// Runs `body` on a worker; an error that it throws is the answer.
    func run(_ call: RealtimeCall, _ body: @escaping @Sendable () throws(Status) -> Void) {
        run(.short, call, { _ throws(Status) in try body() })
    }

    /// Runs `body` on a worker when there is memory for the decoded string; an error that it throws is the answer.
    /// - Parameter body: receives that memory, which counts as used as long as a reference to it exists.
    func decode(
        _ string: [UInt8], _ call: RealtimeCall, _ body: @escaping @Sendable (WorkingShare) throws(Status) -> Void
    ) {
        large.run(
            string, isJSON: true, for: call.requester, cancellation: call.cancellation,
            refused: { status in call.onLoop { call.fail(status) } }
        ) { share in
            do throws(Status) { try body(share) } catch { call.onLoop { call.fail(error) } }
        }
    }

    /// - Throws: RESOURCE_EXHAUSTED for more than a client's write may become when it is decoded.
    func checkSize(of string: [UInt8], _ identity: RealtimeIdentity) throws(Status) {
        guard identity.scope == nil, ParsedSize.ofJSON(string) > Limits.realtimeClientParsedBytesMax else { return }
        throw .resourceExhausted("Data to write exceeds the maximum size that can be modified with a single request.")
    }

    /// Runs `body` on a worker, for a large answer.
    func answer(_ call: RealtimeCall, _ body: @escaping @Sendable () throws(Status) -> Void) {
        run(.long, call) { _ throws(Status) in try body() }
    }

    /// The same for an answer that yields to others.
    func answerInSlices(_ call: RealtimeCall, _ body: @escaping @Sendable (WorkerSlice) throws(Status) -> Void) {
        run(.long, call, body)
    }

    /// The same for an answer that takes at most some milliseconds.
    func answerBriefly(_ call: RealtimeCall, _ body: @escaping @Sendable () throws(Status) -> Void) {
        run(.brief, call) { _ throws(Status) in try body() }
    }

    private func run(
        _ kind: WorkerPool.Kind, _ call: RealtimeCall, _ body: @escaping @Sendable (WorkerSlice) throws(Status) -> Void
    ) {
        let refused: @Sendable (Status) -> Void = { status in call.onLoop { call.fail(status) } }
        pool.runInSlices(kind, for: call.requester, cancellation: call.cancellation, refused: refused) { slice in
            do throws(Status) { try body(slice) } catch { call.onLoop { call.fail(error) } }
        }
    }

    // MARK: Namespaces

    /// The namespace with a name. One that does not exist is empty, and is created by the first write.
    /// A server for local development has every namespace that is named. Any other server has the project's standard
    /// namespace, and those that an administrator has created by writing to them.
    /// administrator has made by writing to them.
    /// - Parameters:
    ///   - mayCreate: whether the caller may create the namespace. Other callers don't receive one that does not exist.
    ///   - completion: is called on the loop: at once when the namespace is open, else later. Fails with NOT_FOUND, or
    ///     with INVALID_ARGUMENT for an invalid name.
    func namespace(
        _ name: String, mayCreate: Bool, on loop: EventLoop,
        _ completion: @escaping @Sendable (Result<RealtimeNamespace, Status>) -> Void
    ) {
        guard RealtimeName.isValid(name) else { return completion(.failure(.invalidArgument("Invalid namespace."))) }
        let mayBeEmpty = mayCreate || name == standardName
        let answer: @Sendable (Result<RealtimeNamespace, Status>) -> Void = { result in
            guard case .success(let namespace) = result, !mayBeEmpty, !namespace.exists else {
                return completion(result)
            }
            completion(.failure(.notFound("The database \(name) does not exist.")))
        }
        if let namespace = registry.opened(name) { return answer(.success(namespace)) }
        registry.use(name) { result in loop.execute { answer(result) } }
    }

    /// The namespace with a name, as clients use it: a server for local development creates it on use.
    func namespace(
        _ name: String, on loop: EventLoop,
        _ completion: @escaping @Sendable (Result<RealtimeNamespace, Status>) -> Void
    ) {
        namespace(name, mayCreate: isEmulator, on: loop, completion)
    }

    /// The same for threads that may wait until it is open: never on an event loop.
    package func namespace(_ name: String) throws(Status) -> RealtimeNamespace {
        guard RealtimeName.isValid(name) else { throw .invalidArgument("Invalid namespace.") }
        return try registry.wait(name)
    }

    /// Runs on a thread of the registry.
    private func open(_ name: String, _ openStores: OpenStores) throws(Status) -> RealtimeNamespace {
        let stored = Self.stored(name)
        let make: @Sendable () throws(Status) -> any Store = { [provider] () throws(Status) in
            try openStores.enter { () throws(Status) in try provider.open(stored) }
        }
        let rules = try rules(of: name)
        guard try provider.contains(stored) else {
            // Indexes that rules define do not justify a file before there is data.
            let store = DeferredStore(
                isWorthKeeping: { snapshot throws(Status) in try TreeDatabase.hasContent(snapshot) }, make: make)
            let database = try TreeDatabase(name: name, store: store, clock: clock, run: background)
            let namespace = RealtimeNamespace(
                name: name, database: database, rules: rules, pool: pool,
                windows: large.memory.windows)
            try Self.preparing(database) { () throws(Status) in try prepare(namespace) }
            return namespace
        }
        let store = try make()
        do throws(Status) {
            let database = try TreeDatabase(name: name, store: store, clock: clock, run: background)
            let namespace = RealtimeNamespace(
                name: name, database: database, rules: rules, pool: pool,
                windows: large.memory.windows)
            try Self.preparing(database) { () throws(Status) in
                try prepare(namespace)
                try namespace.runAbandoned(self)
            }
            return namespace
        } catch {
            store.close()
            openStores.leave()
            throw error
        }
    }

    private static func preparing(_ database: TreeDatabase, _ body: () throws(Status) -> Void) throws(Status) {
        do throws(Status) {
            try body()
        } catch {
            database.close()
            throw error
        }
    }

    /// The workers for computations that must not block the databases' writers.
    private var background: TreeBackground.Run {
        { [pool] requester, refused, job in pool.run(.long, for: requester, refused: refused, job) }
    }

    /// Namespace names are unique among all projects, so that their files need no folder for each project.
    private static func stored(_ name: String) -> DatabaseName { DatabaseName(project: "namespaces", database: name) }

    /// The namespaces that are open now.
    package var openNamespaces: [RealtimeNamespace] { registry.values }

    /// The names of all namespaces, open or not. May wait for the disk.
    package func names() throws(Status) -> [String] {
        let stored = try provider.databases().map(\.database)
        return Set(stored).union(registry.existingNames).sorted { UTF8Order.compare($0, $1) < 0 }
    }

    package func close() {
        registry.close()
        ownThreads?.stop()
        provider.close()
    }

    // MARK: Rules

    /// The rules of a namespace that is being opened: those set over HTTP, unless the file has changed since; else
    /// those of the file.
    private func rules(of name: String) throws(Status) -> TreeRuleset? {
        let file = rulesFiles.ruleset(of: name)
        guard let stored = try store.load(name), stored.base == RealtimeRulesStore.digest(file?.string) else {
            return file
        }
        do throws(TreeRulesError) {
            return try TreeRuleset.compile(stored.string)
        } catch {
            throw .internalError("The stored rules of \(name) can't be read: \(error)")
        }
    }

    /// Applies and stores rules that were set over HTTP.
    func setRules(_ rules: TreeRuleset, of namespace: RealtimeNamespace) throws(Status) {
        let file = rulesFiles.ruleset(of: namespace.name)
        // Setting the rules of a namespace creates it.
        try namespace.database.makeStore()
        try store.save(rules.string, base: RealtimeRulesStore.digest(file?.string), namespace.name)
        namespace.setRules(rules)
    }

    /// Makes again the disconnect writes that failed. Must be called periodically.
    package func runUnfinished() {
        for namespace in openNamespaces { namespace.runUnfinished(self) }
    }

    /// Checks files for changes. Must be called periodically.
    package func pollRules() {
        guard rulesFiles.poll() else { return }
        for namespace in openNamespaces {
            guard rulesFiles.hasChanged(for: namespace.name) else { continue }
            namespace.setRules(rulesFiles.ruleset(of: namespace.name))
        }
    }
}

/// Lets the objects of a service refer to it without a strong reference.
private final class WeakService: @unchecked Sendable {
    // Set once, before the first read.
    weak var service: RealtimeService?
}
