import Foundation
import HearthModel

/// How a `SyncClient` keeps its cache.
public struct SyncConfiguration: Sendable {
    public enum Cache: Sendable {
        /// Forgotten with the process. Documents that nothing refers to go at once.
        case memoryEager
        /// Forgotten with the process; the least recently used go when it outgrows `sizeBytes`.
        case memoryLRU(sizeBytes: Int64)
        /// A SQLite file below `folder`. Minimum 1 MB; -1 never collects.
        case persistent(folder: String, sizeBytes: Int64)
    }

    public var database: DatabaseName
    /// Names the cache's file, together with the database.
    public var appName: String
    public var cache: Cache
    /// Called when a damaged cache was put aside, before the client begins with an empty one. Writes that the server
    /// hasn't got may be in it, so that somebody should hear of it: unless told otherwise, whoever reads standard error.
    public var onDamage: @Sendable (CacheDamage) -> Void = { damage in
        FileHandle.standardError.write(Data((damage.message + "\n").utf8))
    }

    /// Called with what a developer should know: that a listen was refused, that the server can't be reached. On the
    /// engine's thread; unless told otherwise it goes to standard error.
    public var onWarning: @Sendable (String) -> Void = { warning in
        FileHandle.standardError.write(Data((warning + "\n").utf8))
    }

    public init(database: DatabaseName, appName: String, cache: Cache) {
        self.database = database
        self.appName = appName
        self.cache = cache
    }
}
