import Foundation
import HearthModel
import HearthTestSupport
import Testing

@testable import HearthCache

extension TemporaryFolder {
    var file: CacheFile { CacheFile(folder: path, name: "cache.sqlite", lockName: "cache.lock") }
    var names: [String] { get throws { try FileManager.default.contentsOfDirectory(atPath: path) } }
}

private struct Numbers: CacheContents {
    var schema = CacheSchema(
        applicationID: 7, steps: [CacheSchema.Step(number: 1, string: "CREATE TABLE numbers (n INTEGER)")])
    var creation = "PRAGMA page_size = 8192"
    var configuration = "PRAGMA cache_size = -100"
    var checkedSizeBytesMax = 0

    /// A negative number cannot be read.
    func readAll(_ database: CacheDatabase) throws(Status) {
        if try database.number("SELECT count(*) FROM numbers WHERE n < 0") > 0 {
            throw database.damaged("a number is negative")
        }
    }
    func prepare(_ database: CacheDatabase) throws(Status) { try database.run("INSERT INTO numbers VALUES (1)") }
}

@Suite("Opening a cache's file")
struct CacheOpeningTests {
    private let folder = TemporaryFolder()

    private func open(
        _ contents: Numbers = Numbers(), lost: (String) -> Void = { Issue.record("\($0)") },
        putAside: (Status, String) -> String = { "\($0.message) \($1)" }
    ) throws(Status) -> (database: CacheDatabase, lock: CacheLock) {
        try CacheOpening(file: folder.file, contents: contents).open(lost: lost, putAside: putAside)
    }

    private func close(_ cache: (database: CacheDatabase, lock: CacheLock)) {
        let isClean = cache.database.damage == nil
        cache.database.close()
        cache.lock.release(isClean: isClean)
    }

    private func refusal(_ body: () throws(Status) -> Void) -> Status? {
        do throws(Status) {
            try body()
            return nil
        } catch {
            return error
        }
    }

    @Test func isPreparedAtEachOpening() throws {
        for round in 1...3 {
            let cache = try open()
            #expect(cache.lock.wasClean)
            #expect(try cache.database.number("SELECT count(*) FROM numbers") == round)
            #expect(try cache.database.number("PRAGMA page_size") == 8192)
            #expect(try cache.database.strings("PRAGMA journal_mode") == ["wal"])
            close(cache)
        }
    }

    @Test func isUsedByOne() throws {
        let cache = try open()
        let refused = refusal { () throws(Status) in _ = try open() }
        #expect(refused?.code == .failedPrecondition && refused?.message.contains("in use") == true)
        #expect(refused?.message.contains(folder.file.database) == true)
        close(cache)
        close(try open())
    }

    @Test func refusesNewerAndForeignFiles() throws {
        var newer = Numbers()
        newer.schema.steps.append(CacheSchema.Step(number: 2, string: "CREATE TABLE more (n)"))
        close(try open(newer))
        let refused = refusal { () throws(Status) in _ = try open() }
        #expect(refused?.code == .failedPrecondition && refused?.message.contains("newer") == true)
        var other = newer
        other.schema.applicationID = 8
        let foreign = refusal { () throws(Status) in _ = try open(other) }
        #expect(foreign?.code == .failedPrecondition && foreign?.message.contains("no cache") == true)
        // A refused file is left as it was, and closed in order.
        let cache = try open(newer)
        #expect(cache.lock.wasClean)
        #expect(try cache.database.number("SELECT count(*) FROM numbers") == 2)
        close(cache)
    }

    @Test func putsADamagedFileAside() throws {
        try Data(repeating: 0x5A, count: 20_000).write(to: URL(fileURLWithPath: folder.file.database))
        var aside: [String] = []
        let cache = try open(putAside: { reason, path in
            #expect(reason.code == .dataLoss)
            aside.append(path)
            return ""
        })
        #expect(try cache.database.number("SELECT count(*) FROM numbers") == 1)
        close(cache)
        #expect(aside.count == 1 && aside.allSatisfy { FileManager.default.fileExists(atPath: $0) })
        try folder.file.clear()
        #expect(try folder.names == ["cache.lock"])
    }

    /// The rest of a cache that was used: the lock, after a use that ended in order or did not.
    @Test(arguments: [true, false], [nil, Data()])
    func warnsWhenTheDatabaseIsMissing(isClean: Bool, rest: Data?) throws {
        let used = try open()
        used.database.close()
        used.lock.release(isClean: isClean)
        let database = folder.file.database
        try FileManager.default.removeItem(atPath: database)
        if let rest { try rest.write(to: URL(fileURLWithPath: database)) }
        var warnings: [String] = []
        let cache = try open(lost: { warnings.append($0) })
        #expect(warnings.count == 1 && warnings.allSatisfy { $0.contains("\(database) was removed or emptied") })
        #expect(try cache.database.number("SELECT count(*) FROM numbers") == 1)
        close(cache)
        close(try open())
    }

    /// The lock of an older version of the client has no line, but there may be a log or a journal.
    @Test(arguments: [true, false])
    func theLogAndTheJournalShowThatTheDatabaseIsMissing(isLog: Bool) throws {
        try Data().write(to: URL(fileURLWithPath: folder.file.lock))
        try Data([1]).write(to: URL(fileURLWithPath: isLog ? folder.file.log : folder.file.journal))
        var warnings = 0
        let cache = try open(lost: { _ in warnings += 1 })
        #expect(warnings == 1)
        #expect(try folder.names.contains("cache.sqlite.writes") == false, "the journal was of another database")
        close(cache)
    }

    @Test func aClearedCacheIsNotMissing() throws {
        close(try open())
        try folder.file.clear()
        close(try open())
    }

    @Test func readsAllAfterDamageInUse() throws {
        let first = try open()
        try first.database.run("INSERT INTO numbers VALUES (-1)")
        close(first)
        // Nothing is known of it yet.
        let second = try open()
        _ = second.database.damaged("it was seen in use")
        close(second)
        var reasons: [String] = []
        let third = try open(putAside: { reason, _ in
            reasons.append(reason.message)
            return ""
        })
        #expect(reasons == ["a number is negative"])
        close(third)
    }

    /// Damage of which no examination knows would keep an app from starting for ever.
    @Test func putsAFileAsideWhoseDamageShowsAlsoAfterAnExamination() throws {
        for round in 1...2 {
            let cache = try open()
            #expect(try cache.database.number("SELECT count(*) FROM numbers") == round)
            _ = cache.database.damaged("it was seen in use")
            close(cache)
        }
        var asides = 0
        let third = try open(putAside: { _, path in
            asides += 1
            return path
        })
        #expect(asides == 1)
        // The new one begins as any other.
        _ = third.database.damaged("it was seen in use")
        close(third)
        let fourth = try open()
        #expect(try fourth.database.number("SELECT count(*) FROM numbers") == 2)
        close(fourth)
        // An examination and a use without damage: all is well.
        let fifth = try open()
        _ = fifth.database.damaged("it was seen in use")
        close(fifth)
        close(try open())
    }

    @Test func namesTheFileThatWasPutAsideWhenNoNewOneCanBeMade() throws {
        try Data(repeating: 0x5A, count: 20_000).write(to: URL(fileURLWithPath: folder.file.database))
        var broken = Numbers()
        broken.schema.steps[0].string = "CREATE TABLE"
        let failure = refusal { () throws(Status) in _ = try open(broken, putAside: { _, _ in "PUT ASIDE" }) }
        #expect(failure?.code == .internal && failure?.message.hasSuffix("PUT ASIDE") == true)
    }
}
