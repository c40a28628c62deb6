public import Foundation
public import HearthApp
import HearthModel
import HearthTree

/// A Realtime Database, as one app sees it: the root of all references.
///
/// All members may be used from any thread. Events and completions run on `callbackQueue`; `async` calls need no
/// queue.
public class Database: NSObject, @unchecked Sendable {
    // `state` is locked, the rest is constant; Swift makes access to the weak reference safe.
    private struct State {
        var location: DatabaseLocation?
        var isPersistenceEnabled = false
        var cacheSizeBytes: UInt = Database.defaultCacheSizeBytes
        var directory: URL?
        var provider: (any AuthTokenProvider)?
        var tls = TLSSettings()
        var callbackQueue = DispatchQueue.main
        var repository: Repository?
        var isClosed = false
    }

    static let defaultCacheSizeBytes: UInt = 10 << 20
    static let cacheSizesBytes: ClosedRange<UInt> = 1 << 20...100 << 20
    /// The interrupt reason that `goOffline` sets.
    static let userReason = "user"

    public private(set) weak var app: FirebaseApp?
    private let appName: String
    private let makeDriver: Repository.MakeDriver?
    private let state: Locked<State>

    init(app: FirebaseApp, location: DatabaseLocation, makeDriver: @escaping Repository.MakeDriver) {
        self.app = app
        self.makeDriver = makeDriver
        appName = app.name
        state = Locked(State(location: location))
    }

    /// Creates a database without an app. It has no use.
    public override init() {
        makeDriver = nil
        appName = ""
        state = Locked(State())
    }

    // MARK: Configuration

    /// Whether the cache and unacknowledged writes are stored on disk. Set it before the first use.
    public var isPersistenceEnabled: Bool {
        get { state.with { $0.isPersistenceEnabled } }
        set { configure("isPersistenceEnabled") { $0.isPersistenceEnabled = newValue } }
    }

    /// The size above which the cache deletes the least recently used data; 1 MB to 100 MB. Set it before the first
    /// use.
    public var persistenceCacheSizeBytes: UInt {
        get { state.with { $0.cacheSizeBytes } }
        set {
            orTrap { () throws(Status) in
                guard Self.cacheSizesBytes.contains(newValue) else {
                    throw .invalidArgument(
                        "persistenceCacheSizeBytes must be from \(Self.cacheSizesBytes.lowerBound) to "
                            + "\(Self.cacheSizesBytes.upperBound), but was \(newValue).")
                }
                try change("persistenceCacheSizeBytes") { $0.cacheSizeBytes = newValue }
            }
        }
    }

    /// Not in Firebase's API: the folder of the caches; nil for `firebase-database` in the user's data folder. Set
    /// it before the first use.
    public var persistenceDirectory: URL? {
        get { state.with { $0.directory } }
        set { configure("persistenceDirectory") { $0.directory = newValue } }
    }

    /// Not in Firebase's API: the source of tokens; `Auth.auth(app:)` by default. Set it before the first use.
    public var authTokenProvider: (any AuthTokenProvider)? {
        get { state.with { $0.provider } }
        set { configure("authTokenProvider") { $0.provider = newValue } }
    }

    /// Not in Firebase's API: the trusted certificates and the client's certificate for an `https` database URL.
    /// Set it before the first use.
    public var tls: TLSSettings {
        get { state.with { $0.tls } }
        set { configure("tls") { $0.tls = newValue } }
    }

    /// Runs events and completions, one after another. The default is the main queue; a program that does not run
    /// its main queue must set another one.
    public var callbackQueue: DispatchQueue {
        get { state.with { $0.callbackQueue } }
        set {
            state.with { state in
                state.callbackQueue = newValue
                state.repository?.setCallbackQueue(newValue)
            }
        }
    }

    /// Uses the server at `host:port`, without TLS. Call it before the first use.
    public func useEmulator(withHost host: String, port: Int) {
        orTrap { () throws(Status) in try moveToEmulator(host, port) }
    }

    func moveToEmulator(_ host: String, _ port: Int) throws(Status) {
        if host.isEmpty { throw .invalidArgument("Cannot pass nil or empty host when calling useEmulator().") }
        guard (1...65535).contains(port) else {
            throw .invalidArgument("useEmulator() needs a port between 1 and 65535, but got \(port).")
        }
        try change("useEmulator()") { $0.location?.move(toHost: host, port: port) }
    }

    private func configure(_ name: String, _ body: (inout State) -> Void) {
        orTrap { () throws(Status) in try change(name, body) }
    }

    private func change(_ name: String, _ body: (inout State) -> Void) throws(Status) {
        try state.with { (state) throws(Status) in
            if state.repository != nil || state.isClosed {
                throw .failedPrecondition(
                    "\(name) must be set before any other use of the Database instance, and it is in use already.")
            }
            body(&state)
        }
    }

    // MARK: References

    /// The database's root.
    public func reference() -> DatabaseReference { DatabaseReference(database: self, path: .root) }

    public func reference(withPath path: String) -> DatabaseReference {
        orTrap { () throws(Status) in
            DatabaseReference(database: self, path: try Paths.path(path, below: .root, "reference(withPath:)"))
        }
    }

    /// - Parameter url: a URL with this database's host.
    public func reference(fromURL url: String) -> DatabaseReference {
        orTrap { () throws(Status) in DatabaseReference(database: self, path: try path(ofURL: url)) }
    }

    func path(ofURL url: String) throws(Status) -> TreePath {
        let found = try DatabaseLocation(url)
        let own = repository.configuration.location
        guard found.hostAndPort == own.hostAndPort else {
            throw .invalidArgument(
                "The URL \(url) is not of this database: expected the host \(own.hostAndPort), but got "
                    + "\(found.hostAndPort).")
        }
        return found.path
    }

    // MARK: Connection

    /// Closes the connection and opens no other until `goOnline`. Writes wait, and observers receive local data.
    public func goOffline() { repository.perform { $0.goOffline(reason: Database.userReason) } }

    public func goOnline() { repository.perform { $0.goOnline(reason: Database.userReason) } }

    /// Cancels all writes, transactions and onDisconnect operations that the server did not acknowledge.
    public func purgeOutstandingWrites() { repository.perform { $0.purgeOutstandingWrites() } }

    /// Whether to log details to standard error. Warnings are always logged.
    public class func setLoggingEnabled(_ isEnabled: Bool) { Log.setVerbose(isEnabled) }

    public class func sdkVersion() -> String { Database.version }

    static let version = "1.0.0"

    // MARK: At work

    /// Created at the first use.
    var repository: Repository {
        orTrap { () throws(Status) in try checkedRepository() }
    }

    /// The repository; nil before the first use.
    var startedRepository: Repository? { state.with { $0.repository } }

    func checkedRepository() throws(Status) -> Repository {
        try state.with { (state) throws(Status) in
            if let repository = state.repository { return repository }
            guard let makeDriver, let location = state.location else {
                throw .failedPrecondition("A Database that was made by init() can't be used: see Database.database().")
            }
            guard !state.isClosed, let app else {
                throw .failedPrecondition("The Database's app has been deleted.")
            }
            let repository = Repository(
                configuration: try configuration(state, location, app), makeDriver: makeDriver)
            repository.setCallbackQueue(state.callbackQueue)
            state.repository = repository
            return repository
        }
    }

    private func configuration(
        _ state: State, _ location: DatabaseLocation, _ app: FirebaseApp
    ) throws(Status) -> Repository.Configuration {
        var folder: String?
        if state.isPersistenceEnabled {
            let caches =
                if let directory = state.directory { directory.path } else {
                    try CacheFolder.standard(environment: ProcessInfo.processInfo.environment)
                }
            folder = CacheFolder.folder(in: caches, app: appName, location: location)
        }
        return Repository.Configuration(
            location: location, tls: state.tls, appName: appName, cacheFolder: folder,
            cacheSizeBytesMax: Int64(state.cacheSizeBytes),
            provider: AuthShare(state.provider ?? Auth.auth(app: app)))
    }

    /// Closes the database when its app is deleted.
    func close() async {
        let repository = state.with { state in
            state.isClosed = true
            return state.repository
        }
        await repository?.close()
    }
}
