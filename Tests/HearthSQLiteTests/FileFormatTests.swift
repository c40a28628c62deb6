import CSQLite
import Glibc
import HearthModel
import HearthEngine
import HearthTestStores
import HearthTestSupport
import Testing

@testable import HearthSQLite

/// The requirements on a file, and its contents over time.
struct FileFormatTests {
    @Test func dataOutlivesTheStore() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/a.sqlite"
        for round in 0..<3 {
            let store = try SQLiteStore(path: path)
            let snapshot = try store.snapshot()
            for keyspace in Keyspace.allCases {
                #expect(try snapshot.count(keyspace, .all, limit: Int.max) == round * 100)
            }
            snapshot.close()
            try store.write { transaction throws(Status) in
                for keyspace in Keyspace.allCases {
                    for number in 0..<100 { try transaction.put(keyspace, key(round * 100 + number), [1]) }
                }
            }
            store.close()
            #expect(folder.size("a.sqlite-wal") == nil)
        }
    }

    @Test func committedDataOutlivesACrash() throws {
        let folder = TemporaryFolder()
        let store = try SQLiteStore(path: folder.path + "/a.sqlite")
        try store.write { transaction throws(Status) in try transaction.put(.documents, [1], [2]) }
        // The files as after a crash: the store isn't closed.
        folder.copy("a.sqlite", to: folder.path + "/b.sqlite")
        folder.copy("a.sqlite-wal", to: folder.path + "/b.sqlite-wal")
        let copy = try SQLiteStore(path: folder.path + "/b.sqlite")
        #expect(try copy.snapshot().get(.documents, [1]) == [2])
    }

    @Test func aReadOnlyStoreDoesNotChangeTheFiles() throws {
        let folder = TemporaryFolder()
        let store = try SQLiteStore(path: folder.path + "/a.sqlite")
        try store.write { transaction throws(Status) in try transaction.put(.documents, [1], [2]) }
        folder.copy("a.sqlite", to: folder.path + "/b.sqlite")
        folder.copy("a.sqlite-wal", to: folder.path + "/b.sqlite-wal")
        let sizes = [folder.size("b.sqlite"), folder.size("b.sqlite-wal")]
        var options = SQLiteStoreOptions()
        options.isReadOnly = true
        let copy = try SQLiteStore(path: folder.path + "/b.sqlite", options: options)
        #expect(try copy.snapshot().get(.documents, [1]) == [2])
        #expect(try copy.damage(max: 10) == [])
        #expect(throws: Status.failedPrecondition("b.sqlite was opened for reading only.")) {
            try copy.write { transaction throws(Status) in try transaction.put(.documents, [3], [4]) }
        }
        copy.maintain()
        copy.close()
        #expect([folder.size("b.sqlite"), folder.size("b.sqlite-wal")] == sizes)
        // A missing file isn't made.
        #expect(throws: Status.self) { try SQLiteStore(path: folder.path + "/c.sqlite", options: options) }
        #expect(folder.size("c.sqlite") == nil)
    }

    @Test func damageIsReported() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/a.sqlite"
        let store = try SQLiteStore(path: path)
        #expect(try store.damage(max: 10) == [])
        store.close()
        // The index of the documents' keys loses its entries.
        try change(
            path,
            """
            INSERT INTO documents VALUES (x'01', x'02');
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'feed')
            WHERE name = 'sqlite_autoindex_documents_1'
            """)
        let damaged = try SQLiteStore(path: path)
        #expect(try !damaged.damage(max: 10).isEmpty)
    }

    @Test func openingANewerFormatFails() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/a.sqlite"
        try SQLiteStore(path: path).close()
        try change(path, "PRAGMA user_version = \(FileFormat.version + 1)")
        #expect(
            throws: Status.failedPrecondition(
                "\(path) has format version \(FileFormat.version + 1), which is newer than \(FileFormat.version), the"
                    + " newest that this hearth knows; use a newer hearth.")
        ) { try SQLiteStore(path: path) }
    }

    @Test func aFolderWithANewerFormatFailsBeforeAnyFileIsOpened() throws {
        let folder = TemporaryFolder()
        var provider: SQLiteStoreProvider? = try SQLiteStoreProvider(path: folder.path)
        try provider?.open(DatabaseName(project: "p")).close()
        provider = nil
        _ = try SQLiteStoreProvider(path: folder.path)
        let name = DatabaseFileName(DatabaseName(project: "p"))
        let path = "\(folder.path)/\(name.folder)/\(name.file)\(DatabaseFileName.suffix)"
        try change(path, "PRAGMA user_version = \(FileFormat.version + 1)")
        #expect(throws: FileFormat.newer(path, FileFormat.version + 1)) { try SQLiteStoreProvider(path: folder.path) }
    }

    @Test func openingAForeignDatabaseFailsAndDoesNotChangeIt() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/a.sqlite"
        try change(path, "CREATE TABLE t (x)")
        let before = folder.size("a.sqlite")
        #expect(throws: Status(.dataLoss, "a.sqlite is a SQLite database, but not a Hearth database.")) {
            try SQLiteStore(path: path)
        }
        #expect(folder.size("a.sqlite") == before)
        #expect(folder.size("a.sqlite-wal") == nil)
    }

    @Test func openingAFileThatIsNotADatabaseFails() throws {
        let folder = TemporaryFolder()
        try DataFolder.write(String(repeating: "no database", count: 1000), folder.path + "/a.sqlite")
        let path = folder.path + "/a.sqlite"
        #expect(
            throws: Status(.dataLoss, "cannot open a.sqlite: file is not a database (SQLite 26).")
        ) { try SQLiteStore(path: path) }
    }

    @Test func anotherProcessIsLockedOut() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/a.sqlite"
        let store = try SQLiteStore(path: path)
        try store.write { transaction throws(Status) in try transaction.put(.meta, [1], [1]) }
        // Needs the command-line tool; skipped where it is missing.
        let ask = "sqlite3 \(path) 'SELECT count(*) FROM meta' >\(folder.path)/out 2>\(folder.path)/error"
        if system("command -v sqlite3 >/dev/null") == 0 {
            #expect(system(ask) != 0)
            #expect(try DataFolder.read(folder.path + "/error")?.contains("locked") == true)
            store.close()
            #expect(system(ask) == 0)
        }
    }

    @Test func anEmptyFileBecomesADatabase() throws {
        let folder = TemporaryFolder()
        try DataFolder.write("", folder.path + "/a.sqlite")
        let store = try SQLiteStore(path: folder.path + "/a.sqlite")
        try store.write { transaction throws(Status) in try transaction.put(.meta, [1], [1]) }
        let connection = try Connection(path: folder.path + "/a.sqlite", configuration: [])
        #expect(try connection.number("PRAGMA page_size", "") == FileFormat.pageSizeBytes)
        #expect(try connection.number("PRAGMA user_version", "") == FileFormat.version)
        #expect(try connection.number("PRAGMA application_id", "") == 0x4852_5448)
        connection.close()
    }

    @Test func theErrorNamesAPathThatCannotBeOpened() throws {
        let folder = TemporaryFolder()
        do throws(Status) {
            _ = try SQLiteStore(path: folder.path + "/missing/a.sqlite")
            Issue.record("opened")
        } catch {
            #expect(error.message.contains("\(folder.path)/missing/a.sqlite"))
            #expect(error.message.contains("No such file or directory"))
        }
    }

    /// Changes a file by SQLite directly. A clear drops pages: its statements have no loop over rows, whose steps would
    /// be the writer's.
    @Test func everythingIsDeletedWithoutAWalkOverRows() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/a.sqlite"
        let store = try SQLiteStore(path: path)
        try store.write { transaction throws(Status) in
            for keyspace in Keyspace.allCases {
                for number in 0..<1000 { try transaction.put(keyspace, key(number), [1, 2, 3]) }
            }
        }
        try store.write { transaction throws(Status) in
            for keyspace in Keyspace.allCases where keyspace != .meta {
                #expect(try transaction.delete(keyspace, .all, limit: .max) == 1000)
                #expect(try transaction.delete(keyspace, .all, limit: .max) == 0)
            }
        }
        let snapshot = try store.snapshot()
        for keyspace in Keyspace.allCases {
            #expect(try snapshot.count(keyspace, .all, limit: .max) == (keyspace == .meta ? 1000 : 0))
        }
        snapshot.close()
        #expect(try store.damage(max: 10) == [])
        store.close()
        for keyspace in Keyspace.allCases {
            let operations = try operations(of: StatementKind.deleteAll.string(keyspace, bounded: false), path)
            #expect(operations.contains("Clear"))
            #expect(!operations.contains("Delete") && !operations.contains("Next"))
        }
        #expect(
            try operations(of: StatementKind.deleteRange.string(.documents, bounded: false), path).contains("Delete"))
    }

    /// SQLite's plan for a statement.
    private func operations(of statement: String, _ path: String) throws -> Set<String> {
        var handle: OpaquePointer?
        #expect(sqlite3_open(path, &handle) == SQLITE_OK)
        defer { sqlite3_close(handle) }
        var explained: OpaquePointer?
        #expect(sqlite3_prepare_v2(handle, "EXPLAIN " + statement, -1, &explained, nil) == SQLITE_OK)
        defer { sqlite3_finalize(explained) }
        var operations: Set<String> = []
        while sqlite3_step(explained) == SQLITE_ROW {
            if let string = sqlite3_column_text(explained, 1) { operations.insert(String(cString: string)) }
        }
        return operations
    }

    private func change(_ path: String, _ string: String) throws {
        var handle: OpaquePointer?
        #expect(sqlite3_open(path, &handle) == SQLITE_OK)
        #expect(sqlite3_exec(handle, string, nil, nil, nil) == SQLITE_OK)
        sqlite3_close(handle)
    }
}
