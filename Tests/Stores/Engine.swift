import HearthModel
import HearthEngine
import HearthSQLite
import HearthTestSupport

/// The engines that the contract's tests run on.
package enum Engine: String, CaseIterable {
    case memory, sqlite
    /// With a checkpoint every few commits.
    case sqliteShortWAL

    package func open(_ folder: TemporaryFolder) throws(Status) -> any Store {
        switch self {
        case .memory: MemoryStore()
        case .sqlite: try SQLiteStore(path: folder.path + "/store.sqlite")
        case .sqliteShortWAL: try SQLiteStore(path: folder.path + "/store.sqlite", options: .shortWAL)
        }
    }

    package func provider(_ folder: TemporaryFolder) throws(Status) -> any StoreProvider {
        switch self {
        case .memory: MemoryStoreProvider()
        case .sqlite: try SQLiteStoreProvider(path: folder.path)
        case .sqliteShortWAL: try SQLiteStoreProvider(path: folder.path, options: .shortWAL)
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
