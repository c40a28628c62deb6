import HearthConcurrency
import HearthModel
import HearthEngine

import Glibc

/// The stores of a data folder: for each database a file (`DatabaseFileName`), and in front of it a log in a folder beside
/// it (`LoggedStore`), which is there while the file lacks something of it.
///
/// A database has one store at a time: `open` returns the same store again until that is closed.
package final class SQLiteStoreProvider: StoreProvider, @unchecked Sendable {
    private let folder: DataFolder
    private let options: SQLiteStoreOptions
    private let logOptions: LoggedStoreOptions
    // Guards the fields below and the names of files. A file itself, which may take long to open, belongs to the thread
    // that has entered its name in `opening`.
    private let monitor = Monitor()
    // By file, and so by the bytes of the name: to Swift, two spellings of "é" are one string.
    private var stores: [DatabaseFileName: LoggedStore] = [:]
    private var opening: Set<DatabaseFileName> = []
    /// How many stores there may be before closed ones are forgotten.
    private var storesMax = 64
    private var isClosed = false
    /// The backup under way.
    private weak var session: ImageSession?

    /// Locks the data folder for as long as the provider or a store of it lives.
    /// - Parameters:
    ///   - options: of the databases' files; whether they are only read, and the observer, hold for the logs, too.
    ///   - createsFolder: false for a tool, which must not use an arbitrary folder for data.
    /// - Throws: FAILED_PRECONDITION when another process uses the folder, it can't be used, or a file in it is of a
    ///   newer format.
    package init(
        path: String, options: SQLiteStoreOptions = SQLiteStoreOptions(),
        logOptions: LoggedStoreOptions = LoggedStoreOptions(), createsFolder: Bool = true
    ) throws(Status) {
        if !createsFolder, try !DataFolder.isOne(path) {
            throw .failedPrecondition("\(path) is no data folder of hearth: there is no database in it.")
        }
        folder = try DataFolder(path: path)
        self.options = options
        self.logOptions = logOptions
        for component in try DataFolder.names(path) where DataFolder.isFolder(path + "/" + component) {
            let project = path + "/" + component
            for file in try DataFolder.names(project) where file.hasSuffix(DatabaseFileName.suffix) {
                try FileHeader.check(project + "/" + file)
            }
            if !options.isReadOnly { try Self.finishDeletions(project) }
        }
        try reportLostFiles()
    }

    /// Ends what the process before this one has begun.
    private static func finishDeletions(_ project: String) throws(Status) {
        let suffix = DatabaseFileName.suffix + DatabaseFileName.deletedSuffix
        for name in try DataFolder.names(project) where name.hasSuffix(suffix) {
            let file = project + "/" + name.dropLast(suffix.count)
            do throws(Status) {
                try DatabaseFiles(path: file + DatabaseFileName.suffix).finishDeletion()
                if !DataFolder.exists(file + DatabaseFileName.suffix) {
                    try DataFolder.remove(file + DatabaseFileName.idSuffix)
                }
            } catch {
                // The others are served. Who opens a database of this name tries again, and it is reported.
            }
        }
    }

    /// Operators learn of them at the start, and not when somebody uses the database.
    private func reportLostFiles() throws(Status) {
        guard let observer = options.observer else { return }
        for database in try names() {
            let files = files(DatabaseFileName(database))
            if try files.hasLostFile() {
                observer.store(database.string, reports: .openFails(files.lostFileStatus, file: files.path))
            }
        }
    }

    private func files(_ name: DatabaseFileName) -> DatabaseFiles {
        DatabaseFiles(path: folder.path + "/" + name.folder + "/" + name.file + DatabaseFileName.suffix)
    }

    /// Warnings about the folder for the operator of the server.
    package var notice: String? { folder.notice }

    package func close() {
        monitor.lock()
        defer { monitor.unlock() }
        if isClosed { return }
        isClosed = true
        while !opening.isEmpty { monitor.wait() }
        for store in stores.values where store.isOpen { store.close() }
        stores = [:]
        folder.unlock()
    }

    package func checkFiles() {
        let stores = monitor.withLock { self.stores.values.filter { $0.isOpen } }
        for store in stores { store.checkFiles() }
    }

    package func open(_ database: DatabaseName) throws(Status) -> any Store {
        try Self.check(database)
        do throws(Status) {
            let store = try openFile(database)
            options.observer?.store(database.string, reports: .opened)
            return store
        } catch {
            let name = DatabaseFileName(database)
            let file = folder.path + "/" + name.folder + "/" + name.file + DatabaseFileName.suffix
            if monitor.withLock({ !isClosed }) {
                options.observer?.store(database.string, reports: .openFails(error, file: file))
            }
            throw withoutFolder(error)
        }
    }

    /// Clients get these errors, and need not know where the server keeps its files; the observer knows.
    private func withoutFolder(_ status: Status) -> Status {
        Status(status.code, status.message.replacing(folder.path + "/", with: "").replacing(folder.path, with: "."))
    }

    private func hidingFolder<Result>(_ body: () throws(Status) -> Result) throws(Status) -> Result {
        do throws(Status) { return try body() } catch { throw withoutFolder(error) }
    }

    private func openFile(_ database: DatabaseName) throws(Status) -> any Store {
        let name = DatabaseFileName(database)
        let file = folder.path + "/" + name.folder + "/" + name.file
        if let store = try beginOpening(database, name, file) { return store }
        // Recovery of a log reads all of it: no other caller waits for that.
        let result = Result { () throws(Status) in
            try openStore(files(name), database)
        }
        return try monitor.withLock { () throws(Status) in
            defer {
                opening.remove(name)
                monitor.signal()
            }
            let store = try result.get()
            stores[name] = store
            // Before its first commit.
            if let request = session?.take(name, store, isEarly: true), !request.hasEnded(within: 0) {
                store.begin(request)
            }
            return store
        }
    }

    private func openStore(_ files: DatabaseFiles, _ database: DatabaseName) throws(Status) -> LoggedStore {
        if !options.isReadOnly { try files.finishDeletion() }
        try files.check()
        var base = options
        base.observer = options.observer.map { LoggedBaseObserver($0) }
        // A write that reads the base takes one.
        base.readersMax += 1
        base.hasLog = try !SystemLogDisk(folder: files.logFolder).names().isEmpty
        var log = logOptions
        log.isReadOnly = options.isReadOnly
        log.observer = options.observer
        return try LoggedStore(
            base: try SQLiteStore(path: files.path, name: database.string, options: base, folder: folder),
            baseFiles: files.inUse, logFolder: files.logFolder, name: database.string, options: log)
    }

    /// Makes the files and folders that a store's file needs, and enters its name.
    /// - Returns: the store when it is open already.
    private func beginOpening(
        _ database: DatabaseName, _ name: DatabaseFileName, _ file: String
    ) throws(Status) -> LoggedStore? {
        monitor.lock()
        defer { monitor.unlock() }
        while opening.contains(name) { monitor.wait() }
        if isClosed { throw .unavailable("The server is shutting down.") }
        try folder.checkIsUnmoved()
        let project = folder.path + "/" + name.folder
        try claim(project, id: database.project)
        try DataFolder.makeFolder(project)
        try claim(file, id: database.database)
        if let store = stores[name], store.isOpen { return store }
        if stores.count >= storesMax {
            stores = stores.filter(\.value.isOpen)
            storesMax = max(64, 2 * stores.count)
        }
        opening.insert(name)
        return nil
    }

    private static func check(_ database: DatabaseName) throws(Status) {
        for id in [database.project, database.database] {
            if id.isEmpty || id.utf8.count > Limits.idSizeBytesMax {
                throw .invalidArgument(
                    "The id \"\(id.prefix(50))\" must have 1 to \(Limits.idSizeBytesMax) bytes.")
            }
        }
    }

    /// Writes the id of a shortened component into the file next to it, or checks that the file contains it.
    private func claim(_ path: String, id: String) throws(Status) {
        guard DatabaseFileName.isShortened(path) else { return }
        let file = path + DatabaseFileName.idSuffix
        guard let found = try DataFolder.read(file) else {
            try DataFolder.write(id, file)
            return
        }
        if !UTF8Order.equal(found, id) {
            throw .failedPrecondition("The id \"\(id)\" has the same file name as \"\(found)\"; choose another id.")
        }
    }

    package func contains(_ database: DatabaseName) throws(Status) -> Bool {
        try Self.check(database)
        return try hidingFolder { () throws(Status) in try isThere(database) }
    }

    private func isThere(_ database: DatabaseName) throws(Status) -> Bool {
        monitor.lock()
        defer { monitor.unlock() }
        let name = DatabaseFileName(database)
        let project = folder.path + "/" + name.folder
        let file = project + "/" + name.file
        guard try files(name).exist(), let foundProject = try id(project, component: name.folder),
            let foundDatabase = try id(file, component: name.file)
        else { return false }
        return UTF8Order.equal(foundProject, database.project) && UTF8Order.equal(foundDatabase, database.database)
    }

    package func databases() throws(Status) -> [DatabaseName] {
        try hidingFolder { () throws(Status) in try names() }
    }

    private func names() throws(Status) -> [DatabaseName] {
        try folder.checkIsUnmoved()
        return try monitor.withLock { () throws(Status) in try listed() }
    }

    /// With the lock.
    private func listed() throws(Status) -> [DatabaseName] {
        var found: [DatabaseName] = []
        for component in try DataFolder.names(folder.path) {
            let path = folder.path + "/" + component
            guard DataFolder.isFolder(path), let project = try id(path, component: component) else { continue }
            for component in try Self.components(path) {
                if let database = try id(path + "/" + component, component: component) {
                    found.append(DatabaseName(project: project, database: database))
                }
            }
        }
        return found
    }

    /// The names of a project's databases as their files have them, also of those whose file was lost.
    private static func components(_ project: String) throws(Status) -> [String] {
        let names = try DataFolder.names(project)
        func components(_ suffix: String) -> [String] {
            names.filter { $0.hasSuffix(suffix) }.map { String($0.dropLast(suffix.count)) }
        }
        let whole = Set(components(DatabaseFileName.suffix))
        var found = whole
        for suffix in [DatabaseFileName.logSuffix, DatabaseFileName.walSuffix] {
            for component in components(DatabaseFileName.suffix + suffix) where !whole.contains(component) {
                let files = DatabaseFiles(path: project + "/" + component + DatabaseFileName.suffix)
                if try files.hasLostFile() { found.insert(component) }
            }
        }
        return Array(found)
    }

    /// The id of a file or folder; nil when it isn't one of ours.
    private func id(_ path: String, component: String) throws(Status) -> String? {
        if DatabaseFileName.isShortened(component) { return try DataFolder.read(path + DatabaseFileName.idSuffix) }
        return DatabaseFileName.id(ofComponent: component)
    }

    package func delete(_ database: DatabaseName) throws(Status) {
        try hidingFolder { () throws(Status) in try deleteFile(database) }
        options.observer?.store(database.string, reports: .deleted)
    }

    private func deleteFile(_ database: DatabaseName) throws(Status) {
        monitor.lock()
        defer { monitor.unlock() }
        let name = DatabaseFileName(database)
        let project = folder.path + "/" + name.folder
        let file = project + "/" + name.file
        while opening.contains(name) { monitor.wait() }
        if isClosed { throw .unavailable("The server is shutting down.") }
        let ids = (try id(project, component: name.folder), try id(file, component: name.file))
        guard let foundProject = ids.0, UTF8Order.equal(foundProject, database.project), let foundDatabase = ids.1,
            UTF8Order.equal(foundDatabase, database.database)
        else { throw .notFound("The database \(database) does not exist.") }
        if let store = stores[name], store.isOpen {
            throw .failedPrecondition("The database \(database) is open; close it before it is deleted.")
        }
        stores[name] = nil
        // A large file takes long to remove: no caller with another database waits for that.
        opening.insert(name)
        let session = session
        let result = unlocked { () throws(Status) in
            if let session, session.wants(name) { makeImageOfFiles(name, database, for: session, isEarly: true) }
            return try files(name).delete()
        }
        opening.remove(name)
        monitor.signal()
        guard try result.get() else { throw .notFound("The database \(database) does not exist.") }
        try DataFolder.remove(file + DatabaseFileName.idSuffix)
        try DataFolder.synchronize(project)
        // Only when it was the project's last; the system refuses otherwise. A file that is being opened may not exist
        // yet.
        if opening.contains(where: { $0.folder == name.folder }) { return }
        if rmdir(project) == 0 { try DataFolder.remove(project + DatabaseFileName.idSuffix) }
    }

    /// Calls `body` without the lock, which the caller has.
    private func unlocked<Value>(_ body: () throws(Status) -> Value) -> Result<Value, Status> {
        monitor.unlock()
        defer { monitor.lock() }
        return Result { () throws(Status) in try body() }
    }
}

// MARK: Backups

extension SQLiteStoreProvider {
    /// Begins a backup of all databases that exist now. Ends with the session.
    /// - Throws: RESOURCE_EXHAUSTED while another one is under way.
    package func beginImages() throws(Status) -> ImageSession {
        try hidingFolder { () throws(Status) in
            try folder.checkIsUnmoved()
            return try monitor.withLock { () throws(Status) in
                if isClosed { throw .unavailable("The server is shutting down.") }
                if session != nil { throw .resourceExhausted("A backup is under way; there is one at a time.") }
                var (open, closed): ([(DatabaseName, LoggedStore)], [DatabaseName]) = ([], [])
                for name in try listed() {
                    if let store = stores[DatabaseFileName(name)], store.isOpen {
                        open.append((name, store))
                    } else {
                        closed.append(name)
                    }
                }
                let session = ImageSession(self, open: open, closed: closed)
                self.session = session
                return session
            }
        }
    }

    func sessionEnded(_ ended: ImageSession) {
        monitor.withLock { if session === ended { session = nil } }
    }

    /// Has the image made of a database that was closed when the session began.
    func makeImage(_ name: DatabaseFileName, _ database: DatabaseName, for session: ImageSession) {
        monitor.lock()
        defer { monitor.unlock() }
        while opening.contains(name) { monitor.wait() }
        guard session.wants(name) else { return }
        if let store = stores[name], store.isOpen {
            if let request = session.take(name, store, isEarly: false) { store.begin(request) }
            return
        }
        if isClosed {
            let request = session.take(name, nil, isEarly: false)
            request?.end(.failure(.unavailable("The server is shutting down.")))
            return
        }
        do throws(Status) {
            // It was being deleted when the session began.
            if try !files(name).exist() { return session.drop(name) }
        } catch {
            session.take(name, nil, isEarly: false)?.end(.failure(withoutFolder(error)))
            return
        }
        opening.insert(name)
        _ = unlocked { () throws(Status) in makeImageOfFiles(name, database, for: session, isEarly: false) }
        opening.remove(name)
        monitor.signal()
    }

    /// Opens a database for its image, which outlives the store. The caller has entered its name in `opening`.
    private func makeImageOfFiles(
        _ name: DatabaseFileName, _ database: DatabaseName, for session: ImageSession, isEarly: Bool
    ) {
        guard let request = session.take(name, nil, isEarly: isEarly), !request.hasEnded(within: 0) else { return }
        do throws(Status) {
            let store = try openStore(files(name), database)
            store.begin(request)
            // Ends when the log is applied, or the disk fails.
            while !request.hasEnded(within: 1000), store.isOpen {}
            store.close()
        } catch {
            request.end(.failure(withoutFolder(error)))
        }
    }
}
