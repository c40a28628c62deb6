internal import Foundation
internal import HearthConcurrency
internal import HearthModel
internal import HearthSync

/// A Firestore database for one app: the root of all references.
///
/// All functions may be called from any thread. Completion handlers and listeners run on `settings.dispatchQueue`, one
/// after another.
public final class Firestore: Sendable {
    private struct State {
        var settings = FirestoreSettings().resolved
        var engine: (any FirestoreEngine)?
        var isTerminated = false
        var provider: (any AuthTokenProvider)?
        /// A serial queue that targets the user's queue.
        var userQueue: DispatchQueue?
    }

    /// The app of this instance.
    public let app: FirebaseApp
    let databaseName: DatabaseName
    private let factory: EngineFactory
    private let state = Locked(State())
    /// Runs the engine's completions and events, one after another.
    let engineQueue: DispatchQueue
    /// Transactions and aggregations.
    let tasks = InstanceTasks()

    init(app: FirebaseApp, database: String, factory: EngineFactory) {
        self.app = app
        databaseName = DatabaseName(project: app.options.projectID ?? "", database: database)
        self.factory = factory
        engineQueue = DispatchQueue(label: "FirebaseFirestore.events.\(app.name).\(database)")
    }

    // MARK: Instances

    private struct InstanceName: Hashable {
        var app: ObjectIdentifier
        var database: String
    }

    private static let instances = Locked<[InstanceName: Firestore]>([:])

    /// The default database of the default app. The program ends when the app is not configured: call
    /// `FirebaseApp.configure()` first.
    /// - Returns: the same instance at each call, until it is terminated.
    @discardableResult
    public class func firestore() -> Firestore { firestore(database: DatabaseName.defaultDatabase) }

    /// The default database of an app.
    /// - Parameter app: a configured app.
    /// - Returns: the same instance for the same app, until it is terminated.
    @discardableResult
    public class func firestore(app: FirebaseApp) -> Firestore {
        firestore(app: app, database: DatabaseName.defaultDatabase)
    }

    /// A database of the default app. The program ends when the app is not configured.
    /// - Parameter database: the database's id; `(default)` for the default database. An empty id ends the program.
    /// - Returns: the same instance for the same database, until it is terminated.
    @discardableResult
    public class func firestore(database: String) -> Firestore {
        let app = orTrap { () throws(Status) in
            guard let app = FirebaseApp.app() else {
                throw .failedPrecondition(
                    "Failed to get FirebaseApp instance. Please call FirebaseApp.configure() before using Firestore.")
            }
            return app
        }
        return firestore(app: app, database: database)
    }

    /// A database of an app.
    /// - Parameters:
    ///   - app: a configured app.
    ///   - database: the database's id; `(default)` for the default database. An empty id ends the program.
    /// - Returns: the same instance for the same app and database, until it is terminated.
    @discardableResult
    public class func firestore(app: FirebaseApp, database: String) -> Firestore {
        instance(app: app, database: database, factory: .standard)
    }

    static func instance(app: FirebaseApp, database: String, factory: EngineFactory) -> Firestore {
        orTrap { () throws(Status) in
            if database.isEmpty { throw .invalidArgument("Database identifier cannot be empty.") }
        }
        _ = endsWithApp
        return instances.with { instances in
            let name = InstanceName(app: ObjectIdentifier(app), database: database)
            if let firestore = instances[name] { return firestore }
            let firestore = Firestore(app: app, database: database, factory: factory)
            instances[name] = firestore
            return firestore
        }
    }

    /// Initialized once per program.
    private static let endsWithApp: Void = FirebaseApp.atDeletion { app, completion in
        let ended = DispatchGroup()
        for firestore in instances(of: app) {
            ended.enter()
            firestore.shutDown { ended.leave() }
        }
        ended.notify(queue: .global(), execute: completion)
    }

    static func instances(of app: FirebaseApp) -> [Firestore] {
        instances.with { $0.values.filter { $0.app === app } }
    }

    private var instanceName: InstanceName {
        InstanceName(app: ObjectIdentifier(app), database: databaseName.database)
    }

    /// The cache of an instance. An app with the name of a deleted one uses the same cache.
    private struct CacheName: Hashable {
        var app: String
        var database: DatabaseName
    }

    /// Engines of former instances that are ending and still hold their caches, and deletions of caches.
    private static let endings = CacheEndings<CacheName>()
    private static let endingSecondsMax = 10

    private var cacheName: CacheName { CacheName(app: app.name, database: databaseName) }

    private func leaveRegistry() {
        let name = instanceName
        Self.instances.with { instances in
            if instances[name] === self { instances[name] = nil }
        }
    }

    // MARK: Settings

    /// A copy of the settings: a change has no effect until it is assigned. Assign settings before the first use of the
    /// instance. Assigning different settings later ends the program.
    public var settings: FirestoreSettings {
        get { state.with { $0.settings }.settings }
        set {
            let settings = newValue.resolved
            orTrap { () throws(Status) in try change(to: settings) }
        }
    }

    func change(to settings: ResolvedSettings) throws(Status) {
        try state.with { (state) throws(Status) in
            if state.engine != nil || state.isTerminated {
                if state.settings == settings { return }
                throw .failedPrecondition(
                    "Firestore instance has already been started and its settings can no longer be changed. You can only "
                        + "set settings before calling any other methods on a Firestore instance.")
            }
            state.settings = settings
            state.userQueue = nil
        }
    }

    /// The source of tokens; by default `Auth.auth(app:)`. Set it before the first use of the instance. Apple's library
    /// has no such property.
    public var authTokenProvider: (any AuthTokenProvider)? {
        get { state.with { $0.provider } }
        set {
            orTrap { () throws(Status) in
                try state.with { (state) throws(Status) in
                    if state.engine != nil {
                        throw .failedPrecondition(
                            "authTokenProvider must be set before the Firestore instance is used.")
                    }
                    state.provider = newValue
                }
            }
        }
    }

    /// Connects to `host:port` without TLS. Call it before the first use of the instance.
    /// - Parameters:
    ///   - host: a name or an address; not empty.
    ///   - port: 1 to 65535.
    public func useEmulator(withHost host: String, port: Int) {
        orTrap { () throws(Status) in
            if host.isEmpty { throw .invalidArgument("Cannot pass nil or empty host when calling useEmulator().") }
            guard (1...65535).contains(port) else {
                throw .invalidArgument("useEmulator() needs a port between 1 and 65535, but got \(port).")
            }
            var settings = state.with { $0.settings }
            // An IPv6 address contains colons itself.
            settings.host = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]:\(port)" : "\(host):\(port)"
            settings.isSSLEnabled = false
            try change(to: settings)
        }
    }

    /// Writes details to standard error, or stops it. Warnings are always written.
    /// - Parameter isEnabled: whether details are written. The setting is that of the program, for all instances.
    public class func enableLogging(_ isEnabled: Bool) { Log.setVerbose(isEnabled) }

    var isPersistent: Bool { state.with { $0.settings.isPersistent } }

    // MARK: The engine

    var reader: UserDataReader { UserDataReader(database: databaseName) }

    /// Starts the engine at first use. After `terminate` every use is a programming error.
    var engine: any FirestoreEngine {
        orTrap { () throws(Status) in try checkedEngine() }
    }

    func checkedEngine() throws(Status) -> any FirestoreEngine {
        try state.with { (state) throws(Status) in
            if state.isTerminated { throw .failedPrecondition("The client has already been terminated.") }
            if let engine = state.engine { return engine }
            let engine = start(state)
            // A cache that another process uses may be free at the next call.
            if let broken = engine as? BrokenEngine, broken.reason.code == .failedPrecondition { return engine }
            state.engine = engine
            return engine
        }
    }

    private func start(_ state: State) -> any FirestoreEngine {
        let (host, isSSLEnabled) = state.settings.server(environment: ProcessInfo.processInfo.environment)
        Log.debug("\(databaseName) starts at \(host).")
        let provider = AuthShare(state.provider ?? Auth.auth(app: app))
        // The former instance ends on its own queue, which waits for nothing.
        Self.endings.wait(cacheName, secondsMax: Self.endingSecondsMax)
        do {
            return try factory.make(
                EngineFactory.Request(
                    configuration: try configuration(state.settings), host: host, isSSLEnabled: isSSLEnabled,
                    tls: state.settings.tls, credentials: ProviderCredentials(provider),
                    callbacks: engineQueue))
        } catch {
            Log.warning("Firestore could not start: \(error)")
            return BrokenEngine(reason: error, callbacks: engineQueue)
        }
    }

    private func configuration(_ settings: ResolvedSettings) throws(Status) -> SyncConfiguration {
        let cache: SyncConfiguration.Cache
        switch settings.cache {
        case .memoryEager: cache = .memoryEager
        case .memoryLRU(let size): cache = .memoryLRU(sizeBytes: size)
        case .persistent(let folder?, let size): cache = .persistent(folder: folder, sizeBytes: size)
        case .persistent(nil, let size):
            let folder = try CacheFolder.standard(environment: ProcessInfo.processInfo.environment)
            cache = .persistent(folder: folder, sizeBytes: size)
        }
        var configuration = SyncConfiguration(database: databaseName, appName: app.name, cache: cache)
        configuration.onWarning = { Log.warning($0) }
        configuration.onDamage = { Log.warning($0.message) }
        return configuration
    }

    // MARK: Termination

    /// Ends the engine. The cache remains. When this returns, `firestore()` makes a new instance.
    /// - Parameter completion: runs on a queue of the library when the engine has ended.
    func shutDown(_ completion: @escaping @Sendable () -> Void) {
        let engine = state.with { state in
            defer {
                state.isTerminated = true
                state.engine = nil
            }
            return state.engine
        }
        let ending = engine.map { (engine: $0, use: Self.endings.begin(cacheName)) }
        leaveRegistry()
        tasks.end()
        guard let ending else { return Self.endings.afterAll(cacheName, completion) }
        ending.engine.terminate {
            ending.use.end()
            completion()
        }
    }

    func shutDown() async {
        await withCheckedContinuation { continuation in shutDown { continuation.resume() } }
    }

    /// Deletes the cache's files after the instance that is ending, and before the next one starts.
    /// - Parameter completion: runs on a queue of the library.
    func clearCache(_ completion: @escaping @Sendable (Status?) -> Void) {
        let configuration: SyncConfiguration
        do throws(Status) {
            let settings = try state.with { (state) throws(Status) in
                if state.engine != nil {
                    throw .failedPrecondition(
                        "Persistence cannot be cleared while the client is running: call it before the first use, or "
                            + "after terminate().")
                }
                return state.settings
            }
            guard settings.isPersistent else { return Self.endings.afterAll(cacheName) { completion(nil) } }
            configuration = try self.configuration(settings)
        } catch {
            return completion(error)
        }
        let use = Self.endings.begin(cacheName)
        use.afterFormer { [factory] in
            var failure: Status?
            do throws(Status) { try factory.clearPersistence(configuration) } catch { failure = error }
            // A call that waits for it may hold the lock that the completion takes.
            use.end()
            completion(failure)
        }
    }

    func clearCache() async throws(Status) {
        let failure = await withCheckedContinuation { continuation in
            clearCache { continuation.resume(returning: $0) }
        }
        if let failure { throw failure }
    }

    // MARK: The user's queue

    /// Runs the user's code, one closure after another on any queue of the user.
    func deliver(_ work: @escaping @Sendable () -> Void) {
        let queue = state.with { state in
            if let queue = state.userQueue { return queue }
            let queue =
                state.settings.usesMainQueue
                ? DispatchQueue.main
                : DispatchQueue(label: "FirebaseFirestore.callbacks", target: state.settings.dispatchQueue)
            state.userQueue = queue
            return queue
        }
        queue.async(execute: work)
    }

    /// Converts a handler of the user to one for the engine.
    func handler(_ completion: (((any Error)?) -> Void)?) -> @Sendable (Status?) -> Void {
        guard let completion else { return { _ in } }
        let carried = Carried(completion)
        return { [self] status in deliver { carried.value(status?.nsError) } }
    }

    func handler<Success: Sendable>(
        _ completion: @escaping (Success?, (any Error)?) -> Void
    ) -> @Sendable (Result<Success, Status>) -> Void {
        let carried = Carried(completion)
        return { [self] result in
            deliver {
                switch result {
                case .success(let value): carried.value(value, nil)
                case .failure(let status): carried.value(nil, status.nsError)
                }
            }
        }
    }
}

extension Firestore: Hashable {
    public static func == (left: Firestore, right: Firestore) -> Bool { left === right }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// Waits for a completion without a queue of the user. It ends early with `CancellationError` when the task is
/// cancelled; the work continues.
nonisolated(nonsending) func waiting(
    _ start: (@escaping @Sendable (Status?) -> Void) -> Void
) async throws {
    let _: Void = try await answer { (completion: @escaping @Sendable (Result<Void, any Error>) -> Void) in
        start { status in completion(status.map { .failure($0.nsError) } ?? .success(())) }
    }
}

nonisolated(nonsending) func waiting<Success: Sendable>(
    _ start: (@escaping @Sendable (Result<Success, Status>) -> Void) -> Void
) async throws -> Success {
    try await waiting(stoppable: { completion in
        start(completion)
        return {}
    })
}

/// - Parameter start: returns a closure that ends the work early.
nonisolated(nonsending) func waiting<Success: Sendable>(
    stoppable start: (@escaping @Sendable (Result<Success, Status>) -> Void) -> @Sendable () -> Void
) async throws -> Success {
    try await answer(stoppable: { (completion: @escaping @Sendable (Result<Success, any Error>) -> Void) in
        start { (result: Result<Success, Status>) in completion(result.mapError { $0.nsError }) }
    })
}
