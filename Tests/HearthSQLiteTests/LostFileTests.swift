import Foundation
import Glibc
import HearthEngine
import HearthModel
import HearthTestStores
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthSQLite

/// A database's log and its file belong together: what happens when one of them is lost, or is of another database, and
/// when a deletion is interrupted.
struct LostFileTests {
    private final class Journal: StoreObserver {
        let events = Mutex<[StoreEvent]>([])
        func store(_ name: String, reports event: StoreEvent) { events.withLock { $0.append(event) } }
        var all: [StoreEvent] { events.withLock { $0 } }
    }

    private let folder = TemporaryFolder()
    private let name = DatabaseName(project: "p", database: "d")
    private var file: String { folder.path + "/p/d.sqlite" }

    private func provider(
        isReadOnly: Bool = false, _ journal: Journal? = nil
    ) throws(Status) -> SQLiteStoreProvider {
        var options = SQLiteStoreOptions()
        options.isReadOnly = isReadOnly
        options.observer = journal
        return try SQLiteStoreProvider(path: folder.path, options: options)
    }

    /// Leaves a database whose log has what its file lacks.
    private func fill(_ name: DatabaseName) throws(Status) {
        let provider = try provider()
        let store = try provider.open(name)
        try store.write { transaction throws(Status) in try transaction.put(.documents, key(1), [7]) }
        provider.close()
    }

    private func content(_ provider: SQLiteStoreProvider, _ name: DatabaseName) throws(Status) -> [UInt8]? {
        let store = try provider.open(name)
        defer { store.close() }
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        return try snapshot.get(.documents, key(1))
    }

    private func logSizes() throws(Status) -> [String] { try DataFolder.names(file + "-log").sorted() }

    private let lost = Status(
        .dataLoss,
        "d.sqlite is missing, but its log is there: it was truncated, or lost."
            + " Restore the file and its log from one backup, or delete the database.")

    @Test(arguments: [false, true])
    func aLogWithoutItsFileIsKeptAndReported(isReadOnly: Bool) throws {
        try fill(name)
        #expect(rename(file, folder.path + "/elsewhere") == 0)
        let before = try logSizes()
        #expect(!before.isEmpty)
        do {
            let journal = Journal()
            let provider = try provider(isReadOnly: isReadOnly, journal)
            // At the start, before anybody uses it.
            #expect(journal.all == [.openFails(lost, file: file)])
            #expect(try provider.databases() == [name])
            #expect(try provider.contains(name))
            #expect(throws: lost) { try provider.open(name) }
            provider.close()
        }
        #expect(try logSizes() == before)
        #expect(!DataFolder.exists(file))
        // With its file again nothing is missing.
        #expect(rename(folder.path + "/elsewhere", file) == 0)
        #expect(try content(try provider(), name) == [7])
    }

    @Test func aDatabaseThatHasLostItsFileCanBeDeleted() throws {
        try fill(name)
        try DataFolder.remove(file)
        let provider = try provider()
        try provider.delete(name)
        #expect(try provider.databases() == [] && !provider.contains(name))
        #expect(try content(provider, name) == nil)
    }

    @Test func aFileWithoutContentsHasLostThemWhenThereIsALog() throws {
        try fill(name)
        #expect(truncate(file, 0) == 0)
        let provider = try provider()
        let status = #expect(throws: Status.self) { try provider.open(name) }
        #expect(status?.code == .dataLoss && status?.message.hasPrefix("d.sqlite is empty, but its log") == true)
        #expect(try !logSizes().isEmpty)
    }

    /// All that the file should have is in SQLite's WAL, which SQLite takes for empty when its beginning is damaged.
    @Test(arguments: [false, true])
    func aDamagedWALWithoutAFileIsFound(isReadOnly: Bool) throws {
        do {
            let store = try provider().open(name)
            try store.write { transaction throws(Status) in try transaction.put(.documents, key(1), [7]) }
            // The process ends without closing it.
            for suffix in ["", "-wal"] { try copy(file + suffix, folder.path + "/copy" + suffix) }
            try DataFolder.makeFolder(folder.path + "/copy-log")
            for name in try logSizes() { try copy(file + "-log/" + name, folder.path + "/copy-log/" + name) }
        }
        let copies = TemporaryFolder()
        let copied = copies.path + "/p/d.sqlite"
        try DataFolder.makeFolder(copies.path + "/p")
        for suffix in ["", "-wal", "-log"] { #expect(rename(folder.path + "/copy" + suffix, copied + suffix) == 0) }
        var bytes = try contents(copied + "-wal")
        bytes[40] ^= 1
        try write(bytes, copied + "-wal")
        let before = try (contents(copied), contents(copied + "-log/1"))
        var options = SQLiteStoreOptions()
        options.isReadOnly = isReadOnly
        let provider = try SQLiteStoreProvider(path: copies.path, options: options)
        let status = #expect(throws: Status.self) { try provider.open(name) }
        #expect(status?.code == .dataLoss && status?.message.contains("d.sqlite has no contents, but its log") == true)
        #expect(try contents(copied) == before.0 && contents(copied + "-log/1") == before.1)
    }

    private func contents(_ path: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    }
    private func write(_ bytes: [UInt8], _ path: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }
    private func copy(_ path: String, _ new: String) throws { try write(contents(path), new) }

    /// A start can read nothing behind the file that is missing.
    @Test func nothingIsAcknowledgedBehindALostFileOfALog() throws {
        // Nothing is applied meanwhile, which would remove files, and make good a loss.
        var logOptions = LoggedStoreOptions()
        logOptions.idleMilliseconds = 1 << 30
        logOptions.retryMilliseconds = 1 << 30
        let provider = try SQLiteStoreProvider(path: folder.path, options: SQLiteStoreOptions(), logOptions: logOptions)
        defer { provider.close() }
        let store = try provider.open(name)
        defer { store.close() }
        func write(_ count: Int) throws(Status) {
            try store.write { transaction throws(Status) in
                try transaction.put(.documents, key(1), Array(repeating: 7, count: count))
            }
        }
        var files: [String] = []
        while files.count < 2 {
            try write(1 << 18)
            files = try logSizes().filter { Int($0) != nil }
        }
        try DataFolder.remove(file + "-log/1")
        provider.checkFiles()
        let status = #expect(throws: Status.self) { try write(1) }
        #expect(status?.code == .unavailable)
    }

    /// The file alone is the state of an earlier moment.
    @Test(arguments: [false, true])
    func aFileWithoutItsLogIsRefusedUntilTheLossIsAccepted(isReadOnly: Bool) throws {
        try fill(name)
        #expect(rename(file + "-log", folder.path + "/elsewhere") == 0)
        let provider = try provider(isReadOnly: isReadOnly)
        let status = #expect(throws: Status.self) { try provider.open(name) }
        #expect(status?.code == .dataLoss)
        #expect(status?.message.hasPrefix("The log p/d.sqlite-log/ is missing") == true)
        provider.close()
        if isReadOnly {
            #expect(rename(folder.path + "/elsewhere", file + "-log") == 0)
            #expect(try content(try self.provider(), name) == [7])
            return
        }
        var accepting = LoggedStoreOptions()
        accepting.acceptsLostLog = true
        do {
            let provider = try SQLiteStoreProvider(path: folder.path, logOptions: accepting)
            #expect(try content(provider, name) == nil)
            provider.close()
        }
        #expect(try content(try self.provider(), name) == nil)
    }

    /// The log's files are removed when SQLite's WAL, of which only whole transactions at its end are missed, is empty.
    @Test func theLogIsKeptUntilTheWALIsEmpty() throws {
        var options = LoggedStoreOptions()
        options.idleMilliseconds = 1
        options.emptyMilliseconds = 1
        options.retryMilliseconds = 1
        let provider = try SQLiteStoreProvider(path: folder.path, logOptions: options)
        let store = try provider.open(name)
        try store.write { transaction throws(Status) in try transaction.put(.documents, key(1), [7]) }
        store.maintain()
        #expect(eventually { (try? logSizes()) == [] })
        #expect(try contents(file + "-wal").isEmpty)
        provider.close()
        // Nothing is missing without it.
        #expect(try content(try self.provider(), name) == [7])
    }

    @Test func theLogOfAnotherDatabaseIsNotApplied() throws {
        let other = DatabaseName(project: "p", database: "other")
        try fill(name)
        try fill(other)
        #expect(rename(file + "-log", folder.path + "/p/other.sqlite-log.old") == 0)
        #expect(rename(folder.path + "/p/other.sqlite-log", file + "-log") == 0)
        for isReadOnly in [true, false] {
            let provider = try provider(isReadOnly: isReadOnly)
            let status = #expect(throws: Status.self) { try provider.open(name) }
            #expect(
                status
                    == Status(
                        .dataLoss,
                        "The log p/d.sqlite-log/1 is damaged at byte 0: it is the log of another database's file."))
            provider.close()
        }
        #expect(try !logSizes().isEmpty)
    }

    /// A process that ends within a deletion leaves a database that is deleted, or whole.
    @Test(arguments: 0..<5)
    func anInterruptedDeletionIsFinishedAtTheNextStart(step: Int) throws {
        let long = DatabaseName(project: "p", database: String(repeating: "D", count: 200))
        for name in [name, long] { try fill(name) }
        for name in [name, long] {
            let component = DatabaseFileName(name).file
            let file = folder.path + "/p/" + component + ".sqlite"
            if step >= 1 { #expect(rename(file, file + "-deleted") == 0) }
            if step >= 2 { try DataFolder.remove(file + "-log/1") }
            if step >= 3 { #expect(rmdir(file + "-log") == 0) }
            if step >= 4 { try DataFolder.remove(file + "-deleted") }
        }
        let provider = try provider()
        #expect(try Set(provider.databases()) == (step == 0 ? [name, long] : []))
        for name in [name, long] {
            #expect(try provider.contains(name) == (step == 0))
            #expect(try content(provider, name) == (step == 0 ? [7] : nil))
            try provider.delete(name)
        }
        #expect(try DataFolder.names(folder.path) == [".lock"])
    }

    /// Somebody who restores files after an interrupted deletion has them.
    @Test func aRestoredFileIsNotTakenForADeletedOne() throws {
        try fill(name)
        try DataFolder.write("", file + "-deleted")
        #expect(try content(try provider(), name) == [7])
        #expect(!DataFolder.exists(file + "-deleted"))
    }
}
