import Glibc
import HearthModel
import HearthEngine
import HearthTestStores
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthSQLite

/// File names, and access to a folder.
struct DataFolderTests {
    static let ids = [
        "demo-shop", "(default)", "example.com:app", "a/b", "..", ".", ".hidden", "a.b", "%2f", "a%", "ÄÖ", "e\u{301}",
        "\u{E9}", "日本語", "😀", "A", "a", "~", "x.sqlite", "lock", "new line\n", " ", "\u{0}", "x.id",
        String(repeating: "p", count: 100), String(repeating: "p", count: 101), String(repeating: "ü", count: 200),
        String(repeating: "ü", count: 199) + "u", String(repeating: "/", count: 1500),
    ]

    @Test func namesAreSafeAndDistinct() {
        var seen: Set<String> = []
        for id in Self.ids {
            let component = DatabaseFileName.component(id)
            #expect(seen.insert(component).inserted, "\(id)")
            #expect(component.utf8.count + "\(DatabaseFileName.suffix)-wal".utf8.count <= 255)
            #expect(component.first != "." && !component.isEmpty)
            #expect(component.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") })
            #expect(component.lowercased() == component)
            if !DatabaseFileName.isShortened(component) {
                #expect(DatabaseFileName.id(ofComponent: component).map { Array($0.utf8) } == Array(id.utf8))
            }
        }
        #expect(DatabaseFileName.component("demo-shop") == "demo-shop")
        #expect(DatabaseFileName.component("example.com:app") == "example.com%3aapp")
        for foreign in ["", "A", "%2F", "%61", "%f", ".x", "a b", "%ff"] {
            #expect(DatabaseFileName.id(ofComponent: foreign) == nil, "\(foreign)")
        }
    }

    private func mode(_ path: String) -> mode_t {
        var information = stat()
        return stat(path, &information) == 0 ? information.st_mode & 0o777 : 0
    }

    @Test func newFilesAreReadableByTheOwnerOnly() throws {
        let folder = TemporaryFolder()
        let data = folder.path + "/data"
        let provider = try SQLiteStoreProvider(path: data)
        let long = DatabaseName(
            project: String(repeating: "p", count: 200), database: String(repeating: "d", count: 300))
        for name in [DatabaseName(project: "p"), long] {
            let store = try provider.open(name)
            try store.write { transaction throws(Status) in try transaction.put(.meta, [1], [1]) }
            try store.snapshot().close()
        }
        // Two databases with their logs of two kinds, and the id of the long name.
        #expect(try files(below: data).count >= 7 && provider.notice == nil)
        provider.close()
    }

    /// The files below a folder; all must be their owner's only.
    private func files(below folder: String) throws -> [String] {
        #expect(mode(folder) == 0o700, "\(folder)")
        return try DataFolder.names(folder).flatMap { name in
            let path = folder + "/" + name
            if DataFolder.isFolder(path) { return try files(below: path) }
            #expect(mode(path) == 0o600, "\(path)")
            return [path]
        }
    }

    @Test(arguments: [(0o755 as mode_t, 0o700 as mode_t), (0o777, 0o700), (0o750, 0o750), (0o700, 0o700)])
    func anOpenFolderOfDataIsClosed(before: mode_t, after: mode_t) throws {
        let folder = TemporaryFolder()
        try SQLiteStoreProvider(path: folder.path + "/data").close()
        chmod(folder.path + "/data", before)
        let provider = try SQLiteStoreProvider(path: folder.path + "/data")
        #expect(mode(folder.path + "/data") == after)
        #expect((provider.notice != nil) == (before != after))
        provider.close()
    }

    @Test func aFolderThatIsNotOnlyForDataIsUnchanged() throws {
        let folder = TemporaryFolder()
        for (name, mode) in [("new", 0o755 as mode_t), ("shared", 0o1777)] {
            let path = folder.path + "/" + name
            mkdir(path, 0o755)
            chmod(path, mode)
            for _ in 0..<(name == "new" ? 1 : 2) {
                let provider = try SQLiteStoreProvider(path: path)
                #expect(self.mode(path) == mode & 0o777 && provider.notice == nil)
                provider.close()
            }
        }
    }

    @Test func oddIdsAreReadBackFromAFolder() throws {
        let folder = TemporaryFolder()
        var expected: Set<[UInt8]> = []
        do {
            let provider = try SQLiteStoreProvider(path: folder.path + "/new/data")
            for id in Self.ids {
                for name in [DatabaseName(project: id), DatabaseName(project: "p", database: id)] {
                    expected.insert(Array(name.string.utf8))
                    let store = try provider.open(name)
                    try store.write { transaction throws(Status) in
                        try transaction.put(.meta, [], Array(name.string.utf8))
                    }
                    store.close()
                }
            }
        }
        let provider = try SQLiteStoreProvider(path: folder.path + "/new/data")
        let found = try provider.databases()
        #expect(Set(found.map { Array($0.string.utf8) }) == expected)
        #expect(found.count == expected.count)
        for name in found {
            let store = try provider.open(name)
            #expect(try store.snapshot().get(.meta, []) == Array(name.string.utf8))
            store.close()
            try provider.delete(name)
        }
        #expect(try provider.databases() == [])
        #expect(try DataFolder.names(folder.path + "/new/data") == [".lock"])
    }

    @Test func anIdWithTheFileNameOfAnotherIsRefused() throws {
        let folder = TemporaryFolder()
        let provider = try SQLiteStoreProvider(path: folder.path)
        let id = String(repeating: "p", count: 200)
        try provider.open(DatabaseName(project: id)).close()
        try DataFolder.write("another", folder.path + "/" + DatabaseFileName.component(id) + ".id")
        #expect(throws: Status.self) { try provider.open(DatabaseName(project: id)) }
        #expect(throws: Status.self) { try provider.delete(DatabaseName(project: id)) }
    }

    private final class Journal: StoreObserver {
        let events = Mutex<[StoreEvent]>([])
        func store(_ name: String, reports event: StoreEvent) { events.withLock { $0.append(event) } }
        func take() -> [StoreEvent] {
            events.withLock { events in
                defer { events = [] }
                return events
            }
        }
    }

    private func provider(_ folder: TemporaryFolder, _ journal: Journal) throws(Status) -> SQLiteStoreProvider {
        var options = SQLiteStoreOptions()
        options.observer = journal
        return try SQLiteStoreProvider(path: folder.path, options: options)
    }

    /// The operator learns which file it is, clients don't.
    @Test func aDamagedFileIsReportedWithItsPathAndFailsWithoutIt() throws {
        let folder = TemporaryFolder()
        let journal = Journal()
        let provider = try provider(folder, journal)
        let name = DatabaseName(project: "p", database: "d")
        try provider.open(name).close()
        #expect(journal.take() == [.opened, .closed])
        let file = folder.path + "/p/d.sqlite"
        try DataFolder.write(String(repeating: "no database", count: 1000), file)
        let damage = Status(.dataLoss, "cannot open d.sqlite: file is not a database (SQLite 26).")
        #expect(throws: damage) { try provider.open(name) }
        #expect(journal.take() == [.openFails(damage, file: file)])
        // Nor when a folder is in the way.
        try DataFolder.remove(file)
        try DataFolder.makeFolder(file)
        let status = #expect(throws: Status.self) { try provider.open(name) }
        #expect(status?.message.contains(folder.path) == false)
        try DataFolder.write("x", folder.path + "/q")
        let other = #expect(throws: Status.self) { try provider.open(DatabaseName(project: "q", database: "d")) }
        #expect(other?.message.contains(folder.path) == false)
    }

    /// SQLite takes a file without contents for a new one, and discards its log.
    @Test func aTruncatedFileIsDamageWhenThereIsALog() throws {
        let folder = TemporaryFolder()
        let journal = Journal()
        let provider = try provider(folder, journal)
        let name = DatabaseName(project: "p", database: "d")
        try provider.open(name).close()
        let file = folder.path + "/p/d.sqlite"
        #expect(truncate(file, 0) == 0)
        try DataFolder.write("a log", file + "-wal")
        let damage = Status(
            .dataLoss,
            "d.sqlite is empty, but its log is there: it was truncated, or lost."
                + " Restore the file and its log from one backup, or delete the database.")
        #expect(throws: damage) { try provider.open(name) }
        #expect(try DataFolder.read(file + "-wal") == "a log")
        try DataFolder.remove(file + "-wal")
        _ = journal.take()
        // Without a log it may be new: a crash can leave it so.
        try provider.open(name).close()
        #expect(journal.take() == [.foundEmpty(file: file), .opened, .closed])
    }

    @Test func aFolderThatWasDeletedIsNoticed() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/data"
        let provider = try SQLiteStoreProvider(path: path)
        #expect(try provider.databases() == [])
        #expect(rename(path, folder.path + "/moved") == 0)
        let moved = Status.unavailable("The data folder was deleted or replaced while the server was running.")
        #expect(throws: moved) { try provider.databases() }
        #expect(throws: moved) { try provider.open(DatabaseName(project: "p")) }
        #expect(!DataFolder.exists(path))
        // Another server's folder of the same name.
        let other = try SQLiteStoreProvider(path: path)
        #expect(throws: moved) { try provider.open(DatabaseName(project: "p")) }
        #expect(try other.databases() == [])
    }

    @Test func emptyAndTooLongIdsFail() throws {
        let folder = TemporaryFolder()
        let provider = try SQLiteStoreProvider(path: folder.path)
        for id in ["", String(repeating: "p", count: 1501)] {
            #expect(throws: Status.self) { try provider.open(DatabaseName(project: id)) }
            #expect(throws: Status.self) { try provider.open(DatabaseName(project: "p", database: id)) }
        }
        #expect(try provider.databases() == [])
    }

    @Test func aFolderIsLockedForOneProcess() throws {
        let folder = TemporaryFolder()
        var first: SQLiteStoreProvider? = try SQLiteStoreProvider(path: folder.path)
        #expect(
            throws: Status.failedPrecondition(
                "Another hearth process (\(getpid())) uses the data folder \(folder.path).")
        ) { try SQLiteStoreProvider(path: folder.path) }
        var store: (any Store)? = try first?.open(DatabaseName(project: "p"))
        first = nil
        // A store in use keeps the folder.
        #expect(throws: Status.self) { try SQLiteStoreProvider(path: folder.path) }
        store?.close()
        store = nil
        _ = try SQLiteStoreProvider(path: folder.path)
    }

    @Test func theErrorNamesAFolderThatCannotBeUsed() throws {
        let folder = TemporaryFolder()
        try DataFolder.write("data", folder.path + "/file")
        #expect(
            throws: Status.failedPrecondition("Cannot make the folder \(folder.path)/file/data: Not a directory.")
        ) { try SQLiteStoreProvider(path: folder.path + "/file/data") }
    }

    @Test func otherFilesInAFolderAreNoDatabases() throws {
        let folder = TemporaryFolder()
        let provider = try SQLiteStoreProvider(path: folder.path)
        try DataFolder.makeFolder(folder.path + "/Project/with/more")
        try DataFolder.makeFolder(folder.path + "/p")
        for file in ["notes.txt", "p/UPPER.sqlite", "p/x.sqlite-wal", "p/y.db", "Project/d.sqlite"] {
            try DataFolder.write("", folder.path + "/" + file)
        }
        #expect(try provider.databases() == [])
    }
}
