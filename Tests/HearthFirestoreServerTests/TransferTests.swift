import HearthConcurrency
import HearthEngine
import HearthExport
import HearthModel
import HearthTestDoubles
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthDocuments
@testable import HearthFirestoreServer

/// Exports and imports as jobs of the server.
@Suite struct TransferTests {
    private let folder = TemporaryFolder()
    private let reads = LongReads()

    private func database(
        _ name: DatabaseName = DatabaseName(project: "p"), _ store: any Store = MemoryStore(),
        clock: any Clock = SystemClock()
    ) throws -> Database {
        try Database(name: name, store: store, clock: clock)
    }

    private func export(
        _ database: Database, to name: String, _ ids: [String]? = nil, at time: Timestamp? = nil,
        control: TransferControl = TransferControl(), clock: any Clock = SystemClock()
    ) throws(Status) -> ExportJob.Outcome {
        let options = ExportJob.Options(path: folder.path + "/" + name, name: name, collectionIDs: ids, time: time)
        return try ExportJob(database, options, longReads: reads, clock: clock).run(control)
    }

    private func importFolder(
        _ path: String, to database: Database, _ change: (inout ImportJob.Options) -> Void = { _ in },
        control: TransferControl = TransferControl()
    ) throws(Status) -> ImportJob.Outcome {
        var options = ImportJob.Options()
        change(&options)
        return try ImportJob(try ExportFolder(path), to: database, options).run(control)
    }

    private func status(_ body: () throws(Status) -> Void) -> Status? {
        do throws(Status) {
            try body()
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: ["types", "named-database", "blocks", "production-form", "suite", "empty"])
    func whatIsImportedIsExportedAgain(_ name: String) throws {
        let lines = try TransferData.lines(name)
        let database = try database(DatabaseName(project: "other"))
        let outcome = try importFolder(TransferData.folder(name), to: database) { $0.keepsReferences = true }
        #expect(outcome.documentCount == lines.count)
        #expect(try TransferData.documents(database) == lines)
        let control = TransferControl()
        let exported = try export(database, to: "out", control: control)
        #expect(exported.documentCount == lines.count)
        #expect(try TransferData.export(folder.path + "/out") == lines)
        #expect(control.progress.documentCount == lines.count && control.progress.phase == .finalizing)
        #expect(control.progress.estimatedDocumentCount == lines.count && control.progress.readTime != nil)
    }

    @Test func referencesIntoTheSourceBecomeReferencesIntoTheTarget() throws {
        let database = try database(DatabaseName(project: "target", database: "second"))
        _ = try importFolder(TransferData.folder("types"), to: database)
        let source = "projects/demo-export/databases/(default)/documents/"
        let target = "projects/target/databases/second/documents/"
        let lines = try TransferData.lines("types")
        var moved = 0
        for (path, fields) in try TransferData.documents(database) {
            let expected = try FieldsCodec.decode(try #require(lines[path])).fields.map { field in
                guard case .reference(let name) = field.value, name.hasPrefix(source) else { return field }
                moved += 1
                return MapValue.Field(name: field.name, value: .reference(target + name.dropFirst(source.count)))
            }
            let found = try FieldsCodec.decode(fields)
            for field in expected {
                if case .reference = field.value { #expect(found[field.name] == field.value, "\(path)") }
            }
        }
        #expect(moved > 0)
    }

    @Test func collectionGroupsAreChosen() throws {
        let lines = try TransferData.lines("production-form")
        let database = try database()
        let ids = ["users", "nothing"]
        let outcome = try importFolder(TransferData.folder("production-form"), to: database) { $0.collectionIDs = ids }
        func isWanted(_ path: String) -> Bool { path.split(separator: "/").dropLast().last == "users" }
        let users = Set(lines.keys.filter(isWanted))
        #expect(outcome.documentCount == users.count && !users.isEmpty)
        #expect(try Set(TransferData.documents(database).keys) == users)
        _ = try importFolder(TransferData.folder("production-form"), to: database)
        let exported = try export(database, to: "some", ids)
        #expect(exported.documentCount == users.count)
        #expect(try Set(TransferData.export(folder.path + "/some").keys) == users)
        let parts = try ExportFolder(folder.path + "/some").parts
        #expect(parts.map(\.collectionID) == ids && parts.map(\.documentCount) == [users.count, 0])
    }

    @Test func damagedExportsChangeNothing() throws {
        let database = try database()
        let cases = try TransferData.Damage.all()
        for damage in cases {
            let copy = try damage.make(in: folder)
            let failure = status { () throws(Status) in _ = try importFolder(copy, to: database) }
            #expect(failure.map { $0.code == .invalidArgument || $0.code == .notFound } == true, "\(damage.name)")
            #expect(failure?.message.contains("copy") == true, "\(damage.name): \(failure?.message ?? "")")
        }
        #expect(cases.count == 14)
        #expect(try database.view().version == 0)
    }

    @Test func withoutTheFirstReadingItIsSaidHowManyDocumentsAreIn() throws {
        let database = try database()
        let damage = try #require(try TransferData.Damage.all().first { $0.name == "flipped data" })
        let copy = try damage.make(in: folder)
        let failure = status { () throws(Status) in
            _ = try importFolder(copy, to: database) { $0.verifies = false }
        }
        let count = try TransferData.documents(database).count
        #expect(failure?.message.hasSuffix("\(count) documents are in; the import may be repeated.") == true)
    }

    // MARK: Moments

    /// A document that is changed, one that is deleted and one that is new while the export is under way.
    @Test func anExportIsOfOneMoment() async throws {
        let clock = StoppedClock()
        let database = try database(clock: clock)
        for number in 0..<300 { try await database.put("c/\(number)", ["n": .integer(1)]) }
        try await database.put("c/1/d/below", ["n": .integer(1)])
        clock.advance(seconds: 10)
        let before = try TransferData.documents(database)
        let time = try database.view().readTime
        clock.advance(seconds: 1)
        for number in 0..<300 {
            let path = ResourceName(database: database.name, path: ResourcePath(["c", "\(number)"]))
            switch number % 3 {
            case 0: try await database.put("c/\(number)", ["n": .integer(2)])
            case 1: try await database.commit([Write(document: path, operation: .delete)])
            default: try await database.put("b/\(number)", ["n": .integer(2)])
            }
        }
        _ = try export(database, to: "past", at: time, clock: clock)
        #expect(try TransferData.export(folder.path + "/past") == before)
        _ = try export(database, to: "present", clock: clock)
        #expect(try TransferData.export(folder.path + "/present") == TransferData.documents(database))
        clock.advance(seconds: 7200)
        #expect(
            status { () throws(Status) in _ = try export(database, to: "old", at: time, clock: clock) }?.code
                == .failedPrecondition)
    }

    /// Documents of which a step of an export reads fewer than all.
    private func manyBytes(_ database: Database) async throws {
        let string = String(repeating: "x", count: 900_000)
        for number in 0..<20 { try await database.put("c/\(number)", ["s": .string(string)]) }
    }

    /// Nobody would know of which moment the rest is.
    @Test func anExportOfADatabaseThatIsClearedMeanwhileFails() async throws {
        let store = HookedStore()
        let database = try database(DatabaseName(project: "p"), store)
        try await manyBytes(database)
        store.beforeLongSnapshots { [weak database] number in
            if number != 2 { return }
            let cleared = Promise<Void>()
            database?.clear { _ in cleared.give(()) }
            cleared.wait()
        }
        let failure = status { () throws(Status) in _ = try export(database, to: "out") }
        #expect(failure?.code == .aborted)
        #expect(try TransferData.names(folder.path).isEmpty)
    }

    /// What an old moment needs is kept by the snapshot that is held; that of a recent one is not held.
    @Test(arguments: [(seconds: 1700, isHeld: false), (1900, true)])
    func theSnapshotOfAnOldMomentIsHeld(_ age: (seconds: Int, isHeld: Bool)) async throws {
        let (store, clock) = (HookedStore(), StoppedClock())
        let database = try database(DatabaseName(project: "p"), store, clock: clock)
        try await manyBytes(database)
        let time = try database.view().readTime
        clock.advance(seconds: Double(age.seconds))
        #expect(try export(database, to: "out", at: time, clock: clock).documentCount == 20)
        #expect((store.longSnapshots.load(ordering: .relaxed) == 1) == age.isHeld)
    }

    // MARK: Ends

    @Test func nothingIsLeftOfAnExportThatFails() async throws {
        let database = try database()
        try await database.put("c/d", ["n": .integer(1)])
        let control = TransferControl()
        control.cancel()
        let failure = status { () throws(Status) in _ = try export(database, to: "out", control: control) }
        #expect(failure?.code == .cancelled)
        #expect(try TransferData.names(folder.path) == [])
        folder.write("taken", "x")
        #expect(status { () throws(Status) in _ = try export(database, to: "taken") }?.code == .alreadyExists)
        #expect(status { () throws(Status) in _ = try export(database, to: "no/folder") }?.code == .notFound)
        #expect(try TransferData.names(folder.path) == ["taken"])
    }

    @Test func foldersThatWereMadeForAnExportThatFailsAreRemoved() async throws {
        let database = try database()
        try await database.put("c/d", ["n": .integer(1)])
        try Folders.create(folder.path + "/a")
        var options = ExportJob.Options(path: folder.path + "/a/b/c/out", name: "out")
        options.makesParents = true
        let job = ExportJob(database, options, longReads: reads)
        let control = TransferControl()
        control.cancel()
        #expect(status { () throws(Status) in _ = try job.run(control) }?.code == .cancelled)
        #expect(try TransferData.names(folder.path) == ["a"])
        #expect(try job.run(TransferControl()).documentCount == 1)
        #expect(Folders.exists(options.path))
    }

    @Test func aFolderThatIsBeingFilledIsNotFilledTwiceNorRemoved() async throws {
        let database = try database()
        try await database.put("c/d", ["n": .integer(1)])
        let partial = folder.path + "/.partial-out"
        try Folders.create(partial)
        var lock = FolderLock(partial)
        #expect(status { () throws(Status) in _ = try export(database, to: "out") }?.code == .alreadyExists)
        #expect(Folders.removeAbandoned(in: folder.path).isEmpty)
        #expect(lock != nil)
        lock = nil
        #expect(Folders.removeAbandoned(in: folder.path) == [partial])
        _ = try export(database, to: "out")
        // An export's own folders are not looked into.
        try Folders.create(folder.path + "/out/.partial-x")
        #expect(Folders.removeAbandoned(in: folder.path).isEmpty)
    }

    @Test func aCancelledImportLeavesWhatIsIn() async throws {
        let source = try database()
        for first in stride(from: 0, to: 1000, by: 250) {
            try await source.commit(
                (first..<first + 250).map { number in
                    Write(
                        document: ResourceName(database: source.name, path: ResourcePath(["c", "\(number)"])),
                        operation: .update(fields: MapValue(), mask: nil))
                })
        }
        _ = try export(source, to: "out")
        let store = FaultyStore()
        let database = try database(DatabaseName(project: "q"), store)
        let control = TransferControl()
        store.hold()
        let ended = Promise<Status?>()
        let thread = testThread { [self] in
            ended.give(
                status { () throws(Status) in
                    _ = try importFolder(folder.path + "/out", to: database, control: control)
                })
        }
        store.waitForWriter()
        control.cancel()
        store.release()
        let failure = ended.wait()
        thread.join()
        let count = try TransferData.documents(database).count
        #expect(failure?.code == .cancelled && count < 1000)
        #expect(failure?.message.contains(" \(count) documents are in") == true)
        #expect(control.progress.documentCount == count)
    }

    /// Also while nothing that it reads is wanted.
    @Test func aCancelledImportOfFewDocumentsEnds() async throws {
        let control = TransferControl()
        control.cancel()
        let database = try database()
        let failure = status { () throws(Status) in
            _ = try importFolder(
                TransferData.folder("types"), to: database,
                {
                    $0.collectionIDs = ["absent"]
                    $0.verifies = false
                }, control: control)
        }
        #expect(failure?.code == .cancelled)
    }

    @Test func aDiskThatFailsEndsAnImport() throws {
        let store = FaultyStore()
        let database = try database(DatabaseName(project: "p"), store)
        store.fail(at: 3)
        let failure = status { () throws(Status) in
            _ = try importFolder(TransferData.folder("types"), to: database)
        }
        #expect(failure?.code == .unavailable && failure?.message.contains("0 documents are in") == true)
        store.fail(at: nil)
        #expect(try importFolder(TransferData.folder("types"), to: database).documentCount == 60)
    }

    @Test(arguments: [Status.resourceExhausted("Too much is written."), .aborted("Another one was first.")])
    func commitsThatFailForAMomentAreRepeated(_ status: Status) throws {
        let store = FaultyStore()
        let database = try database(DatabaseName(project: "demo-export"), store)
        store.fail(at: 3, with: status)
        let control = TransferControl()
        let outcome = try importFolder(TransferData.folder("types"), to: database, control: control)
        #expect(outcome.documentCount == 60 && control.progress.documentCount == 60)
        #expect(store.operations > 60)
        #expect(try TransferData.documents(database) == TransferData.lines("types"))
    }

    /// The later of two documents of one name wins, even when the commit of the first must be repeated.
    @Test func documentsOfOneNameKeepTheirOrder() async throws {
        let writer = try ExportFolderWriter(
            folder.path + "/twice", name: "twice", database: DatabaseName(project: "p"), startTime: SystemClock().now())
        func write(_ name: String, _ value: Int64) throws {
            let fields = FieldsCodec.encode(MapValue([.init(name: "n", value: .integer(value))]))
            try writer.write(path: "c/\(name)", fields: fields)
        }
        // More than one commit has.
        for number in 0..<250 { try write("\(number)", 1) }
        for number in 0..<250 { try write("\(number)", 2) }
        try writer.finish(endTime: SystemClock().now(), replaces: false)
        let clock = StoppedClock()
        let database = try database(clock: clock)
        try await database.hold(ResourcePath(["c", "100"]))
        let (path, ended) = (folder.path + "/twice", Promise<Result<Int, Status>>())
        let thread = testThread {
            do throws(Status) {
                ended.give(
                    .success(
                        try ImportJob(try ExportFolder(path), to: database, ImportJob.Options())
                            .run(TransferControl()).documentCount))
            } catch {
                ended.give(.failure(error))
            }
        }
        #expect(database.outlastsLocks(clock) { ended.isGiven })
        #expect(try ended.wait().get() == 500)
        thread.join()
        let second = FieldsCodec.encode(MapValue([.init(name: "n", value: .integer(2))]))
        let documents = try TransferData.documents(database)
        #expect(documents.count == 250 && documents.values.allSatisfy { $0 == second })
    }

    /// Commits that are too large together are divided.
    @Test func commitsThatAreTooLargeAreDivided() async throws {
        let source = try database()
        // Each document has 6,000 index entries; 80,000 records are the limit of a commit.
        let elements = (0..<6000).map { Value.integer(Int64($0)) }
        for number in 0..<14 { try await source.put("c/\(number)", ["a": .array(elements)]) }
        _ = try export(source, to: "out")
        let target = try database(DatabaseName(project: "q"))
        #expect(try importFolder(folder.path + "/out", to: target).documentCount == 14)
        #expect(try TransferData.documents(target) == TransferData.documents(source))
        try BulkDelete(target, ["c"]).run(TransferControl())
        #expect(try TransferData.documents(target).isEmpty)
    }

    @Test func triggersGetNoEventsWhenThatIsWanted() throws {
        for makesEvents in [true, false] {
            let database = try database()
            let recorder = CountingRecorder()
            database.setRecorder(recorder)
            _ = try importFolder(TransferData.folder("suite"), to: database) { $0.makesEvents = makesEvents }
            let count = try TransferData.documents(database).count
            #expect(recorder.count == (makesEvents ? count : 0) && count > 0)
        }
    }

    @Test func fewRunAtATime() throws {
        let service = TransferService(longReads: reads)
        let controls = (0..<Limits.transfersMax).map { _ in TransferControl() }
        for control in controls { try service.enter(control) }
        let more = TransferControl()
        #expect(status { () throws(Status) in try service.enter(more) }?.code == .resourceExhausted)
        service.leave(controls[0])
        try service.enter(more)
        let stopped = Promise<Bool>()
        let thread = testThread {
            service.stop()
            stopped.give(true)
        }
        #expect(eventually { more.isCancelled })
        #expect(!stopped.isGiven)
        for control in controls + [more] { service.leave(control) }
        #expect(stopped.wait())
        thread.join()
        #expect(status { () throws(Status) in try service.enter(TransferControl()) }?.code == .unavailable)
    }

    /// Who gets the end of one may begin another.
    @Test func theEndOfOneIsTheChanceOfAnother() throws {
        let service = TransferService(longReads: reads)
        let controls = (0..<Limits.transfersMax).map { _ in TransferControl() }
        for control in controls { try service.enter(control) }
        let next = Promise<Status.Code?>()
        service.run(controls[0], { () throws(Status) in }) { _ in
            next.give(status { () throws(Status) in try service.enter(TransferControl()) }?.code)
        }
        #expect(next.wait() == nil)
    }
}
