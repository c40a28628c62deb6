import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthRules
import HearthStorage
import HearthTree
import HearthTreeStorage
import Synchronization

/// The Realtime Database of a server: its namespaces, opened when they are first named, and what its front ends share.
final class RealtimeService: Sendable {
    struct Configuration: Sendable {
        var isEmulator = true
        /// The project that all namespaces belong to.
        var project = "demo-hearth"
        /// Files with rules.
        var rules = RealtimeRulesFiles.Paths()
        /// Where rules that were set over HTTP are kept; nil: they are lost at the end.
        var folder: String?
        var log = Log()
    }

    private struct Entry {
        var namespace: RealtimeNamespace
        var usedNanoseconds: UInt64
    }

    private struct State {
        var open: [String: Entry] = [:]
        var isClosed = false
    }

    let isEmulator: Bool
    let project: String
    let authenticator: RealtimeAuthenticator
    let access: RealtimeAccess
    /// For what costs more than its answer.
    let pool: WorkerPool
    /// Event streams, which only a shutdown would end.
    let streams = OpenStreams()
    let connections = RealtimeConnections()
    /// Decodes what is large.
    let large: LargeRequests
    /// What waits for clients that poll: no connection of theirs would hold it.
    let unpolled = MemoryBudget(
        bytesMax: Limits.longPollOutputBytesMax, shareBytesMax: Limits.longPollOutputBytesMax / 2)
    let pushIDs = RealtimePushIDs()
    let clock: any Clock
    let log: Log
    let rulesFiles: RealtimeRulesFiles
    /// Where large answers are written down: `/tmp` may be memory.
    let spoolFolder: String
    /// What they take there.
    let spools = SpillBudget(bytesMax: Limits.realtimeSpoolBytesMax)
    private let store: RealtimeRulesStore
    private let provider: any StoreProvider
    private let state = Mutex(State())

    /// - Throws: INVALID_ARGUMENT with what is wrong in a file of rules, FAILED_PRECONDITION for one that isn't there.
    init(
        _ configuration: Configuration, provider: any StoreProvider, authenticator: Authenticator, pool: WorkerPool,
        memory: ServerMemory = ServerMemory(), clock: any Clock = SystemClock()
    ) throws(Status) {
        isEmulator = configuration.isEmulator
        project = configuration.project
        self.provider = provider
        self.pool = pool
        large = LargeRequests(pool: pool, memory: memory)
        self.clock = clock
        log = configuration.log
        self.authenticator = RealtimeAuthenticator(authenticator)
        access = RealtimeAccess(isEmulator: configuration.isEmulator, project: configuration.project)
        rulesFiles = try RealtimeRulesFiles(configuration.rules, log: configuration.log)
        store = RealtimeRulesStore(folder: configuration.folder)
        spoolFolder = configuration.folder ?? SpillFile.temporaryFolder
    }

    /// The present time in milliseconds since 1970.
    var nowMilliseconds: Int64 { clock.now().microseconds / 1000 }

    /// The namespace of addresses that name none.
    var standardName: String { RealtimeName.standard(ofProject: project) }

    /// Runs `body` on a worker; what it throws is the answer.
    func run(_ call: RealtimeCall, _ body: @escaping @Sendable () throws(Status) -> Void) {
        run(.short, call, body)
    }

    /// Runs `body` on a worker, when there is memory for what the text becomes; what it throws is the answer.
    /// - Parameter body: given that memory, which counts as used as long as anybody holds it.
    func decode(
        _ text: [UInt8], _ call: RealtimeCall, _ body: @escaping @Sendable (WorkingShare) throws(Status) -> Void
    ) {
        large.run(
            text, isJSON: true, for: call.requester, cancellation: call.cancellation,
            refused: { status in call.onLoop { call.fail(status) } }
        ) { share in
            do throws(Status) { try body(share) } catch { call.onLoop { call.fail(error) } }
        }
    }

    /// - Throws: RESOURCE_EXHAUSTED for more than a client's write may become when it is decoded.
    func checkSize(of text: [UInt8], _ identity: RealtimeIdentity) throws(Status) {
        guard identity.scope == nil, ParsedSize.ofJSON(text) > Limits.realtimeClientParsedBytesMax else { return }
        throw .resourceExhausted("Data to write exceeds the maximum size that can be modified with a single request.")
    }

    /// Runs `body` on a worker, for an answer that is large.
    func answer(_ call: RealtimeCall, _ body: @escaping @Sendable () throws(Status) -> Void) {
        run(.long, call, body)
    }

    private func run(
        _ kind: WorkerPool.Kind, _ call: RealtimeCall, _ body: @escaping @Sendable () throws(Status) -> Void
    ) {
        let refused: @Sendable (Status) -> Void = { status in call.onLoop { call.fail(status) } }
        pool.run(kind, for: call.requester, cancellation: call.cancellation, refused: refused) {
            do throws(Status) { try body() } catch { call.onLoop { call.fail(error) } }
        }
    }

    // MARK: Namespaces

    /// The namespace with a name.
    ///
    /// A server for local development makes each on use. Any other has the project's standard one, and those that an
    /// administrator has made by writing to them.
    /// - Parameter mayCreate: whether it is made when it isn't there.
    /// - Throws: NOT_FOUND, INVALID_ARGUMENT for what is no name.
    func namespace(_ name: String, mayCreate: Bool) throws(Status) -> RealtimeNamespace {
        guard RealtimeName.isValid(name) else { throw .invalidArgument("Invalid namespace.") }
        // Opening holds the lock: two requests must not open one file twice, and it takes about a millisecond.
        let result: Result<RealtimeNamespace, Status> = state.withLock { state in
            if let entry = state.open[name] {
                state.open[name]!.usedNanoseconds = clock.monotonicNanoseconds()
                return .success(entry.namespace)
            }
            if state.isClosed { return .failure(.unavailable("The server is shutting down.")) }
            do throws(Status) {
                let stored = Self.stored(name)
                if !mayCreate, name != standardName, try !provider.contains(stored) {
                    throw .notFound("The database \(name) does not exist.")
                }
                let database = try TreeDatabase(name: name, store: try provider.open(stored), clock: clock)
                let namespace = RealtimeNamespace(
                    name: name, database: database, rules: try rules(of: name), pool: pool)
                try namespace.runAbandoned(self)
                state.open[name] = Entry(namespace: namespace, usedNanoseconds: clock.monotonicNanoseconds())
                return .success(namespace)
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// The namespace with a name, made on use by a server for local development.
    func namespace(_ name: String) throws(Status) -> RealtimeNamespace {
        try namespace(name, mayCreate: isEmulator)
    }

    /// Names are known to all projects, so their files need no folder for each.
    private static func stored(_ name: String) -> DatabaseName { DatabaseName(project: "namespaces", database: name) }

    /// The namespaces that are open now.
    var openNamespaces: [RealtimeNamespace] { state.withLock { $0.open.values.map(\.namespace) } }

    /// The names of all namespaces, open or not.
    func names() throws(Status) -> [String] {
        let stored = try provider.databases().map(\.database)
        let open = state.withLock { Array($0.open.keys) }
        return Set(stored).union(open).sorted { UTF8Order.compare($0, $1) < 0 }
    }

    func tick() {
        for namespace in takeIdle() { namespace.database.close() }
    }

    /// Namespaces beyond `Limits.databasesOpenMax` that nobody has named for a while, taken out of the registry: they are
    /// opened again when they are named. A call that still holds one is refused with UNAVAILABLE, and tries again.
    private func takeIdle() -> [RealtimeNamespace] {
        let now = clock.monotonicNanoseconds()
        return state.withLock { state in
            guard state.open.count > Limits.databasesOpenMax else { return [] }
            let idle = state.open.filter { _, entry in
                entry.namespace.users.isEmpty
                    && entry.usedNanoseconds + UInt64(Limits.databaseIdleSeconds) * 1_000_000_000 < now
            }
            for name in idle.keys { state.open[name] = nil }
            return idle.values.map(\.namespace)
        }
    }

    func close() {
        let namespaces = state.withLock { state in
            state.isClosed = true
            defer { state.open = [:] }
            return state.open.values.map(\.namespace)
        }
        for namespace in namespaces { namespace.database.close() }
        provider.close()
    }

    // MARK: Rules

    /// The rules of a namespace that is being opened: those set over HTTP, unless the file has changed since; else the file's.
    private func rules(of name: String) throws(Status) -> TreeRuleset? {
        let file = rulesFiles.ruleset(of: name)
        guard let stored = try store.load(name), stored.base == RealtimeRulesStore.digest(file?.text) else {
            return file
        }
        do throws(TreeRulesError) {
            return try TreeRuleset.compile(stored.text)
        } catch {
            throw .internalError("The stored rules of \(name) can't be read: \(error)")
        }
    }

    /// Puts rules in force that were set over HTTP, and keeps them.
    func setRules(_ rules: TreeRuleset, of namespace: RealtimeNamespace) throws(Status) {
        let file = rulesFiles.ruleset(of: namespace.name)
        try store.save(rules.text, base: RealtimeRulesStore.digest(file?.text), namespace.name)
        namespace.setRules(rules)
    }

    /// Looks for changes of files. To be called now and then.
    func pollRules() {
        guard rulesFiles.poll() else { return }
        for namespace in openNamespaces {
            guard rulesFiles.hasChanged(for: namespace.name) else { continue }
            namespace.setRules(rulesFiles.ruleset(of: namespace.name))
        }
    }
}

/// Makes the names of new children, for all namespaces.
final class RealtimePushIDs: Sendable {
    private let generator = Mutex(PushID.Generator())

    func next(nowMilliseconds: Int64) -> TreeKey {
        generator.withLock { $0.next(nowMilliseconds: nowMilliseconds) }
    }
}
