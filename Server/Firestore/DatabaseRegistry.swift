import HearthHost
import HearthConcurrency
import HearthModel
import HearthEngine
import HearthDocuments
import Synchronization

/// The databases of a server, opened when they are first named; see `Registry`.
///
/// One that nobody has written to is there for whoever may create it, and empty: its store is made by the first write.
package final class DatabaseRegistry: Sendable {
    /// Brings a database that is being opened to what configuration says, and calls the closure when it has.
    package typealias Preparation = @Sendable (Database, @escaping @Sendable () -> Void) -> Void

    private let provider: any StoreProvider
    private let registry: Registry<DatabaseName, Database>
    /// Nil when they are somebody else's to end.
    private let ownThreads: LifecycleThreads?

    /// - Parameters:
    ///   - allowsClockSkew: whether a database is opened whose commits lie ahead of the clock.
    ///   - prepare: called once with each database that is opened, before anybody else sees it.
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

    /// - Parameter memory: for what transactions have read, and commits that wait.
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
            // Indexes are built while the database is used.
            prepare?(database) {}
            return database
        } catch {
            store.close()
            openStores.leave()
            throw error
        }
    }

    /// What configuration says of a database is not worth a file before there is a document.
    private static func openDeferred(
        _ name: DatabaseName, _ make: @escaping @Sendable () throws(Status) -> any Store, _ clock: any Clock,
        _ memory: DatabaseMemory, _ prepare: Preparation?
    ) throws(Status) -> Database {
        let isPrepared = Flag()
        let store = DeferredStore(isWorthKeeping: { _ in isPrepared.isSet }, make: make)
        let database = try Database(name: name, store: store, clock: clock, memory: memory)
        if let prepare {
            let answer = Awaited<Void>()
            prepare(database) { answer.set(.success(())) }
            try answer.wait()
        }
        isPrepared.set()
        return database
    }

    /// The database with a name when it is open, at once. It may not exist.
    func opened(_ name: DatabaseName) -> Database? { registry.opened(name) }

    /// The database with a name; one that doesn't exist is empty.
    /// - Parameters:
    ///   - mayCreate: whether the caller may be the first to write to it. Nobody else is given one that doesn't exist.
    ///   - completion: called at once and on this thread when the database is open, else later and from another. Fails
    ///     with NOT_FOUND.
    func use(
        _ name: DatabaseName, mayCreate: Bool, _ completion: @escaping @Sendable (Result<Database, Status>) -> Void
    ) {
        if mayCreate { return registry.use(name, completion) }
        registry.use(name) { result in
            guard case .success(let database) = result, !database.exists else { return completion(result) }
            completion(.failure(Self.missing(name)))
        }
    }

    /// What is answered to whoever names a database that doesn't exist and may not make it.
    static func missing(_ name: DatabaseName) -> Status {
        .notFound("The database \(name.database) does not exist for project \(name.project).")
    }

    /// The database with a name; one that doesn't exist is empty. Waits until it is open: not on an event loop.
    package func database(_ name: DatabaseName) throws(Status) -> Database { try registry.wait(name) }

    /// The databases that are open now.
    package var openDatabases: [Database] { registry.values }

    /// Whether there is a database of this name; asking doesn't make it. May wait for the disk.
    package func exists(_ name: DatabaseName) throws(Status) -> Bool {
        if let database = registry.opened(name) { return database.exists }
        return try provider.contains(name)
    }

    /// The names of all databases, open or not. May wait for the disk.
    package func databases() throws(Status) -> [DatabaseName] {
        let stored = try provider.databases()
        return Array(Set(stored).union(registry.existingNames))
    }

    /// Deletes a database with everything in it. Waits until that is done: not on an event loop.
    ///
    /// Whoever still uses it fails with NOT_FOUND. Whoever names it afterwards finds an empty one, as of a name that was
    /// never used.
    package func delete(_ name: DatabaseName) throws(Status) {
        let answer = Awaited<Void>()
        registry.delete(name, because: Self.missing(name)) { answer.set($0) }
        try answer.wait()
    }

    /// Locks and transactions that have run out of time. To be called some times a second.
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
