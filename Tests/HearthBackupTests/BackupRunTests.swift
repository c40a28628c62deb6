import Glibc
import HearthConcurrency
import HearthEngine
import HearthHost
import HearthModel
import HearthSQLite
import HearthTestSupport
import Testing

@testable import HearthBackup

/// Backups into folders, what their manifests say, and the timer.
struct BackupRunTests {
    private let folder = TemporaryFolder()

    private struct Site {
        let databases: SQLiteStoreProvider
        let namespaces: SQLiteStoreProvider
        let source: BackupSource

        func close() {
            databases.close()
            namespaces.close()
        }
    }

    private func site() throws -> Site {
        let data = folder.path + "/data"
        let databases = try SQLiteStoreProvider(path: data)
        let namespaces = try SQLiteStoreProvider(path: data + "/+realtime")
        return Site(
            databases: databases, namespaces: namespaces,
            source: BackupSource(
                folder: data, databases: databases, namespaces: namespaces, namespaceFolder: "+realtime",
                project: "demo"))
    }

    private func put(_ store: any Store, _ count: Int) throws(Status) {
        try store.write { transaction throws(Status) in
            for number in 0..<count { try transaction.put(.documents, Array("d\(number)".utf8), [1]) }
        }
    }

    private let long = String(repeating: "L", count: 70)

    private func fill(_ site: Site) throws {
        try put(try site.databases.open(DatabaseName(project: "p", database: "(default)")), 30)
        // A shortened name, whose full id has a file of its own.
        try put(try site.databases.open(DatabaseName(project: "p", database: long)), 5)
        try put(try site.namespaces.open(DatabaseName(project: "namespaces", database: "ns")), 7)
        try DataFolder.write(Array("{}".utf8), folder.path + "/data/triggers.json")
        try DataFolder.write(Array("rules".utf8), folder.path + "/data/+realtime/ns.rules")
        try DataFolder.write(Array("no backup".utf8), folder.path + "/data/manifest.json")
    }

    private func backUp(_ site: Site, to path: String) throws -> (manifest: BackupManifest, folder: BackupFolder) {
        var run = BackupRun(site.source, check: {})
        let target = try BackupFolder(path)
        try run.run { target }
        return (run.manifest, target)
    }

    @Test func aBackupHasAllDatabasesAndFilesAndItsManifestIsRight() throws {
        let site = try site()
        defer { site.close() }
        try fill(site)
        let (manifest, backup) = try backUp(site, to: folder.path + "/backup")
        let stored = try BackupManifest(parsing: try #require(backup.manifest))
        #expect(stored == manifest)
        #expect(stored.difference(from: backup.files) == nil)
        #expect(Set(stored.databases.map(\.name)) == ["(default)", long, "ns"])
        #expect(stored.databases.first { $0.name == "(default)" }?.documents == 30)
        #expect(stored.databases.first { $0.isNamespace }?.project == "demo")
        #expect(stored.databases.first { $0.isNamespace }?.file.path == "+realtime/namespaces/ns.sqlite")
        let paths = stored.files.map(\.path)
        #expect(paths.contains("triggers.json") && paths.contains("+realtime/ns.rules"))
        #expect(paths.contains { $0.hasPrefix("p/") && $0.hasSuffix(".id") })
        #expect(paths.count == 3)
        // It is a data folder.
        let restored = try SQLiteStoreProvider(path: backup.path)
        defer { restored.close() }
        let names = try restored.databases().filter { $0.project == "p" }
        #expect(Set(names.map(\.database)) == ["(default)", long])
        let snapshot = try restored.open(DatabaseName(project: "p", database: long)).snapshot()
        defer { snapshot.close() }
        #expect(try snapshot.count(.documents, KeyRange(lower: [], upper: nil), limit: .max) == 5)
    }

    /// Nobody would find the database without the file with its id, which is deleted with it.
    @Test func aDatabaseThatIsDeletedMeanwhileIsWholeInTheBackup() throws {
        let site = try site()
        defer { site.close() }
        let names = [long, long + "2"].map { DatabaseName(project: long, database: $0) }
        for name in names {
            let store = try site.databases.open(name)
            try put(store, 5)
            store.close()
        }
        let target = try BackupFolder(folder.path + "/backup")
        var run = BackupRun(site.source, check: {})
        try run.run { () throws(Status) in
            for name in names { try site.databases.delete(name) }
            return target
        }
        #expect(try BackupManifest(parsing: try #require(target.manifest)).difference(from: target.files) == nil)
        let restored = try SQLiteStoreProvider(path: target.path)
        defer { restored.close() }
        #expect(Set(try restored.databases().filter { $0.project == long }) == Set(names))
    }

    @Test func differencesNameTheFile() throws {
        let site = try site()
        defer { site.close() }
        try fill(site)
        let (manifest, backup) = try backUp(site, to: folder.path + "/backup")
        var files = backup.files
        let first = files.removeFirst()
        #expect(manifest.difference(from: files) == "\(first.path) is missing.")
        var changed = first
        changed.bytes += 1
        #expect(manifest.difference(from: files + [changed])?.hasPrefix("\(first.path) has ") == true)
        changed = first
        changed.sha256 = String(changed.sha256.reversed())
        #expect(manifest.difference(from: files + [changed])?.hasPrefix("\(first.path) is damaged") == true)
        changed.path = "more"
        #expect(manifest.difference(from: backup.files + [changed]) == "more has no entry in manifest.json.")
    }

    @Test(arguments: [
        #"{"format": 2, "hearth": "9"}"#, #"{"hearth": "9"}"#, "", "[]",
        #"{"format":1,"hearth":"1","started":"","finished":"","databases":[],"files":[{"file":"../a","bytes":1,"sha256":""}]}"#,
        #"{"format":1,"hearth":"1","started":"","finished":"","databases":[],"files":[{"file":"a","bytes":-1,"sha256":""}]}"#,
        #"{"format":1,"hearth":"1","started":"","finished":"","databases":[{"file":"a","bytes":1,"sha256":""}],"files":[]}"#,
        #"{"format":1,"hearth":"1","started":"","finished":"","databases":[],"files":[{"file":"a","bytes":9007199254740992,"sha256":""},{"file":"b","bytes":1,"sha256":""}]}"#,
    ])
    func manifestsThatAreWrongAreRefused(json: String) {
        #expect(throws: Status.self) { try BackupManifest(parsing: Array(json.utf8)) }
    }

    private var manifest: BackupManifest {
        var manifest = BackupManifest(hearth: "1", started: "2026-11-27T08:00:00Z", finished: "2026-11-27T08:00:01Z")
        let file = BackupManifest.File(path: "p/(default).sqlite", bytes: 4096, sha256: "00")
        manifest.databases = [BackupManifest.Database(project: "p", name: "(default)", isNamespace: false, file: file)]
        manifest.files = [BackupManifest.File(path: "triggers.json", bytes: 1, sha256: "01")]
        return manifest
    }

    @Test func eachChangedBitOfAManifestIsFound() throws {
        let bytes = manifest.json
        #expect(try BackupManifest(parsing: bytes) == manifest)
        for index in bytes.indices {
            for bit in 0..<8 {
                var damaged = bytes
                damaged[index] ^= 1 << bit
                #expect(throws: Status.self, "bit \(bit) of byte \(index)") { try BackupManifest(parsing: damaged) }
            }
        }
        for count in bytes.indices {
            #expect(throws: Status.self, "\(count) bytes") { try BackupManifest(parsing: Array(bytes[..<count])) }
        }
        #expect(throws: Status.self) { try BackupManifest(parsing: bytes + [UInt8(ascii: " ")]) }
    }

    /// Those of versions that wrote none.
    @Test func aManifestWithoutADigestIsRead() throws {
        let bytes = manifest.json
        let end = try #require(bytes.lastIndex(of: UInt8(ascii: "]")))
        #expect(try BackupManifest(parsing: Array(bytes[...end]) + Array("}\n".utf8)) == manifest)
    }

    @Test func aBackupThatIsEndedLeavesNoManifest() throws {
        let site = try site()
        defer { site.close() }
        try fill(site)
        let target = try BackupFolder(folder.path + "/backup")
        var left = 2
        var run = BackupRun(site.source) { () throws(Status) in
            left -= target.files.isEmpty ? 0 : 1
            if left < 0 { throw Status(.cancelled, "enough") }
        }
        #expect(throws: Status.self) { try run.run { target } }
        #expect(target.manifest == nil)
        // The next one can begin at once.
        _ = try backUp(site, to: folder.path + "/other")
    }

    @Test func aFolderTakesTheNameAtOneMomentAndReplacesWhatWasThere() throws {
        let path = folder.path + "/backup"
        try DataFolder.makeFolder(path + "/inner")
        try DataFolder.write([1], path + "/inner/old")
        let new = try BackupFolder(path + ".partial")
        try new.begin("a/b", bytes: 1)
        try new.write([2])
        try new.end()
        try new.synchronize()
        try new.rename(to: path)
        #expect(try DataFolder.names(path) == ["a"])
        #expect(access(path + ".partial", F_OK) != 0)
    }

    // MARK: The timer

    @Test func namesOfScheduledBackups() {
        let name = BackupSchedule.name(1_764_217_869)
        #expect(name == "2025-11-27T043109Z")
        #expect(BackupSchedule.seconds(ofName: name) == 1_764_217_869)
        for other in ["2025-11-27T043109Z.partial", "2025-13-27T043109Z", "", "2025-11-27T04:3109Z"] {
            #expect(BackupSchedule.seconds(ofName: other) == nil, "\(other)")
        }
    }

    @Test func backupsOfATimerAreMadeWhenTheyAreDueAndTheOldestAreRemoved() throws {
        let site = try site()
        defer { site.close() }
        try fill(site)
        let backups = folder.path + "/backups"
        // Left by a process that was killed, and not ours.
        try DataFolder.makeFolder(backups + "/2025-11-01T000000Z.partial/p")
        try DataFolder.makeFolder(backups + "/mine")
        let service = BackupService(site.source, log: Log(write: { _ in }))
        defer { service.stop() }
        let schedule = try BackupSchedule(
            BackupSchedule.Configuration(folder: backups, everySeconds: 3600, keep: 2),
            dataFolder: folder.path + "/data", service, log: Log(write: { _ in }))
        let start = 1_764_217_869
        func complete() throws(Status) -> [String] { try DataFolder.names(backups).sorted() }
        for (offset, expected) in [
            (0, [0]), (3599, [0]), (3600, [0, 3600]), (7200, [3600, 7200]), (7201, [3600, 7200]),
        ] {
            let names = expected.map { BackupSchedule.name(start + $0) } + ["mine"]
            // One under way ends before the next one begins.
            let isMade = eventually {
                schedule.tick(seconds: start + offset)
                return (try? complete()) == names
            }
            #expect(isMade, "\(offset)")
        }
    }

    /// Of a clock that was ahead: the newest backup isn't the oldest.
    @Test func aNewBackupStaysBesideThoseOfTheFuture() throws {
        let site = try site()
        defer { site.close() }
        let backups = folder.path + "/backups"
        for name in ["2031-01-01T000000Z", "2031-01-02T000000Z"] {
            try DataFolder.makeFolder("\(backups)/\(name)")
            try DataFolder.write([1], "\(backups)/\(name)/manifest.json")
        }
        let service = BackupService(site.source, log: Log(write: { _ in }))
        defer { service.stop() }
        let schedule = try BackupSchedule(
            BackupSchedule.Configuration(folder: backups, everySeconds: 3600, keep: 2),
            dataFolder: folder.path + "/data", service, log: Log(write: { _ in }))
        let start = 1_764_217_869
        let name = BackupSchedule.name(start + 3600)
        #expect(
            eventually {
                schedule.tick(seconds: start)
                schedule.tick(seconds: start + 3600)
                return (try? DataFolder.names(backups).sorted()) == [name, "2031-01-02T000000Z"]
            })
    }

    @Test func whetherAFolderIsInsideAnotherIsKnownBeforeEitherExists() {
        let base = folder.path
        for (inner, outer) in [("a/b", "a"), ("a", "a"), ("a/../c/./d", "c"), ("a", ""), ("a/\u{301}b", "a")] {
            #expect(BackupSchedule.isInside("\(base)/\(inner)", "\(base)/\(outer)"), "\(inner) in \(outer)")
        }
        for (inner, outer) in [("a", "a/b"), ("ab", "a"), ("a/../b", "a"), ("a", "a\u{301}")] {
            #expect(!BackupSchedule.isInside("\(base)/\(inner)", "\(base)/\(outer)"), "\(inner) in \(outer)")
        }
        #expect(BackupSchedule.isInside("no-such-folder/x", "./no-such-folder/"))
        #expect(BackupSchedule.isInside(base, "/"))
    }

    @Test func aFolderInsideTheDataFolderIsRefused() throws {
        let site = try site()
        defer { site.close() }
        let service = BackupService(site.source, log: Log(write: { _ in }))
        for inner in ["/data", "/data/backups", "/data/a/b", "/data/../data/x"] {
            #expect(throws: Status.self, "\(inner)") {
                try BackupSchedule(
                    BackupSchedule.Configuration(folder: folder.path + inner, everySeconds: 60, keep: 1),
                    dataFolder: folder.path + "/data", service, log: Log())
            }
        }
        #expect(throws: Status.self) {
            try BackupSchedule(
                BackupSchedule.Configuration(folder: folder.path + "/b", everySeconds: 60, keep: 1), dataFolder: nil,
                service, log: Log())
        }
    }
}
