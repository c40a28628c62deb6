import Foundation
import HearthDatabase
import HearthFirestore
import HearthTestSupport
import Testing

/// A call without `async` has its effect when it returns: for everything that is called after it. The tables name the
/// calls; each test makes calls right behind one of them, many times, while the client's queue has other work.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct EffectTests {
    private static let rounds = 20

    /// An app with both products on the disk, whose name is used again after its deletion.
    private final class Program {
        let name = "effects-\(UUID().uuidString)"
        let folder = TemporaryFolder()
        let queue = DispatchQueue(label: "effects")
        private let backend: Backend

        init(_ backend: Backend) {
            self.backend = backend
            configure()
        }

        /// Ends the program if the name is in use.
        func configure() { FirebaseApp.configure(name: name, options: FirebaseOptions(projectID: Backend.project)) }

        var app: FirebaseApp { FirebaseApp.app(name: name)! }

        /// The present instance, also when it is new. The program would end if it were one that was terminated.
        var db: Firestore {
            let db = Firestore.firestore(app: app)
            let settings = FirestoreSettings()
            settings.host = "127.0.0.1:\(backend.network.port)"
            settings.isSSLEnabled = false
            settings.dispatchQueue = queue
            settings.cacheSettings = PersistentCacheSettings(
                sizeBytes: NSNumber(value: FirestoreCacheSizeUnlimited), directory: URL(fileURLWithPath: folder.path))
            db.settings = settings
            return db
        }

        /// The same for the Realtime Database. Settings may be assigned only to a new instance.
        func newDatabase() -> Database {
            let database = Database.database(app: app, url: "http://127.0.0.1:\(backend.network.port)?ns=shop")
            database.isPersistenceEnabled = true
            database.persistenceDirectory = URL(fileURLWithPath: folder.path)
            database.callbackQueue = queue
            return database
        }

        var database: Database {
            Database.database(app: app, url: "http://127.0.0.1:\(backend.network.port)?ns=shop")
        }

        /// Work for the queue of the engine.
        func occupy(_ round: Int) {
            for number in 0..<30 { db.document("busy/\(round)-\(number)").setData(["n": number], completion: nil) }
        }
    }

    /// What is done right behind calls, and what they have to find.
    private typealias Row = (calls: String, check: @Sendable (Program, _ round: Int) async throws -> Void)

    private static let firestoreRows: [Row] = [
        ("terminate; a new instance reads what the one before has written", terminateAndRead),
        ("terminate; clearPersistence; a new instance has an empty cache", terminateAndClear),
        ("terminate twice; both complete after the end", terminateTwice),
        ("disableNetwork; a read of the server fails", networkSwitches),
        ("setData; waitForPendingWrites; the server has it", writeAndWait),
        ("delete; configure; the name is free, and the cache is the one before", deleteAndConfigure),
    ]

    @Test(arguments: Self.firestoreRows.indices) func firestore(_ row: Int) async throws {
        let program = Program(try Backend())
        for round in 0..<Self.rounds {
            try await Self.firestoreRows[row].check(program, round)
        }
        await program.app.delete()
    }

    private static let databaseRows: [Row] = [
        ("delete; configure; the new database has the writes of the one before", deleteAndConfigureDatabase),
        ("goOffline; a write waits. goOnline; it is sent. purgeOutstandingWrites; it is gone", connectionSwitches),
        ("removeAllObservers; no event follows", removeObservers),
    ]

    @Test(arguments: Self.databaseRows.indices) func database(_ row: Int) async throws {
        let program = Program(try Backend())
        for round in 0..<Self.rounds {
            try await Self.databaseRows[row].check(program, round)
        }
        await program.app.delete()
    }

    // MARK: The checks

    private static func terminateAndRead(_ program: Program, _ round: Int) async throws {
        let first = program.db
        first.document("c/\(round)").setData(["n": round], completion: nil)
        program.occupy(round)
        first.terminate(completion: nil)
        let second = program.db
        #expect(second !== first)
        #expect(try await second.document("c/\(round)").getDocument(source: .cache).get("n") as? Int == round)
    }

    private static func terminateAndClear(_ program: Program, _ round: Int) async throws {
        let first = program.db
        plainly { first.disableNetwork() }
        program.occupy(round)
        let errors = Recorder<String>()
        plainly { first.terminate(completion: nil) }
        plainly { first.clearPersistence { errors.append("\($0.map { "\($0)" } ?? "none")") } }
        #expect(try await program.db.collection("busy").getDocuments(source: .cache).isEmpty)
        #expect(try await errors.first(1) == ["none"])
    }

    private static func terminateTwice(_ program: Program, _ round: Int) async throws {
        program.occupy(round)
        let first = program.db
        let ends = Recorder<Int>()
        plainly { first.terminate { _ in ends.append(1) } }
        plainly { first.terminate { _ in ends.append(2) } }
        #expect(try await Set(ends.first(2)) == [1, 2])
    }

    private static func networkSwitches(_ program: Program, _: Int) async throws {
        let db = program.db
        plainly { db.disableNetwork() }
        await #expect(throws: (any Error).self) {
            try await db.document("c/none").getDocument(source: .server)
        }
        plainly { db.enableNetwork() }
        #expect(try await db.document("c/none").getDocument(source: .server).exists == false)
    }

    private static func writeAndWait(_ program: Program, _ round: Int) async throws {
        let db = program.db
        plainly { db.document("w/\(round)").setData(["n": 1]) { _ in } }
        try await db.waitForPendingWrites()
        let written = try await db.document("w/\(round)").getDocument(source: .server)
        #expect(written.exists && !written.metadata.hasPendingWrites)
    }

    private static func deleteAndConfigure(_ program: Program, _ round: Int) async throws {
        let (app, first) = (program.app, program.db)
        plainly { first.document("d/\(round)").setData(["n": round], completion: nil) }
        program.occupy(round)
        plainly { app.delete { _ in } }
        #expect(FirebaseApp.app(name: program.name) == nil)
        program.configure()
        let second = program.db
        #expect(program.app != app && second !== first)
        #expect(try await second.document("d/\(round)").getDocument(source: .cache).get("n") as? Int == round)
    }

    private static func deleteAndConfigureDatabase(_ program: Program, _ round: Int) async throws {
        let (app, first) = (program.app, program.newDatabase())
        first.goOffline()
        for number in 0..<30 { plainly { first.reference(withPath: "busy/\(number)").setValue(number) } }
        plainly { first.reference(withPath: "a/\(round)").setValue(round) }
        plainly { app.delete { _ in } }
        #expect(FirebaseApp.app(name: program.name) == nil)
        program.configure()
        let second = program.newDatabase()
        #expect(second !== first)
        second.goOffline()
        let events = second.reference(withPath: "a/\(round)").record(.value)
        #expect(try await events.recorder.first(1) == ["\(round): \(round)"])
        events.stop()
        await program.app.delete()
        program.configure()
    }

    private static func connectionSwitches(_ program: Program, _ round: Int) async throws {
        let database = round == 0 ? program.newDatabase() : program.database
        let reference = database.reference(withPath: "b/\(round)")
        database.goOffline()
        let state = database.reference(withPath: ".info/connected").record(.value)
        let connected = try await state.recorder.first(1)
        #expect(connected == ["connected: false"])
        state.stop()
        let answers = Recorder<String>()
        plainly { reference.setValue(1) { error, _ in answers.append("\((error as NSError?)?.code ?? 0)") } }
        database.purgeOutstandingWrites()
        #expect(try await answers.first(1) == ["3"])
        plainly { reference.setValue(2) { error, _ in answers.append("\((error as NSError?)?.code ?? 0)") } }
        database.goOnline()
        #expect(try await answers.first(2) == ["3", "0"])
    }

    private static func removeObservers(_ program: Program, _ round: Int) async throws {
        let database = round == 0 ? program.newDatabase() : program.database
        let reference = database.reference(withPath: "e/\(round)")
        // Without a connection nothing is known of the location.
        database.goOffline()
        let events = Recorder<Int>()
        reference.observe(.value) { _ in events.append(1) }
        reference.removeAllObservers()
        plainly { reference.setValue(1) }
        let later = reference.record(.value)
        #expect(try await later.recorder.first(1) == ["\(round): 1"])
        later.stop()
        #expect(events.all.isEmpty)
        // An event that is already queued for the callbacks is not delivered either.
        let other = database.reference(withPath: "f/\(round)")
        other.observe(.value) { _ in other.removeAllObservers() }
        other.observe(.value) { _ in events.append(2) }
        plainly { other.setValue(1) }
        let last = other.child("none").record(.value)
        _ = try await last.recorder.first(1)
        last.stop()
        #expect(events.all.isEmpty)
    }
}
