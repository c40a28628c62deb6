import HearthModel

/// The cache and the callbacks of a `SyncClient`.
package struct SyncConfiguration: Sendable {
    package enum Cache: Sendable {
        /// In memory until the process ends. Documents without a reference are removed at once.
        case memoryEager
        /// In memory until the process ends. The least recently used documents are removed when the cache exceeds
        /// `sizeBytes`.
        case memoryLRU(sizeBytes: Int64)
        /// A SQLite file below `folder`. The minimal `sizeBytes` is 1 MB; -1 disables collection.
        case persistent(folder: String, sizeBytes: Int64)
    }

    package var database: DatabaseName
    /// Determines the name of the cache's file, together with the database.
    package var appName: String
    package var cache: Cache
    /// Called when a damaged cache was moved aside, before the client starts with an empty one. The damaged cache may
    /// contain writes that never reached the server, so the user should be informed. The default writes to standard
    /// error.
    package var onDamage: @Sendable (CacheDamage) -> Void = { damage in
        StandardStream.error(damage.message)
    }

    /// Called with warnings for developers: a listen was rejected, or the server cannot be reached. It runs on the
    /// engine's thread. The default writes to standard error.
    package var onWarning: @Sendable (String) -> Void = { warning in
        StandardStream.error(warning)
    }

    package init(database: DatabaseName, appName: String, cache: Cache) {
        self.database = database
        self.appName = appName
        self.cache = cache
    }
}
