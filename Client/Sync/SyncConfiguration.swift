import Foundation
import HearthModel

/// How a `SyncClient` keeps its cache.
package struct SyncConfiguration: Sendable {
    package enum Cache: Sendable {
        /// Forgotten with the process. Documents that nothing refers to go at once.
        case memoryEager
        /// Forgotten with the process; the least recently used go when it outgrows `sizeBytes`.
        case memoryLRU(sizeBytes: Int64)
        /// A SQLite file below `folder`. Minimum 1 MB; -1 never collects.
        case persistent(folder: String, sizeBytes: Int64)
    }

    package var database: DatabaseName
    /// Names the cache's file, together with the database.
    package var appName: String
    package var cache: Cache
    /// Called when a damaged cache was put aside, before the client begins with an empty one. Writes that the server
    /// hasn't got may be in it, so that somebody should hear of it: unless told otherwise, whoever reads standard error.
    package var onDamage: @Sendable (CacheDamage) -> Void = { damage in
        FileHandle.standardError.write(Data((damage.message + "\n").utf8))
    }

    /// Called with what a developer should know: that a listen was refused, that the server can't be reached. On the
    /// engine's thread; unless told otherwise it goes to standard error.
    package var onWarning: @Sendable (String) -> Void = { warning in
        FileHandle.standardError.write(Data((warning + "\n").utf8))
    }

    package init(database: DatabaseName, appName: String, cache: Cache) {
        self.database = database
        self.appName = appName
        self.cache = cache
    }
}
