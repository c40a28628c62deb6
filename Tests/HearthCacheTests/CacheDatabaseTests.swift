import HearthTestSupport
import Testing

@testable import HearthCache

@Suite("The connections to a cache")
struct CacheDatabaseTests {
    private let folder = TemporaryFolder()

    @Test func aCacheIsNotCopiedTwiceBesideItsWriter() throws {
        let writer = try CacheDatabase(path: folder.path + "/cache.sqlite")
        try writer.execute("PRAGMA journal_mode = WAL; CREATE TABLE t (a)")
        writer.observeLog()
        let copier = try CacheDatabase(path: folder.path + "/cache.sqlite")
        try copier.execute("PRAGMA wal_autocheckpoint = 0")
        for round in 0..<5 {
            try writer.run("INSERT INTO t VALUES (?)", .integer(round))
            #expect(try copier.checkpointBesideWriter())
            #expect(try !copier.checkpointBesideWriter())
        }
        copier.close()
        writer.close()
    }
}
