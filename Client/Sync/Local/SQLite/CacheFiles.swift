import HearthCache
import HearthModel

/// Where a client's cache lies: `FOLDER/APP/PROJECT/DATABASE.sqlite`, with SQLite's log `….sqlite-wal` and the lock
/// `….sqlite.lock` beside it. Names are made safe as those of the server's databases, whatever is in them.
struct CacheFiles: Hashable, Sendable {
    var appName: String
    var databaseName: DatabaseName
    let file: CacheFile

    init(folder: String, appName: String, database databaseName: DatabaseName) {
        self.appName = appName
        self.databaseName = databaseName
        let name = CacheFile.component(databaseName.database) + ".sqlite"
        file = CacheFile(
            folder: [folder, CacheFile.component(appName), CacheFile.component(databaseName.project)]
                .joined(separator: "/"),
            name: name, lockName: name + ".lock")
    }

    /// The folder of this cache.
    var folder: String { file.folder }
    var database: String { file.database }
    var log: String { file.log }
    var lock: String { file.lock }

    /// Removes the cache and what was put aside of it.
    /// - Throws: FAILED_PRECONDITION when it is in use.
    func clear() throws(Status) { try file.clear() }
}
