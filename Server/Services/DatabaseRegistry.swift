import HearthModel
import HearthStorage
import Synchronization

/// The databases of a server, opened when they are first named.
public final class DatabaseRegistry: Sendable {
    private struct Entry {
        var database: Database
        var usedNanoseconds: UInt64
    }

    private struct State {
        var open: [DatabaseName: Entry] = [:]
        var isClosed = false
    }

    private let provider: any StoreProvider
    private let clock: any Clock
    private let state = Mutex(State())
    private let prepare: @Sendable (Database) -> Void

    /// - Parameter prepare: called once with each database that is opened, before anybody else sees it.
    public init(
        provider: any StoreProvider, clock: any Clock = SystemClock(),
        prepare: @escaping @Sendable (Database) -> Void = { _ in }
    ) {
        self.provider = provider
        self.clock = clock
        self.prepare = prepare
    }

    /// The database with a name, made on first use.
    public func database(_ name: DatabaseName) throws(Status) -> Database {
        // Opening holds the lock: two requests must not open one file twice, and it takes about a millisecond.
        let result: Result<Database, Status> = state.withLock { state in
            if let entry = state.open[name] {
                state.open[name]!.usedNanoseconds = clock.monotonicNanoseconds()
                return .success(entry.database)
            }
            if state.isClosed { return .failure(.unavailable("The server is shutting down.")) }
            do throws(Status) {
                let database = try Database(name: name, store: try provider.open(name), clock: clock)
                prepare(database)
                state.open[name] = Entry(database: database, usedNanoseconds: clock.monotonicNanoseconds())
                return .success(database)
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// The database with a name, if it exists.
    /// - Throws: NOT_FOUND.
    public func existing(_ name: DatabaseName) throws(Status) -> Database {
        let isOpen = state.withLock { $0.open[name] != nil }
        if !isOpen, try !provider.contains(name) {
            throw .notFound("The database \(name.database) does not exist for project \(name.project).")
        }
        return try database(name)
    }

    /// The databases that are open now.
    public var openDatabases: [Database] { state.withLock { $0.open.values.map(\.database) } }

    /// Whether there is a database of this name; asking doesn't make it.
    func exists(_ name: DatabaseName) throws(Status) -> Bool {
        if state.withLock({ $0.open[name] != nil }) { return true }
        return try provider.databases().contains(name)
    }

    /// The names of all databases, open or not.
    public func databases() throws(Status) -> [DatabaseName] {
        let stored = try provider.databases()
        let open = state.withLock { Array($0.open.keys) }
        return Array(Set(stored).union(open))
    }

    /// Deletes a database with everything in it.
    public func delete(_ name: DatabaseName) throws(Status) {
        let entry = state.withLock { $0.open.removeValue(forKey: name) }
        entry?.database.close()
        try provider.delete(name)
    }

    public func tick() {
        for database in openDatabases { database.tick() }
        for database in takeIdle() { database.close() }
    }

    /// Databases beyond `Limits.databasesOpenMax` that nobody has named for a while, taken out of the registry: they are
    /// opened again when they are named. A call that still holds one is refused with UNAVAILABLE, and tries again.
    private func takeIdle() -> [Database] {
        let now = clock.monotonicNanoseconds()
        return state.withLock { state in
            guard state.open.count > Limits.databasesOpenMax else { return [] }
            let idle = state.open.filter { _, entry in
                entry.usedNanoseconds + UInt64(Limits.databaseIdleSeconds) * 1_000_000_000 < now
                    && entry.database.openTransactions == 0
            }
            for name in idle.keys { state.open[name] = nil }
            return idle.values.map(\.database)
        }
    }

    public func close() {
        let databases = state.withLock { state in
            state.isClosed = true
            defer { state.open = [:] }
            return state.open.values.map(\.database)
        }
        for database in databases { database.close() }
        provider.close()
    }
}
