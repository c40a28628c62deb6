import Foundation
import HearthCache
import HearthModel
import HearthTestSupport
import HearthWire
import Synchronization
import Testing

@testable import HearthSync

/// A client whose cache was changed anywhere can be used again, after a few starts at the latest.
@Suite("A damaged cache", .timeLimit(.minutes(Patience.minutes)))
struct CacheDamageTests {
    private static let database = DatabaseName(project: "demo")

    /// Of a collection that the server fills.
    private static let query = ClientQuery.collection("c")

    /// A cache with documents, targets, pending writes of two users, indexes, a bundle, and a journal of two writes.
    private static func filled() throws -> TemporaryFolder {
        let folder = TemporaryFolder()
        let cache = try folder.open()
        for user in [ClientUser.unauthenticated, ClientUser(uid: "ann")] {
            let store = LocalStore(cache, user: user)
            try store.configure([FieldIndex("c", ("n", .ascending))])
            let target = try store.allocate(query.target)
            var event = RemoteEvent(snapshotVersion: .seconds(5))
            for number in 1...3 {
                event.documentUpdates[ResourcePath("c/\(number)")] = .found(
                    "c/\(number)", 4, ["n": .integer(Int64(number))])
            }
            var change = TargetChange(resumeToken: [1])
            change.added = [ResourcePath("c/1"), ResourcePath("c/2"), ResourcePath("c/3")]
            change.isCurrent = true
            event.targetChanges[target.targetID] = change
            _ = try store.apply(event)
            _ = try store.write([.set("c/1", ["n": .integer(7)]), .set("c/9", ["n": .integer(8)])])
            _ = try store.write([.set("c/2", ["n": .integer(6)])])
            _ = try store.backfillIndexes()
        }
        let applied = cache.journalNumber
        cache.shutDown()
        let (journal, _) = try WriteJournal.open(folder.files().file, applied: applied) { Issue.record("\($0)") }
        for key in ["c/1", "c/8"] {
            let serializer = MutationSerializer(database: database)
            try journal.append(
                JournaledWrite.encode(.unauthenticated)
                    + JournaledWrite.encode([.set(key, ["n": .integer(5)])], at: .seconds(9), serializer)
            ) { _ in }
        }
        journal.close()
        return folder
    }

    private final class Report: Sendable {
        let lines = Mutex<[String]>([])
        func add(_ line: String) { lines.withLock { $0.append(line) } }
    }

    /// One run of a program: listens, writes and reads.
    /// - Returns: nil when all of it was possible, or what was not.
    static func run(_ folder: TemporaryFolder, _ report: (String) -> Void) -> String? {
        let warnings = Report()
        var configuration = SyncConfiguration(
            database: database, appName: "app", cache: .persistent(folder: folder.path, sizeBytes: -1))
        configuration.onWarning = { warnings.add($0) }
        configuration.onDamage = { warnings.add($0.message) }
        let client: SyncClient
        do {
            client = try SyncClient(
                configuration: configuration, datastore: StrictServer(), credentials: EmptyCredentials(),
                callbacks: { $0() })
        } catch {
            return "not opened: \(error)"
        }
        let refused = Report()
        client.write([.set("c/4", ["n": .integer(4)])]) {
            if let error = $0, error.code != .cancelled { refused.add("\(error)") }
        }
        _ = client.listen(to: .collection("c", [filter("n", .greaterThan, .integer(0))]), options: .init()) { event in
            if case .failure(let error) = event { refused.add("listen: \(error)") }
        }
        let found = Promise<Result<ViewSnapshot, Status>>()
        client.documentsFromCache(query) { result in found.give(result) }
        var failure: String?
        switch found.wait() {
        case .success(let snapshot):
            if !snapshot.documents.contains(where: { $0.key == ResourcePath("c/4") }) {
                failure = "the write is not there"
            }
        case .failure(let error): failure = "not read: \(error)"
        }
        let ended = Promise<Void>()
        client.terminate { ended.give(()) }
        ended.wait()
        for line in warnings.lines.withLock({ $0 }) { report(line) }
        return refused.lines.withLock { $0.first } ?? failure
    }

    /// Each column of each table with values that are none of its own, and each table without rows.
    @Test("Any value in any column costs a few starts at most")
    func anyValue() async throws {
        let filled = try Self.filled()
        let original = try CacheDatabase(path: filled.files().database)
        let tables = try original.strings(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        var changes: [String] = []
        for table in tables {
            changes.append("DELETE FROM \(table)")
            // A file with another name in it is refused: it belongs to another app or database.
            let columns = try original.strings("SELECT name FROM pragma_table_info('\(table)')")
            for column in columns where !(table == "globals" && ["app_name", "project", "database"].contains(column)) {
                for value in ["0", "-1", "1", "\(Int64.max)", "'x'", "x''", "x'FFFFFFFFFF'", "\(column) + 1000"] {
                    changes.append("UPDATE OR REPLACE \(table) SET \(column) = \(value)")
                }
            }
        }
        original.close()
        let list = changes
        try await blocking {
            for change in list {
                let folder = TemporaryFolder()
                try FileManager.default.removeItem(atPath: folder.path)
                try FileManager.default.copyItem(atPath: filled.path, toPath: folder.path)
                let database = try CacheDatabase(path: folder.files().database)
                do throws(Status) { try database.execute(change) } catch {
                    database.close()
                    continue
                }
                database.close()
                var outcomes: [String] = []
                for _ in 1...4 {
                    let outcome = Self.run(folder, { outcomes.append("warning: " + $0) })
                    outcomes.append(outcome ?? "ok")
                    if outcome == nil { break }
                }
                #expect(outcomes.last == "ok", "\(change): \(outcomes)")
            }
        }
    }

    /// Records whose writes always fail, one of another form, and one of another database.
    @Test("A record of the journal that can never be made costs its write, and one warning")
    func records() throws {
        let folder = try Self.filled()
        let files = folder.files()
        let database = try CacheDatabase(path: files.database)
        try database.execute(
            "CREATE TRIGGER refusal BEFORE INSERT ON document_mutations BEGIN SELECT missing_function(); END")
        let applied = try #require(try database.first("SELECT journal_number FROM globals") { $0.integer(0) })
        database.close()
        let (journal, _) = try WriteJournal.open(files.file, applied: applied) { Issue.record("\($0)") }
        try journal.append([9, 9]) { _ in }
        try journal.append(
            JournaledWrite.encode(.unauthenticated)
                + JournaledWrite.encode(
                    [.set("c/a")], at: .none, MutationSerializer(database: DatabaseName(project: "other")))
        ) { _ in }
        journal.close()
        for round in 1...2 {
            let cache = try folder.open()
            var warnings: [String] = []
            try cache.replay(clock: StoppedClock()) { warnings.append($0) }
            #expect(warnings.count == (round == 1 ? 4 : 0), "\(warnings)")
            #expect(cache.journalNumber == applied + 4)
            cache.shutDown()
        }
    }
}
