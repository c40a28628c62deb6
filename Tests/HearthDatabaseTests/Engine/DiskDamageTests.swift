import Foundation
import HearthCache
import HearthModel
import HearthTestSupport
import HearthTree
import Testing

@testable import HearthDatabase

/// An engine whose cache was changed anywhere can be used again, after a few starts at the latest.
@Suite("A damaged cache of the engine")
struct DiskDamageTests {
    private static func filled() throws -> TemporaryFolder {
        let folder = TemporaryFolder()
        let first = try EngineFixture(#"{"a":{"b":1,"c":{"d":"x"}},"w":{"x":1,"y":2,"z":3}}"#, folder: folder.path)
        first.observe("a")
        first.observe("w", .ordered(by: .value, last: 2))
        first.run()
        first.connection.disconnect()
        try first.set("5", at: "a/m")
        try first.update(#"{"n":{".sv":{"increment":2}},"x/y":"z"}"#, at: "a")
        first.engine.close(.closed)
        let (journal, _) = try open(folder)
        let write = PendingWrite(
            id: 9, path: "a/j", isMerge: false, changes: [TreeChange(path: "a/j", node: Node(7))], madeAtMilliseconds: 1
        )
        for _ in 0..<2 { try journal.append(JournaledWrite.encode(write)) { _ in } }
        journal.close()
        return folder
    }

    private static func open(
        _ folder: TemporaryFolder
    ) throws -> (journal: WriteJournal, applied: Int64) {
        let file = CacheFile(folder: folder.path, name: "realtime.sqlite", lockName: "realtime.lock")
        let database = try CacheDatabase(path: file.database)
        defer { database.close() }
        let applied = try DiskWrites(database: database).journalNumber()
        return (try WriteJournal.open(file, applied: applied) { Issue.record("\($0)") }.journal, applied)
    }

    /// One run of a program: it listens and writes.
    /// - Returns: nil when the next run has the write, or what was not possible.
    private func run(_ folder: TemporaryFolder, _ number: Int) throws -> String? {
        do {
            let fixture = try EngineFixture(folder: folder.path, connects: false)
            fixture.observe("a", TreeQuery(), .value)
            fixture.observe("w", .ordered(by: .value, last: 2))
            try fixture.set("\(number)", at: "a/new")
            fixture.engine.close(.closed)
            let database = try CacheDatabase(path: folder.path + "/realtime.sqlite")
            defer { database.close() }
            let isStored =
                try database.number("SELECT count(*) FROM writes WHERE CAST(data AS TEXT) = '\(number)'") == 1
            return isStored ? nil : "not stored: \(fixture.clock.reports)"
        } catch {
            return "not opened: \(error)"
        }
    }

    @Test("Any value in any column costs a few starts at most")
    func anyValue() throws {
        let filled = try Self.filled()
        let original = try CacheDatabase(path: filled.path + "/realtime.sqlite")
        var changes: [String] = []
        for table in try original.strings("SELECT name FROM sqlite_schema WHERE type = 'table'") {
            changes.append("DELETE FROM \(table)")
            for column in try original.strings("SELECT name FROM pragma_table_info('\(table)')") {
                for value in ["0", "-1", "1", "\(Int64.max)", "'x'", "x''", "x'FFFFFFFFFF'", "\(column) + 1000"] {
                    changes.append("UPDATE OR REPLACE \(table) SET \(column) = \(value)")
                }
            }
        }
        original.close()
        for change in changes {
            let folder = try filled.copy()
            let database = try CacheDatabase(path: folder.path + "/realtime.sqlite")
            // Some are none: a key must be a number.
            try? database.execute(change)
            database.close()
            var outcomes: [String] = []
            for number in 1...4 {
                let outcome = try run(folder, 1_000_000 + number)
                outcomes.append(outcome ?? "ok")
                if outcome == nil { break }
            }
            #expect(outcomes.last == "ok", "\(change): \(outcomes)")
        }
    }

    /// Records whose writes always fail, and one of another form.
    @Test("A record of the journal that can never be stored costs its write, and one report")
    func records() throws {
        let folder = try Self.filled()
        let database = try CacheDatabase(path: folder.path + "/realtime.sqlite")
        try database.execute("CREATE TRIGGER refusal BEFORE INSERT ON writes BEGIN SELECT missing_function(); END")
        database.close()
        let file = CacheFile(folder: folder.path, name: "realtime.sqlite", lockName: "realtime.lock")
        let (journal, records) = try WriteJournal.open(file, applied: 0) { Issue.record("\($0)") }
        #expect(records.count >= 2)
        try journal.append([9, 9]) { _ in }
        journal.close()
        for round in 1...2 {
            let fixture = try EngineFixture(folder: folder.path, connects: false)
            let isLost = fixture.clock.reports.filter { "\($0)".contains("isn't sent") }
            #expect(isLost.count == (round == 1 ? 3 : 0), "\(fixture.clock.reports)")
            fixture.engine.close(.closed)
        }
    }
}
