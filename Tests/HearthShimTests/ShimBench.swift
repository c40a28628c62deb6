import FirebaseCore
import FirebaseDatabase
import FirebaseFirestore
import HearthHost
import HearthNetwork
import HearthServer
import Synchronization

/// A server in this process, and the own project, app and folder of each test.
struct ShimBench {
    /// In memory, on a port that the system chose, for the lifetime of the process.
    private static let server = Result {
        var configuration = Server.Configuration()
        configuration.dataFolder = nil
        configuration.log = HearthHost.Log(level: .error)
        configuration.network = ServerConfiguration(host: "127.0.0.1", port: 0, loopCount: 1)
        let server = try Server(configuration)
        try server.start()
        return server
    }

    /// For completion handlers and listeners: the main queue belongs to the tests.
    private static let callbacks = DispatchQueue(label: "shim.callbacks")

    let port: Int
    let project = "shim-\(UUID().uuidString.lowercased())"
    let app: FirebaseApp

    init() throws {
        port = try Self.server.get().port
        FirebaseApp.configure(name: project, options: FirebaseOptions(projectID: project))
        app = FirebaseApp.app(name: project)!
    }

    /// A client of the server with a cache in memory.
    func firestore() -> Firestore {
        let db = Firestore.firestore(app: app)
        db.useEmulator(withHost: "127.0.0.1", port: port)
        let settings = db.settings
        settings.dispatchQueue = Self.callbacks
        settings.cacheSettings = MemoryCacheSettings()
        db.settings = settings
        return db
    }

    /// The root of a Realtime Database of the project.
    func database() -> DatabaseReference {
        let database = Database.database(app: app, url: "http://127.0.0.1:\(port)?ns=\(project)")
        database.callbackQueue = Self.callbacks
        return database.reference()
    }

    func end() async { await app.delete() }
}

/// What a sample showed, in order.
final class Screen: Sendable {
    private let shown = Mutex<[String]>([])

    func show(_ line: String) { shown.withLock { $0.append(line) } }

    /// Waits for a line; the test's time limit applies.
    func wait(for line: String) async throws {
        while !shown.withLock({ $0.contains(line) }) { try await Task.sleep(for: .milliseconds(5)) }
    }
}
