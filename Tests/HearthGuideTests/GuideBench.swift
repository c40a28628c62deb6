import Dispatch
import Foundation
import HearthFirestore
import HearthNetwork
import HearthHost
import HearthServer
import Synchronization

/// A server in this process, and the own project, app and folder of each test.
struct GuideBench {
    /// In memory, on a port that the system chose, for the lifetime of the process. The databases `guarded` and `versioned` and
    /// the Realtime Database `locked` have rules; all others are open.
    private static let server = Result {
        var configuration = Server.Configuration()
        configuration.dataFolder = nil
        configuration.log = HearthHost.Log(level: .error)
        let files = GuidePages.root.appendingPathComponent("Tests/HearthGuideTests")
        configuration.rules = [
            "guarded": files.appendingPathComponent("guarded.rules").path,
            "versioned": files.appendingPathComponent("versioned.rules").path,
        ]
        configuration.realtimeRulesByName = [
            "locked": GuidePages.root.appendingPathComponent("Tests/HearthGuideTests/locked.rules.json").path
        ]
        configuration.network = ServerConfiguration(host: "127.0.0.1", port: 0, loopCount: 1)
        let server = try Server(configuration)
        try server.start()
        return server
    }

    let port: Int
    let app: FirebaseApp
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-guide-\(UUID())")

    /// - Parameter project: a project of the test by default, so that tests share no data.
    init(project: String = "guide-\(UUID().uuidString.lowercased())") throws {
        port = try Self.server.get().port
        let name = "guide-\(UUID())"
        FirebaseApp.configure(name: name, options: FirebaseOptions(projectID: project))
        app = FirebaseApp.app(name: name)!
    }

    /// A client of the server with a cache in memory.
    func firestore(database: String = "(default)") -> Firestore {
        let db = Firestore.firestore(app: app, database: database)
        db.useEmulator(withHost: "127.0.0.1", port: port)
        let settings = db.settings
        // The main queue belongs to the tests.
        settings.dispatchQueue = DispatchQueue(label: "guide.callbacks")
        settings.cacheSettings = MemoryCacheSettings(garbageCollectorSettings: MemoryLRUGCSettings())
        db.settings = settings
        return db
    }

    func end() async throws {
        await app.delete()
        if FileManager.default.fileExists(atPath: folder.path) { try FileManager.default.removeItem(at: folder) }
    }

    /// An unsigned token, which servers for local development accept.
    static func token(uid: String) -> String {
        func part(_ json: String) -> String {
            Data(json.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing(
                "=", with: "")
        }
        return part(#"{"alg":"none","typ":"JWT"}"#) + "." + part(#"{"sub":"\#(uid)","user_id":"\#(uid)"}"#) + "."
    }
}

/// The output of a sample, in order.
final class Screen: Sendable {
    private let shown = Mutex<[String]>([])

    var lines: [String] { shown.withLock { $0 } }

    func show(_ line: String) { shown.withLock { $0.append(line) } }

    /// Waits for a line; the test's time limit applies.
    func wait(for line: String) async throws {
        while !lines.contains(line) { try await Task.sleep(for: .milliseconds(5)) }
    }
}
