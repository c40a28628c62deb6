import HearthHost
import HearthConcurrency
import HearthModel
import HearthEngine
import HearthDocuments
import Synchronization

/// The databases of a server, opened at their first use; see `Registry`.
///
/// A database that was never written is empty for callers that may create it: the first write creates its store.
package final class DatabaseRegistry: Sendable {
    /// Applies the configuration to a database that is being opened, then calls the closure.
    package typealias Preparation = @Sendable (Database, @escaping @Sendable () -> Void) throws(Status) -> Void

    private let provider: any StoreProvider
    private let registry: Registry<DatabaseName, Database>
    /// Nil when the caller owns the threads.
    private let ownThreads: LifecycleThreads?

    /// - Parameters:
    ///   - allowsClockSkew: whether a database opens whose commits are ahead of the clock.
    ///   - prepare: called once with each opened database, before any request uses it.
    package convenience init(
        provider: any StoreProvider, clock: any Clock = SystemClock(), allowsClockSkew: Bool = false,
        prepare: Preparation? = nil
    ) {
        let threads = LifecycleThreads()
        self.init(
            provider: provider, threads: threads, openStores: OpenStores(threads: threads), ownsThreads: true,
            clock: clock,
            allowsClockSkew: allowsClockSkew, prepare: prepare)
    }

    /// - Parameter memory: for the reads of transactions, and for commits that wait.
    package init(
        provider: any StoreProvider, threads: LifecycleThreads, openStores: OpenStores, ownsThreads: Bool = false,
        clock: any Clock = SystemClock(), allowsClockSkew: Bool = false,
        memory: DatabaseMemory = DatabaseMemory(), prepare: Preparation? = nil
    ) {
        self.provider = provider
        ownThreads = ownsThreads ? threads : nil
        registry = Registry(
            threads: threads, openStores: openStores, clock: clock,
            open: { name throws(Status) in
                let make: @Sendable () throws(Status) -> any Store = { () throws(Status) in
                    try openStores.enter { () throws(Status) in try provider.open(name) }
                }
                if try provider.contains(name) {
                    return try Self.open(name, try make(), openStores, clock, allowsClockSkew, memory, prepare)
                }
                return try Self.openDeferred(name, make, clock, memory, prepare)
            },
            remove: { name throws(Status) in try provider.delete(name) })
    }

    private static func open(
        _ name: DatabaseName, _ store: any Store, _ openStores: OpenStores, _ clock: any Clock, _ allowsClockSkew: Bool,
        _ memory: DatabaseMemory, _ prepare: Preparation?
    ) throws(Status) -> Database {
        do throws(Status) {
            let database = try Database(
                name: name, store: store, clock: clock, allowsClockSkew: allowsClockSkew, memory: memory)
            // Indexes are built while the database is in use.
            try prepare?(database) {}
            return database
        } catch {
            store.close()
            openStores.leave()
            throw error
        }
    }

    /// A configuration alone does not justify a file before the first document.
    private static func openDeferred(
        _ name: DatabaseName, _ make: @escaping @Sendable () throws(Status) -> any Store, _ clock: any Clock,
        _ memory: DatabaseMemory, _ prepare: Preparation?
    ) throws(Status) -> Database {
        let isPrepared = Flag()
        let store = DeferredStore(isWorthKeeping: { _ in isPrepared.isSet }, make: make)
        let database = try Database(name: name, store: store, clock: clock, memory: memory)
        if let prepare {
            let answer = Awaited<Void>()
            try prepare(database) { answer.set(.success(())) }
            try answer.wait()
        }
        isPrepared.set()
        return database
    }

    /// The database with a name if it is open; returns immediately. It may not exist.
    func opened(_ name: DatabaseName) -> Database? { registry.opened(name) }

    /// The database with a name; a missing one is empty.
    /// - Parameters:
    ///   - mayCreate: whether the caller may be the first to write to it. Other callers do not get a missing database.
    ///   - completion: called immediately and on this thread when the database is open, otherwise later from another.
    ///     Fails with NOT_FOUND.
    func use(
        _ name: DatabaseName, mayCreate: Bool, _ completion: @escaping @Sendable (Result<Database, Status>) -> Void
    ) {
        if mayCreate { return registry.use(name, completion) }
        registry.use(name) { result in
            guard case .success(let database) = result, !database.exists else { return completion(result) }
            completion(.failure(Self.missing(name)))
        }
    }

    /// The error for a missing database that the caller may not create.
    static func missing(_ name: DatabaseName) -> Status {
        .notFound("The database \(name.database) does not exist for project \(name.project).")
    }

    /// The database with a name; a missing one is empty. Waits until it is open: not on an event loop.
    package func database(_ name: DatabaseName) throws(Status) -> Database { try registry.wait(name) }

    /// Opens the database with a name; see `Registry.use`.
    package func open(_ name: DatabaseName, _ completion: @escaping @Sendable (Result<Database, Status>) -> Void) {
        registry.use(name, completion)
    }

    /// The databases that are open now.
    package var openDatabases: [Database] { registry.values }

    /// Whether a database of this name exists; does not create it. May wait for the disk.
    package func exists(_ name: DatabaseName) throws(Status) -> Bool {
        if let database = registry.opened(name) { return database.exists }
        return try provider.contains(name)
    }

    /// The names of all databases, open or not. May wait for the disk.
    package func databases() throws(Status) -> [DatabaseName] {
        let stored = try provider.databases()
        return Array(Set(stored).union(registry.existingNames))
    }

    /// Deletes a database with all its data. Waits for the end of the deletion: not on an event loop.
    ///
    /// Its current users fail with NOT_FOUND. Later callers get an empty database, as for a name that was never used.
    package func delete(_ name: DatabaseName) throws(Status) {
        let answer = Awaited<Void>()
        registry.delete(name, because: Self.missing(name)) { answer.set($0) }
        try answer.wait()
    }

    /// Ends locks and transactions that have expired. To be called some times a second.
    package func tick() {
        for database in openDatabases { database.tick() }
    }

    package func close() {
        registry.close()
        ownThreads?.stop()
        provider.close()
    }
}

extension Database: Registered {}

/// Set once, from one thread, and read by others.
final class Flag: Sendable {
    private let value = Atomic(false)

    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
}
