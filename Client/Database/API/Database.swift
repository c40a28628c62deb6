public import Foundation
public import HearthApp
import HearthModel
import HearthTree

/// A Realtime Database, as one app sees it: the root of all references.
///
/// All members may be used from any thread. Events and completions run on `callbackQueue`; `async` calls need no queue.
///
/// Configure a database before its first use: a later change of any setting but `callbackQueue` ends the program. The
/// first use is the first reference, or the first call of `goOffline`, `goOnline` or `purgeOutstandingWrites`.
///
/// Calls that break the API's rules, such as a key that no database can have, end the program with a message on
/// standard error.
///
/// Errors are `NSError`s of the domain `com.firebase`. The failure reason has the server's message. The codes:
/// - 1: the rules deny the operation.
/// - 2: the app was deleted.
/// - 3: `purgeOutstandingWrites` cancelled the write.
/// - 9999: any other reason, which the description names: `too_big` for a write of more than 16 MiB, `disk` for a write
///   that the cache cannot store, `disconnect`, `set` and `maxretry` for a transaction that is given up,
///   `observer_removed` for a call that waits for an event, `failed_precondition` when the cache is in use by another
///   client.
///
/// `getData` alone has the domain `com.firebase.core`, with the code 1.
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

    /// The app that the database belongs to; nil after the app is deleted and released.
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

    /// Creates a database without an app. Any use of it ends the program: `database()` returns those that can be used.
    public override init() {
        makeDriver = nil
        appName = ""
        state = Locked(State())
    }

    // MARK: Configuration

    /// Whether the cache and the writes without an answer are stored on disk, so that they survive the program; false
    /// by default. Transactions and onDisconnect operations are never stored. Set it before the first use.
    public var isPersistenceEnabled: Bool {
        get { state.with { $0.isPersistenceEnabled } }
        set { configure("isPersistenceEnabled") { $0.isPersistenceEnabled = newValue } }
    }

    /// The size in bytes above which the cache deletes data: from 1,048,576 (1 MiB) to 104,857,600 (100 MiB), by
    /// default 10,485,760 (10 MiB). Any other value ends the program. Set it before the first use.
    ///
    /// The least recently used data is deleted first. Data that an observer or `keepSynced` uses, and writes without an
    /// answer, are never deleted, so that the cache may be larger. The size is compared after each 1,000 messages with
    /// data from the server.
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

    /// Not in Firebase's API: the folder of the caches; nil, the default, for `firebase-database` in `XDG_DATA_HOME`,
    /// or else in `~/.local/share`; without `XDG_DATA_HOME` and `HOME` the program then ends at the first use. Each app
    /// and database has a folder in it, which one client at a time can use. Set it before the first use.
    public var persistenceDirectory: URL? {
        get { state.with { $0.directory } }
        set { configure("persistenceDirectory") { $0.directory = newValue } }
    }

    /// Not in Firebase's API: the source of the user's tokens; nil, the default, for `Auth.auth(app:)`. Set it before
    /// the first use.
    public var authTokenProvider: (any AuthTokenProvider)? {
        get { state.with { $0.provider } }
        set { configure("authTokenProvider") { $0.provider = newValue } }
    }

    /// Not in Firebase's API: the trusted certificates and the client's certificate for an `https` database URL; by
    /// default the system's trusted certificates and none of the client. Set it before the first use.
    public var tls: TLSSettings {
        get { state.with { $0.tls } }
        set { configure("tls") { $0.tls = newValue } }
    }

    /// Runs events and completions, one after another, also when the queue is concurrent. The default is the main
    /// queue; a program that does not run its main queue must set another one. It may be changed at any time: the
    /// change concerns what has not been handed to the earlier queue yet. With another queue than the main one, closures in
    /// classes of the main actor must be `@Sendable`: the compiler takes them for closures of the main actor otherwise.
    public var callbackQueue: DispatchQueue {
        get { state.with { $0.callbackQueue } }
        set {
            state.with { state in
                state.callbackQueue = newValue
                state.repository?.setCallbackQueue(newValue)
            }
        }
    }

    /// Uses the server at `host:port`, without TLS, instead of that of the URL. Call it before the first use.
    /// - Parameters:
    ///   - host: a name or an address, not empty. IPv6 addresses may be in brackets.
    ///   - port: from 1 to 65,535.
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
    /// - Returns: a reference to the root.
    public func reference() -> DatabaseReference { DatabaseReference(database: self, path: .root) }

    /// A reference to a location.
    /// - Parameter path: keys from the root joined by `/`; empty parts are ignored, and an empty path is the root. A
    ///   path has at most 32 keys and 768 bytes. A key has 1 to 768 bytes of UTF-8, and none of `.` `$` `#` `[` `]` and
    ///   control characters. Any other path ends the program. `.info` is the first key of the client's own locations.
    /// - Returns: a reference to the location, which may have no data.
    public func reference(withPath path: String) -> DatabaseReference {
        orTrap { () throws(Status) in
            DatabaseReference(database: self, path: try Paths.path(path, below: .root, "reference(withPath:)"))
        }
    }

    /// A reference to the location of a URL.
    /// - Parameter url: a URL with this database's host and port; its path is percent-encoded. A URL with another host
    ///   or port, or with a path that `reference(withPath:)` does not accept, ends the program.
    /// - Returns: a reference to the location, which may have no data.
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

    /// Closes the connection and opens no other until `goOnline`.
    ///
    /// The server makes the onDisconnect operations that it has. Until `goOnline`, observers receive local data and the
    /// program's own writes, and the completions of writes wait. A single read that was sent continues with the cache;
    /// a transaction that was sent fails with `disconnect`.
    public func goOffline() { repository.perform { $0.goOffline(reason: Database.userReason) } }

    /// Connects again after `goOffline`, at once. Listens are sent first, then the writes that wait, in their order.
    /// While the client is online it only shortens the delays of later attempts to connect.
    public func goOnline() { repository.perform { $0.goOnline(reason: Database.userReason) } }

    /// Cancels all writes, transactions and onDisconnect operations that the server did not acknowledge.
    ///
    /// Their completions receive the error 3, their `async` calls throw it, and observers receive the data without the
    /// writes. They are deleted from the disk, too. What was sent already may still be made by the server, whose data
    /// observers then receive.
    public func purgeOutstandingWrites() { repository.perform { $0.purgeOutstandingWrites() } }

    /// Whether the databases of the process log details to standard error. Warnings are always logged.
    /// - Parameter isEnabled: true to log details; at the start of the process they are not logged.
    public class func setLoggingEnabled(_ isEnabled: Bool) { Log.setVerbose(isEnabled) }

    /// The version of the client, which is also sent to the server.
    /// - Returns: three numbers joined by dots.
    public class func sdkVersion() -> String { Database.version }

    static let version = HearthVersion.string

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
    /// - Parameter completion: runs on a queue of the library when it is closed.
    func close(_ completion: @escaping @Sendable () -> Void) {
        let repository = state.with { state in
            state.isClosed = true
            return state.repository
        }
        guard let repository else { return completion() }
        repository.close(completion)
    }
}
