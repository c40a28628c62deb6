import Glibc
import HearthBackup
import HearthEngine
import HearthHost
import HearthModel
import HearthSQLite

/// The stores of both products, for the server and for tools.
///
/// This file alone decides which engine keeps the data, in which folders, and with which options: a second engine would
/// be chosen here. It belongs to the assembly because the products know only `StoreProvider`, and a data folder is that
/// of a whole server.
package struct Stores: Sendable {
    /// Firestore's databases.
    let firestore: any StoreProvider
    /// The namespaces of the Realtime Database.
    let realtime: any StoreProvider
    /// Where these have their files; nil in memory.
    let realtimeFolder: String?
    /// What backups are made of; nil in memory.
    let backups: BackupSource?

    /// Opens the stores of a server.
    /// - Parameter health: is notified when commits begin to fail.
    /// - Throws: a status with one plain sentence when the data folder can't be used.
    init(_ configuration: Server.Configuration, _ health: StorageHealth) throws(Status) {
        guard let dataFolder = configuration.dataFolder else {
            firestore = MemoryStoreProvider()
            realtime = MemoryStoreProvider()
            realtimeFolder = nil
            backups = nil
            return
        }
        func options(_ product: StorageHealth.Product) -> SQLiteStoreOptions {
            var options = SQLiteStoreOptions()
            options.bounds = WALBounds(checkpointBytes: configuration.checkpointBytes)
            options.observer = health.observer(of: product)
            return options
        }
        let documents = try SQLiteStoreProvider(path: dataFolder, options: options(.firestore))
        if let notice = documents.notice { configuration.log.warning(notice) }
        Self.warnOfEngine(configuration.log)
        let folder = Self.realtimeFolder(in: dataFolder)
        firestore = documents
        let namespaces = try SQLiteStoreProvider(path: folder, options: options(.realtime))
        realtime = namespaces
        realtimeFolder = folder
        backups = BackupSource(
            folder: dataFolder, databases: documents, namespaces: namespaces, namespaceFolder: Self.realtimeName,
            project: configuration.project)
    }

    /// Reports files of open databases that another program has removed. Waits for the disk.
    func checkFiles() {
        firestore.checkFiles()
        realtime.checkFiles()
    }

    /// Logged once a start: other programs that use this library may lose data by its defect.
    private static func warnOfEngine(_ log: Log) {
        if !SQLiteLibrary.hasLogResetDefect { return }
        log.info(
            "this SQLite has the WAL-reset defect, which Hearth avoids: only other programs with this library need an update",
            ("version", .string(SQLiteLibrary.version)), ("corrected", .string("3.51.3, 3.50.7, 3.44.6")))
    }

    /// The Realtime Database's data lies beside that of Firestore, in a folder whose name no project's has.
    private static func realtimeFolder(in dataFolder: String) -> String { "\(dataFolder)/\(realtimeName)" }

    private static let realtimeName = "+realtime"

    // MARK: For tools

    /// Opens Firestore's databases in a data folder that no server uses.
    /// - Parameter isReadOnly: nothing in the folder changes.
    /// - Throws: a status with one plain sentence when it is no data folder, or can't be used.
    package static func firestore(in dataFolder: String, isReadOnly: Bool) throws(Status) -> any StoreProvider {
        try existing(dataFolder, isReadOnly: isReadOnly)
    }

    /// Opens the namespaces of the Realtime Database in a data folder that no server uses.
    /// - Returns: nil when the folder has never had one.
    /// - Throws: as `firestore(in:isReadOnly:)`.
    package static func realtime(in dataFolder: String, isReadOnly: Bool) throws(Status) -> (any StoreProvider)? {
        let folder = realtimeFolder(in: dataFolder)
        guard access(folder, F_OK) == 0 else { return nil }
        return try existing(folder, isReadOnly: isReadOnly)
    }

    /// Has the databases of a data folder that no server uses go on without logs that are missing.
    /// - Returns: what was accepted, by database.
    /// - Throws: as `firestore(in:isReadOnly:)`.
    package static func acceptLostLogs(in dataFolder: String) throws(Status) -> [(DatabaseName, String)] {
        let realtime = realtimeFolder(in: dataFolder)
        var found: [(DatabaseName, String)] = []
        for folder in [dataFolder, realtime] where access(folder, F_OK) == 0 {
            let provider = try existing(folder, isReadOnly: false, acceptsLostLogs: true)
            defer { provider.close() }
            for name in try provider.databases().sorted(by: { $0.description < $1.description }) {
                // One that can't be opened is reported by the check.
                guard let store = try? provider.open(name) as? LoggedStore else { continue }
                defer { store.close() }
                if let notice = store.lossNotice { found.append((name, notice)) }
            }
        }
        return found
    }

    private static func existing(
        _ folder: String, isReadOnly: Bool, acceptsLostLogs: Bool = false
    ) throws(Status) -> any StoreProvider {
        var (options, logOptions) = (SQLiteStoreOptions(), LoggedStoreOptions())
        options.isReadOnly = isReadOnly
        logOptions.acceptsLostLog = acceptsLostLogs
        return try SQLiteStoreProvider(path: folder, options: options, logOptions: logOptions, createsFolder: false)
    }
}
