import CSQLite
import Glibc
import HearthEngine
import HearthModel
import HearthTestStores
import HearthTestSupport
import Testing

@testable import HearthSQLite

/// Files of format version 1, which have no log, are carried over, and nothing is lost whenever that is interrupted.
struct CarryOverTests {
    private let folder = TemporaryFolder()
    private let name = DatabaseName(project: "p", database: "d")
    private let rows = 300

    /// A folder as a process of version 1 has it, or as a kill has left it, when its last commits are in the WAL.
    /// - Returns: the open connection.
    private func makeVersion1(_ folder: String) throws -> OpaquePointer? {
        try DataFolder.makeFolder(folder + "/p")
        var handle: OpaquePointer?
        #expect(sqlite3_open(folder + "/p/d.sqlite", &handle) == SQLITE_OK)
        execute(
            handle,
            """
            PRAGMA page_size = 4096;
            PRAGMA journal_mode = WAL;
            BEGIN;
            CREATE TABLE documents (key BLOB NOT NULL UNIQUE, value BLOB NOT NULL);
            CREATE TABLE entries (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
            CREATE TABLE feed (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
            CREATE TABLE meta (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
            PRAGMA application_id = \(FileFormat.applicationID);
            PRAGMA user_version = 1;
            COMMIT
            """)
        for keyspace in ["documents", "entries", "feed", "meta"] {
            execute(
                handle,
                """
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
                INSERT INTO \(keyspace) SELECT CAST('k' || i AS BLOB), CAST('v' || i AS BLOB) FROM n
                """)
        }
        return handle
    }

    private func execute(_ handle: OpaquePointer?, _ string: String) {
        #expect(sqlite3_exec(handle, string, nil, nil, nil) == SQLITE_OK)
    }

    private func version(_ file: String) throws(Status) -> Int {
        let connection = try Connection(path: file, configuration: [])
        defer { connection.close() }
        return try connection.number("PRAGMA user_version", "cannot read")
    }

    /// What a kill would leave at this moment.
    private func copy(_ folder: String) throws(Status) -> TemporaryFolder {
        let copy = TemporaryFolder()
        try DataFolder.makeFolder(copy.path + "/p")
        for suffix in ["", "-wal"] where DataFolder.exists(folder + "/p/d.sqlite" + suffix) {
            self.folder.copy("data/p/d.sqlite" + suffix, to: copy.path + "/p/d.sqlite" + suffix)
        }
        if DataFolder.exists(folder + "/p/d.sqlite-log") {
            try DataFolder.makeFolder(copy.path + "/p/d.sqlite-log")
            for file in try DataFolder.names(folder + "/p/d.sqlite-log") {
                self.folder.copy(
                    "data/p/d.sqlite-log/" + file, to: copy.path + "/p/d.sqlite-log/" + file)
            }
        }
        return copy
    }

    private func expectContent(_ folder: String, new: Int) throws {
        let provider = try SQLiteStoreProvider(path: folder)
        defer { provider.close() }
        let store = try provider.open(name)
        let snapshot = try store.snapshot()
        for keyspace in Keyspace.allCases {
            #expect(try snapshot.count(keyspace, .all, limit: .max) == rows + (keyspace == .documents ? new : 0))
            for number in [1, 150, rows] {
                #expect(try snapshot.get(keyspace, Array("k\(number)".utf8)) == Array("v\(number)".utf8))
            }
        }
        for number in 0..<new { #expect(try snapshot.get(.documents, key(number)) == [UInt8(number)]) }
        snapshot.close()
        #expect(try store.damage(max: 3) == [])
        store.close()
        provider.close()
        #expect(try version(folder + "/p/d.sqlite") == FileFormat.version)
    }

    @Test(arguments: [false, true])
    func nothingIsLostAtAnyStage(isCrash: Bool) throws {
        let data = folder.path + "/data"
        let handle = try makeVersion1(data)
        if !isCrash { sqlite3_close(handle) }
        var stages = [(try copy(data), 0)]
        if isCrash { sqlite3_close(handle) }
        do {
            // The version is raised, and that is all.
            let store = try SQLiteStore(path: data + "/p/d.sqlite")
            stages.append((try copy(data), 0))
            store.close()
        }
        let provider = try SQLiteStoreProvider(path: data)
        let store = try provider.open(name)
        stages.append((try copy(data), 0))
        #expect(!DataFolder.exists(data + "/p/d.sqlite-log"))
        for number in 0..<3 {
            try store.write { transaction throws(Status) in
                try transaction.put(.documents, key(number), [UInt8(number)])
            }
            stages.append((try copy(data), number + 1))
        }
        provider.close()
        stages.append((try copy(data), 3))
        for (folder, new) in stages { try expectContent(folder.path, new: new) }
    }

    /// A hearth that knows only version 1 must not open what may have a log.
    @Test func theVersionIsRaisedBeforeThereIsALog() throws {
        let data = folder.path + "/data"
        sqlite3_close(try makeVersion1(data))
        let provider = try SQLiteStoreProvider(path: data)
        let store = try provider.open(name)
        try store.write { transaction throws(Status) in try transaction.put(.documents, key(0), [0]) }
        let copy = try copy(data)
        #expect(DataFolder.exists(copy.path + "/p/d.sqlite-log/1"))
        #expect(try version(copy.path + "/p/d.sqlite") == FileFormat.version)
        provider.close()
    }

    @Test func readingOnlyDoesNotCarryOver() throws {
        let data = folder.path + "/data"
        sqlite3_close(try makeVersion1(data))
        var options = SQLiteStoreOptions()
        options.isReadOnly = true
        let provider = try SQLiteStoreProvider(path: data, options: options)
        let store = try provider.open(name)
        let snapshot = try store.snapshot()
        #expect(try snapshot.count(.documents, .all, limit: .max) == rows)
        snapshot.close()
        provider.close()
        #expect(try version(data + "/p/d.sqlite") == 1)
    }
}
