import Foundation
import HearthModel
import HearthCache
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthSync

@Suite("The cache's file: opening, locking, migrating, damage")
struct CacheFileTests {
    private func write(_ cache: SQLitePersistence, _ key: String, user: ClientUser = .unauthenticated) throws {
        try cache.transaction("write") { () throws(Status) in
            _ = try cache.mutationQueue(for: user).add(
                localWriteTime: .seconds(1), base: [], mutations: [.set(key, ["string": .string(key)])])
        }
    }

    private func batches(_ cache: SQLitePersistence, _ user: ClientUser = .unauthenticated) throws -> [MutationBatch] {
        try cache.transaction("read") { () throws(Status) in try cache.mutationQueue(for: user).allBatches }
    }

    @Test("A batch that cannot be read loses only its own writes")
    func unreadableBatch() throws {
        let driver = try SpecDriver(cache: .durable, isEager: false, limboResolutionsMax: 1)
        defer { driver.shutDown() }
        try driver.engine { engine throws(Status) in engine.remoteStore.disableNetwork() }
        for key in ["c/a", "c/b", "c/c"] { try driver.write(.set(key, ["string": .string(key)])) }
        try driver.engine { engine throws(Status) in
            guard let cache = engine.localStore.persistence as? SQLitePersistence else {
                throw .internalError("memory")
            }
            try cache.database.run("UPDATE mutations SET writes = x'0A05FFFF' WHERE batch_id = 2")
            try cache.database.run(
                "UPDATE overlays SET mutation = x'FF' WHERE largest_batch_id = 2")
        }
        try driver.restart()
        try driver.engine { engine throws(Status) in engine.remoteStore.enableNetwork() }
        let query = ClientQuery.collection("c")
        _ = try driver.listen(query, source: .cache)
        for version in [10, 11] {
            let count = try driver.backend.takeWrite().writes.count
            try driver.backend.answerWrite(
                WriteResponse(
                    streamToken: [1],
                    writeResults: Array(
                        repeating: WriteResultMessage(updateTime: TimestampMessage(.seconds(Int64(version)))),
                        count: count),
                    commitTime: TimestampMessage(.seconds(Int64(version)))))
            driver.core.queue.drain()
        }
        #expect(driver.backend.sentWrites.isEmpty)
        try driver.engine { engine throws(Status) in
            #expect(try engine.localStore.highestUnacknowledgedBatchID() == MutationBatch.unknownID)
            let (documents, _) = try engine.localStore.execute(query, usesPreviousResults: false)
            #expect(documents.map(\.key.string).sorted() == ["c/a", "c/c"])
        }
    }

    @Test("All data is stored after closing and opening")
    func reopening() throws {
        let folder = TemporaryFolder()
        let first = try folder.open()
        try write(first, "a/1")
        try write(first, "a/2")
        try first.transaction("add") { () throws(Status) in
            try first.remoteDocuments.add(.found("a/3", 4, ["x": .integer(1)]), readTime: .seconds(5))
            try first.targets.add(
                TargetData(target: ClientQuery.collection("a").target, targetID: 6, sequenceNumber: 40))
            try first.targets.addKeys([ResourcePath("a/3")], to: 6)
            try first.targets.setLastRemoteSnapshotVersion(.seconds(77))
            let queue = first.mutationQueue(for: .unauthenticated)
            guard let batch = try queue.batch(1) else { throw .internalError("no batch") }
            try queue.remove(batch)
            try first.indexManager(for: .unauthenticated).add(FieldIndex("a", ("x", .descending), ("t", .contains)))
        }
        let number = first.currentSequenceNumber
        first.shutDown()
        let again = try folder.open()
        #expect(again.damage == nil)
        #expect(try batches(again).map(\.id) == [2])
        #expect(again.targets.highestTargetID == 6 && again.targets.count == 1)
        #expect(again.targets.lastRemoteSnapshotVersion == .seconds(77))
        #expect(again.currentSequenceNumber >= max(40, number), "numbers continue")
        try again.transaction("read") { () throws(Status) in
            #expect(try again.remoteDocuments.document(ResourcePath("a/3")) == .found("a/3", 4, ["x": .integer(1)]))
            #expect(try again.targets.keys(of: 6) == [ResourcePath("a/3")])
            let indexes = try again.indexManager(for: .unauthenticated).indexes
            #expect(indexes.map(\.segments) == [FieldIndex("a", ("x", .descending), ("t", .contains)).segments])
            // Ids continue, also after deleted batches.
            let queue = again.mutationQueue(for: .unauthenticated)
            guard let batch = try queue.batch(2) else { throw .internalError("no batch") }
            try queue.remove(batch)
        }
        again.shutDown()
        let third = try folder.open()
        try write(third, "a/9")
        #expect(try batches(third).map(\.id) == [3])
    }

    @Test("A failed transaction leaves no changes, in the file or in memory")
    func rollback() throws {
        let folder = TemporaryFolder()
        let cache = try folder.open()
        let failure = Status.aborted("on purpose")
        let caught = status {
            try cache.transaction("fails") { () throws(Status) in
                _ = try cache.mutationQueue(for: ClientUser(uid: "u")).add(
                    localWriteTime: .none, base: [], mutations: [.set("new/1")])
                try cache.targets.add(
                    TargetData(target: ClientQuery.collection("a").target, targetID: 2, sequenceNumber: 1))
                try cache.remoteDocuments.add(.found("new/2"), readTime: .seconds(1))
                try cache.indexManager(for: .unauthenticated).add(FieldIndex("a", ("x", .ascending)))
                throw failure
            }
        }
        #expect(caught == failure)
        #expect(cache.targets.count == 0 && cache.targets.highestTargetID == 0)
        try cache.transaction("read") { () throws(Status) in
            #expect(try cache.mutationQueue(for: ClientUser(uid: "u")).isEmpty)
            #expect(try !cache.remoteDocuments.document(ResourcePath("new/2")).isValid)
            #expect(try cache.indexManager(for: .unauthenticated).indexes.isEmpty)
            #expect(try cache.indexManager(for: .unauthenticated).parents(ofCollectionID: "new").isEmpty)
            // The numbers that the failed transaction assigned to names are not used.
            try cache.remoteDocuments.add(.found("new/3"), readTime: .seconds(1))
            try cache.remoteDocuments.add(.found("other/4"), readTime: .seconds(1))
            let found = try cache.remoteDocuments.documents(
                matching: .collection("new"), after: .none, mutated: [], onRead: { _ in })
            #expect(found.map(\.key.string) == ["new/3"])
        }
    }

    @Test("One client at a time; the error names the file")
    func lock() throws {
        let folder = TemporaryFolder()
        let cache = try folder.open()
        let refused = try #require(status { _ = try folder.open() })
        #expect(refused.code == .failedPrecondition)
        #expect(refused.message.contains(folder.files().database) && refused.message.contains("in use"))
        #expect(code { try folder.files().clear() } == .failedPrecondition)
        try write(cache, "a/1")
        #expect(code { _ = try SQLitePersistence(files: folder.files("other"), sizeBytes: -1) } == nil)
        cache.shutDown()
        #expect(code { try write(cache, "a/2") } == .failedPrecondition)
        try folder.files().clear()
        let empty = try folder.open()
        #expect(try batches(empty).isEmpty)
    }

    @Test("Another process cannot open it either")
    func lockOfProcess() throws {
        let folder = TemporaryFolder()
        let cache = try folder.open()
        try write(cache, "a/1")
        let other = Process()
        other.executableURL = URL(filePath: "/usr/bin/env")
        other.arguments = ["flock", "--nonblock", folder.files().lock, "true"]
        try other.run()
        other.waitUntilExit()
        #expect(other.terminationStatus == 1, "the lock was free")
        cache.shutDown()
        let free = Process()
        free.executableURL = URL(filePath: "/usr/bin/env")
        free.arguments = ["flock", "--nonblock", folder.files().lock, "true"]
        try free.run()
        free.waitUntilExit()
        #expect(free.terminationStatus == 0)
    }

    @Test("Different names have different files")
    func names() throws {
        let folder = TemporaryFolder()
        let long = String(repeating: "ä", count: 300)
        let names = [
            "", ".", "..", "a/b", "A", "a", "é", "e\u{301}", "%", "x\u{0}y", long, long + "b", "[DEFAULT]", " ",
        ]
        var paths: Set<String> = []
        for app in names {
            for project in ["p", "P", "../p"] {
                let files = CacheFiles(
                    folder: folder.path, appName: app, database: DatabaseName(project: project, database: app))
                #expect(paths.insert(files.database).inserted, "\(app) \(project)")
                #expect(files.database.hasPrefix(folder.path) && !files.database.contains("/../"))
                let cache = try SQLitePersistence(files: files, sizeBytes: -1)
                try write(cache, "a/1")
                cache.shutDown()
            }
        }
        #expect(paths.count == names.count * 3)
    }

    @Test("A process that was forked a moment ago does not keep the lock")
    func forked() throws {
        let folder = TemporaryFolder()
        let cache = try folder.open()
        // What such a process has: the same open file.
        let files = FileManager.default
        let path = folder.files().lock
        let copies = try files.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { Int32($0) }
            .filter { (try? files.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path }.map { dup($0) }
        defer { for copy in copies { close(copy) } }
        #expect(!copies.isEmpty)
        cache.shutDown()
        try folder.open().shutDown()
    }

    // MARK: Versions

    @Test("An older file is migrated, all steps or none")
    func migration() throws {
        let folder = TemporaryFolder()
        let old = try folder.open()
        try write(old, "a/1")
        old.shutDown()
        var next = CacheSchema.current
        let version = next.version
        next.steps.append(
            CacheSchema.Step(number: version + 1, string: "ALTER TABLE mutations ADD COLUMN note TEXT DEFAULT 'new'"))
        next.steps.append(
            CacheSchema.Step(
                number: version + 2,
                string: "CREATE TABLE later (id INTEGER); INSERT INTO later SELECT batch_id FROM mutations"))
        var broken = next
        broken.steps.append(CacheSchema.Step(number: version + 3, string: "INSERT INTO nowhere VALUES (1)"))
        let failure = status { _ = try SQLitePersistence(files: folder.files(), sizeBytes: -1, schema: broken) }
        #expect(failure?.code == .internal)
        let unchanged = try folder.open()
        #expect(try unchanged.database.number("PRAGMA user_version") == version)
        #expect(try batches(unchanged).count == 1)
        unchanged.shutDown()
        let new = try SQLitePersistence(files: folder.files(), sizeBytes: -1, schema: next)
        #expect(try new.database.number("PRAGMA user_version") == version + 2)
        #expect(try new.database.strings("SELECT note FROM mutations") == ["new"])
        #expect(try new.database.number("SELECT count(*) FROM later") == 1)
        #expect(try batches(new).count == 1)
        new.shutDown()
        // It is now too new for the older program, which does not change it.
        let refused = try #require(status { _ = try folder.open() })
        #expect(refused.code == .failedPrecondition && refused.message.contains("newer"))
        let again = try SQLitePersistence(files: folder.files(), sizeBytes: -1, schema: next)
        #expect(again.damage == nil)
        #expect(try batches(again).count == 1)
    }

    @Test("The files of all released versions are read", arguments: CacheSchema.current.steps.map(\.number))
    func releasedVersions(_ version: Int) throws {
        let dump = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Vectors/client-cache/firestore-1.sql")
        let folder = TemporaryFolder()
        let files = CacheFiles(folder: folder.path, appName: "notes", database: DatabaseName(project: "demo-hearth"))
        try FileManager.default.createDirectory(atPath: files.folder, withIntermediateDirectories: true)
        let old = try CacheDatabase(path: files.database)
        try old.execute(try String(contentsOf: dump, encoding: .utf8))
        for step in CacheSchema.current.steps where (2...max(2, version)).contains(step.number) && version > 1 {
            try old.execute(step.string + "PRAGMA user_version = \(step.number)")
        }
        #expect(try old.number("PRAGMA user_version") == version)
        old.close()
        for _ in 1...2 {
            let cache = try SQLitePersistence(files: files, sizeBytes: -1)
            #expect(cache.damage == nil)
            let store = LocalStore(cache, user: ClientUser(uid: "me"))
            #expect(try store.stream().id.isEmpty && store.pendingBatchCount() == 1)
            let query = ClientQuery.collection("users/me/notes", orders: [("changed", true)])
            // In any order.
            let notes = try store.execute(query, usesPreviousResults: true).documents
            func texts(_ notes: [ClientDocument]) -> [String] {
                notes.compactMap { if case .string(let text)? = $0.fields["text"] { text } else { nil } }.sorted()
            }
            #expect(texts(notes) == ["a #work ä", "milk #home", "offline #home"])
            #expect(texts(notes.filter(\.hasLocalMutations)) == ["offline #home"])
            #expect(try !#require(try store.targetData(query.target)).resumeToken.isEmpty)
            cache.shutDown()
        }
    }

    @Test("A database of another program is not changed")
    func foreign() throws {
        let folder = TemporaryFolder()
        let path = folder.files().database
        try FileManager.default.createDirectory(atPath: folder.files().folder, withIntermediateDirectories: true)
        let other = try CacheDatabase(path: path)
        try other.execute("CREATE TABLE theirs (x)")
        other.close()
        let before = FileManager.default.contents(atPath: path)
        let refused = try #require(status { _ = try folder.open() })
        #expect(refused.code == .failedPrecondition && refused.message.contains(path))
        #expect(FileManager.default.contents(atPath: path) == before)
    }

    // MARK: Damage

    private func asideFiles(_ folder: TemporaryFolder) throws -> [String] {
        // The journal is moved with the database.
        try FileManager.default.contentsOfDirectory(atPath: folder.files().folder)
            .filter { $0.contains(".damaged-") && !$0.hasSuffix(".writes") }
    }

    @Test("A file that is not a database is moved aside, and a new cache is created")
    func notADatabase() throws {
        let folder = TemporaryFolder()
        try FileManager.default.createDirectory(atPath: folder.files().folder, withIntermediateDirectories: true)
        let garbage = Data((0..<9000).map { UInt8(truncatingIfNeeded: $0 &* 7 + 3) })
        try garbage.write(to: URL(filePath: folder.files().database))
        let cache = try folder.open()
        let damage = try #require(cache.damage)
        #expect(damage.pendingWritesRead == 0 && !damage.isCountComplete)
        #expect(FileManager.default.contents(atPath: damage.movedTo) == garbage)
        #expect(damage.message.contains(damage.movedTo) && damage.message.contains("at least 0"))
        try write(cache, "a/1")
        cache.shutDown()
        let again = try folder.open()
        #expect(again.damage == nil)
        #expect(try batches(again).count == 1)
        again.shutDown()
        try folder.files().clear()
        #expect(try asideFiles(folder).isEmpty, "the moved file contains data, too")
    }

    /// A cache with 40 pending writes and 400 documents, closed cleanly.
    private func filledFolder() throws -> TemporaryFolder {
        let folder = TemporaryFolder()
        let cache = try folder.open()
        for number in 1...20 {
            try cache.transaction("write") { () throws(Status) in
                _ = try cache.mutationQueue(for: .unauthenticated).add(
                    localWriteTime: .seconds(1), base: [], mutations: [.set("w/\(number)"), .set("w/\(number + 100)")])
            }
        }
        try cache.transaction("documents") { () throws(Status) in
            for number in 1...400 {
                try cache.remoteDocuments.add(
                    .found("d/\(number)", 1, ["string": .string(String(repeating: "x", count: 500))]),
                    readTime: .seconds(1))
            }
        }
        cache.shutDown()
        return folder
    }

    /// Overwrites the root page of an index with invalid bytes.
    private func spoil(_ folder: TemporaryFolder) throws {
        let path = folder.files().database
        let database = try CacheDatabase(path: path)
        let root = try database.number("SELECT rootpage FROM sqlite_schema WHERE name = 'documents_by_group'")
        database.close()
        let file = try FileHandle(forUpdating: URL(filePath: path))
        try file.seek(toOffset: UInt64((root - 1) * CacheSchema.pageSizeBytes))
        try file.write(contentsOf: Data(repeating: 0xA5, count: CacheSchema.pageSizeBytes))
        try file.close()
    }

    @Test("Damaged pages: found at opening, with the count of the writes that can be read")
    func damagedPages() throws {
        let folder = try filledFolder()
        try spoil(folder)
        let cache = try folder.open()
        let damage = try #require(cache.damage)
        #expect(damage.pendingWritesRead == 40 && damage.isCountComplete)
        #expect(damage.message.contains(": 40."))
        #expect(try batches(cache).isEmpty)
        try write(cache, "a/1")
        #expect(try asideFiles(folder).count == 1)
    }

    @Test("Damage in the writes themselves: the readable ones are counted")
    func damagedWrites() throws {
        let folder = try filledFolder()
        let database = try CacheDatabase(path: folder.files().database)
        // A message that ends inside its first field.
        try database.execute("UPDATE mutations SET writes = x'0A7F00' WHERE batch_id = 11")
        database.close()
        try spoil(folder)
        let damage = try #require(try folder.open().damage)
        #expect(damage.pendingWritesRead == 38 && !damage.isCountComplete)
        #expect(damage.message.contains("at least 38"))
    }

    @Test(
        "Numbers that are counted on from: DATA_LOSS, and the next opening moves the file aside",
        arguments: [
            "highest_target_id = 2147483647", "highest_sequence_number = 9223372036854775807",
            "highest_batch_id = 9223372036854775807", "journal_number = 9223372036854775807",
            "target_count = -9223372036854775808",
        ])
    func damagedNumbers(_ change: String) throws {
        let folder = try filledFolder()
        let database = try CacheDatabase(path: folder.files().database)
        try database.execute("UPDATE globals SET \(change)")
        database.close()
        #expect(code { _ = try folder.open() } == .dataLoss)
        let cache = try folder.open()
        #expect(cache.damage != nil)
        try write(cache, "a/1")
        #expect(try asideFiles(folder).count == 1)
    }

    @Test("Damage found in use is DATA_LOSS, and the next opening moves the file aside")
    func damageInUse() throws {
        let folder = try filledFolder()
        let first = try folder.open()
        #expect(first.damage == nil)
        try first.database.execute("UPDATE documents SET fields = x'FFFFFF' WHERE kind = 1 AND id % 100 = 0")
        let failure = status {
            _ = try first.transaction("read") { () throws(Status) in
                try first.remoteDocuments.documents(
                    matching: .collection("d"), after: .none, mutated: [], onRead: { _ in })
            }
        }
        #expect(failure?.code == .dataLoss)
        #expect(failure?.message.contains(folder.files().database) == true)
        first.shutDown()
        let second = try folder.open()
        #expect(second.damage?.pendingWritesRead == 40 && second.damage?.isCountComplete == true)
        #expect(try batches(second).isEmpty)
        second.shutDown()
        #expect(try folder.open().damage == nil)
    }

    @Test("An unclean shutdown does no harm")
    func killed() throws {
        let folder = try filledFolder()
        do {
            // Without `shutDown`.
            let cache = try folder.open()
            try write(cache, "a/1")
        }
        let again = try folder.open()
        #expect(again.damage == nil)
        #expect(try batches(again).count == 21)
    }

    // MARK: Full disk

    @Test("A full disk is RESOURCE_EXHAUSTED, and the cache is unchanged")
    func fullDisk() throws {
        let folder = TemporaryFolder()
        let cache = try folder.open()
        try write(cache, "a/1")
        let pages = try cache.database.number("PRAGMA page_count")
        _ = try cache.database.number("PRAGMA max_page_count = \(pages + 5)")
        let big = Value.string(String(repeating: "x", count: 100_000))
        let failure = status {
            try cache.transaction("big") { () throws(Status) in
                _ = try cache.mutationQueue(for: ClientUser(uid: "new")).add(
                    localWriteTime: .none, base: [], mutations: [.set("n/1")])
                try cache.remoteDocuments.add(.found("n/2", 1, ["big": big]), readTime: .seconds(1))
            }
        }
        #expect(failure?.code == .resourceExhausted)
        try write(cache, "a/2")
        #expect(try batches(cache).map(\.id) == [1, 2])
        #expect(try batches(cache, ClientUser(uid: "new")).isEmpty)
        _ = try cache.database.number("PRAGMA max_page_count = 1000000")
        try cache.transaction("big") { () throws(Status) in
            try cache.remoteDocuments.add(.found("n/2", 1, ["big": big]), readTime: .seconds(1))
        }
        #expect(try cache.database.strings("PRAGMA integrity_check") == ["ok"])
        cache.shutDown()
        #expect(try batches(folder.open()).count == 2)
    }
}
