import Foundation
import HearthDatabase
import HearthFirestore
import HearthTestCertificates
import HearthTestSupport
import Testing

/// The ends of programs, in processes of their own. `HEARTH_TEST_EFFORT` multiplies the number of programs.
@Suite(.timeLimit(.minutes(60))) struct ProgramEndTests {
    // MARK: Any moment

    @Test(arguments: [true, false])
    func `a program may end at any moment, over TLS and without it`(isSecure: Bool) async throws {
        let backend = try Backend(tls: isSecure ? Certificates.shared.server.server : nil)
        var ends: [String: Int] = [:]
        for seed in TestRun.numbers(15) {
            // Each third one does not trust the server.
            let authority = seed % 3 == 0 ? Certificates.shared.stranger : Certificates.shared.authority
            let folder = TemporaryFolder()
            let program = try Program(
                ["end", "\(seed)", "localhost:\(backend.network.port)", isSecure ? "tls" : "plain", folder.path],
                environment: ["SSL_CERT_FILE": authority.certificatePath])
            let end = try await program.end()
            ends[end, default: 0] += 1
            // The one signal is the program's own.
            #expect(end == "exit 0" || end == "signal \(SIGTERM)", "seed \(seed), secure: \(isSecure)")
        }
        print("Ends, secure: \(isSecure): \(ends)")
    }

    /// The app's messages are lost then, not the app.
    @Test func `messages for a full disk do not end a program`() async throws {
        let full = try #require(FileHandle(forWritingAtPath: "/dev/full"))
        #expect(try await Program(["log"], standardError: full).end() == "exit 0")
    }

    // MARK: Writes

    enum Product: String, CaseIterable { case firestore, database }

    @Test(arguments: Product.allCases)
    func `a kill loses no write whose call has returned`(_ product: Product) async throws {
        var random = SeededGenerator(seed: TestRun.seed())
        var returned = 0
        var kills = 0
        for seed in TestRun.numbers(6) {
            let folder = TemporaryFolder()
            let app = "kill-\(product.rawValue)-\(seed)"
            var names: Set<String> = []
            // The later ones may be killed while they take what those before have left.
            for run in 0..<4 {
                let program = try Program(
                    ["write", product.rawValue, app, "\(run)", "\(1 + random.below(4))", folder.path])
                try program.wait(lines: 1 + random.below(random.pick([1, 10, 300])))
                program.kill()
                #expect(try await program.end() == "signal \(SIGKILL)")
                names.formUnion(program.lines)
                kills += 1
            }
            let stored = try await Self.stored(product, app, folder)
            #expect(names.subtracting(stored.names).isEmpty, "seed \(random.seed), case \(seed)")
            #expect(stored.names == stored.twins.union(stored.names), "seed \(random.seed), case \(seed)")
            returned += names.count
        }
        print("\(product): \(kills) kills after \(returned) returned writes, seed \(random.seed)")
    }

    @Test(arguments: Product.allCases)
    func `an exit loses no write whose call has returned`(_ product: Product) async throws {
        let folder = TemporaryFolder()
        let app = "exit-\(product.rawValue)"
        let program = try Program(["write", product.rawValue, app, "0", "4", folder.path, "250"])
        #expect(try await program.end() == "exit 0")
        #expect(program.lines.count == 1000)
        #expect(try await Self.stored(product, app, folder).names == Set(program.lines))
    }

    /// What a later run of the program finds in its cache without a server.
    private static func stored(
        _ product: Product, _ name: String, _ folder: TemporaryFolder
    ) async throws -> (names: Set<String>, twins: Set<String>) {
        FirebaseApp.configure(name: name, options: FirebaseOptions(projectID: "demo-end-to-end"))
        let app = FirebaseApp.app(name: name)!
        defer { plainly { app.delete { _ in } } }
        switch product {
        case .firestore:
            let firestore = Firestore.firestore(app: app)
            let settings = FirestoreSettings()
            settings.host = "127.0.0.1:1"
            settings.isSSLEnabled = false
            settings.dispatchQueue = DispatchQueue(label: "program-ends")
            settings.cacheSettings = PersistentCacheSettings(
                sizeBytes: NSNumber(value: FirestoreCacheSizeUnlimited), directory: URL(fileURLWithPath: folder.path))
            firestore.settings = settings
            plainly { firestore.disableNetwork() }
            func ids(_ collection: String) async throws -> Set<String> {
                let snapshot = try await firestore.collection(collection).getDocuments(source: .cache)
                for document in snapshot.documents { #expect(document.get("n") as? String == document.documentID) }
                return Set(snapshot.documents.map(\.documentID))
            }
            return (try await ids("w"), try await ids("twins"))
        case .database:
            let database = Database.database(app: app, url: "http://127.0.0.1:1?ns=shop")
            database.isPersistenceEnabled = true
            database.persistenceDirectory = URL(fileURLWithPath: folder.path)
            database.callbackQueue = DispatchQueue(label: "program-ends")
            database.goOffline()
            return (try await pending(database, "w"), try await pending(database, "twins"))
        }
    }

    /// The children of a location of which the cache has only pending writes.
    private static func pending(_ database: Database, _ path: String) async throws -> Set<String> {
        let keys = Recorder<String>()
        let reference = database.reference(withPath: path)
        let handle = reference.observe(.childAdded) { keys.append($0.key) }
        defer { reference.removeObserver(withHandle: handle) }
        // The children that are known come before one that is written now.
        plainly { reference.child("last").setValue(1) }
        try await keys.first { $0 == "last" }
        return Set(keys.all).subtracting(["last"])
    }
}
