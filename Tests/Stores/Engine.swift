import HearthModel
import HearthEngine
import HearthSQLite
import HearthTestSupport
import Synchronization

/// The engines that the contract's tests run on.
package enum Engine: String, CaseIterable {
    case memory, sqlite
    /// With a checkpoint every few commits.
    case sqliteShortWAL
    /// With an application of the log every few commits.
    case loggedMemory, loggedSQLite

    package func open(_ folder: TemporaryFolder) throws(Status) -> any Store {
        switch self {
        case .memory: MemoryStore()
        case .sqlite: try SQLiteStore(path: folder.path + "/store.sqlite")
        case .sqliteShortWAL: try SQLiteStore(path: folder.path + "/store.sqlite", options: .shortWAL)
        case .loggedMemory:
            try LoggedStore(base: MemoryStore(), logFolder: folder.path + "/log", name: "test", options: .short)
        case .loggedSQLite:
            try LoggedStore(
                base: try SQLiteStore(path: folder.path + "/store.sqlite", options: .shortWAL),
                logFolder: folder.path + "/log", name: "test", options: .short)
        }
    }

    package func provider(_ folder: TemporaryFolder) throws(Status) -> any StoreProvider {
        switch self {
        case .memory: MemoryStoreProvider()
        case .sqlite: try SQLiteStoreProvider(path: folder.path)
        case .sqliteShortWAL: try SQLiteStoreProvider(path: folder.path, options: .shortWAL)
        case .loggedMemory: LoggedStoreProvider(MemoryStoreProvider(), folder)
        case .loggedSQLite:
            try SQLiteStoreProvider(path: folder.path, options: .shortWAL, logOptions: .short)
        }
    }
}

extension SQLiteStoreOptions {
    package static var shortWAL: SQLiteStoreOptions {
        var options = SQLiteStoreOptions()
        options.bounds.walPages = 40
        options.bounds.quietPages = 5
        options.bounds.lockedPages = 10
        options.bounds.patienceMillisecondsMin = 1
        options.bounds.patienceMillisecondsMax = 5
        return options
    }
}

extension LoggedStoreOptions {
    package static var short: LoggedStoreOptions {
        var options = LoggedStoreOptions()
        options.tableBytes = 10_000
        options.tableBytesOfLargeBase = 10_000
        options.logBytes = 50_000
        options.sliceEntries = 5
        options.rangeKeysMin = 3
        options.idleMilliseconds = 0
        options.emptyMilliseconds = 5
        options.segments.min = 8192
        options.segments.max = 64 << 10
        return options
    }
}

/// Logs in front of the stores of another provider.
private final class LoggedStoreProvider: StoreProvider {
    private let bases: any StoreProvider
    private let folder: TemporaryFolder
    private let stores = Mutex<[DatabaseName: LoggedStore]>([:])

    init(_ bases: any StoreProvider, _ folder: TemporaryFolder) {
        self.bases = bases
        self.folder = folder
    }

    private func logFolder(_ database: DatabaseName) -> String {
        folder.path + "/" + database.string.map { $0 == "/" ? "-" : String($0) }.joined() + "-log"
    }

    func open(_ database: DatabaseName) throws(Status) -> any Store {
        try stores.withLock { stores throws(Status) in
            if let store = stores[database], store.isOpen { return store }
            let store = try LoggedStore(
                base: try bases.open(database), logFolder: logFolder(database), name: database.string, options: .short)
            stores[database] = store
            return store
        }
    }

    func contains(_ database: DatabaseName) throws(Status) -> Bool { try bases.contains(database) }
    func databases() throws(Status) -> [DatabaseName] { try bases.databases() }

    func delete(_ database: DatabaseName) throws(Status) {
        try bases.delete(database)
        try SystemLogDisk.removeAll(folder: logFolder(database))
    }

    func close() {
        for store in stores.withLock({ $0.values.map { $0 } }) { store.close() }
        bases.close()
    }
}
