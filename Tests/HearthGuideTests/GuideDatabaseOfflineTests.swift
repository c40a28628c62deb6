import Foundation
import FoundationNetworking
import HearthDatabase
import HearthHost
import HearthNetwork
import HearthServer
import Synchronization
import HearthTestSupport
import Testing

/// A server of one test, with its data in a folder, that can be stopped and started again; and the app of a device.
private final class Outage: Sendable {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-guide-\(UUID())")
    let port: Int
    private let running: Mutex<Server?>
    private let device = "device-\(UUID())"

    /// - Parameter rules: rules of the Realtime Database; nil permits everything.
    init(rules: String? = nil) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        if let rules { try Data(rules.utf8).write(to: folder.appendingPathComponent("rules.json")) }
        let server = try Self.start(folder, port: 0)
        port = server.port
        running = Mutex(server)
    }

    private static func start(_ folder: URL, port: Int) throws -> Server {
        var configuration = Server.Configuration()
        configuration.dataFolder = folder.appendingPathComponent("data").path
        configuration.log = HearthHost.Log(level: .error)
        let rules = folder.appendingPathComponent("rules.json").path
        if FileManager.default.fileExists(atPath: rules) { configuration.realtimeRules = rules }
        configuration.network = ServerConfiguration(host: "127.0.0.1", port: port, loopCount: 1)
        let server = try Server(configuration)
        do {
            try server.start()
        } catch {
            server.shutdown(graceSeconds: 0)
            throw error
        }
        return server
    }

    func stop() { running.withLock { $0.take() }?.shutdown(graceSeconds: 0) }

    /// Meanwhile another connection of this machine may use the port: the test's time limit applies.
    func restart() async throws {
        while true {
            do {
                let server = try Self.start(folder, port: port)
                running.withLock { $0 = server }
                return
            } catch {
                try await Task.sleep(for: .milliseconds(20))
            }
        }
    }

    var url: String { "http://127.0.0.1:\(port)?ns=guide" }

    /// The device's app, in a run of its own: the same name has the same cache.
    func app() -> FirebaseApp {
        FirebaseApp.configure(name: device, options: FirebaseOptions(projectID: "guide"))
        return FirebaseApp.app(name: device)!
    }

    func database(_ app: FirebaseApp) -> Database {
        let database = Database.database(app: app, url: url)
        database.callbackQueue = DispatchQueue(label: "guide.callbacks")
        return database
    }

    /// The server's data, without a client's cache.
    func stored(_ path: String) async throws -> String {
        var request = URLRequest(url: URL(string: "http://127.0.0.1:\(port)/\(path).json?ns=guide")!)
        request.setValue("Bearer owner", forHTTPHeaderField: "Authorization")
        return String(decoding: try await URLSession.shared.data(for: request).0, as: UTF8.self)
    }

    func store(_ json: String, at path: String) async throws {
        var request = URLRequest(url: URL(string: "http://127.0.0.1:\(port)/\(path).json?ns=guide")!)
        request.httpMethod = "PUT"
        request.setValue("Bearer owner", forHTTPHeaderField: "Authorization")
        request.httpBody = Data(json.utf8)
        let (_, answer) = try await URLSession.shared.data(for: request)
        #expect((answer as? HTTPURLResponse)?.statusCode == 200)
    }

    func end() throws {
        stop()
        try FileManager.default.removeItem(at: folder)
    }
}

extension Screen {
    /// Waits until a line is the last one; the test's time limit applies.
    fileprivate func wait(forLast line: String) async throws {
        while lines.last != line { try await Task.sleep(for: .milliseconds(5)) }
    }
}

/// Runs the samples of `database-offline.md` while the server is stopped.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct GuideDatabaseOfflineTests {
    /// A client that has lost its server, and what it shows of its connection.
    private func offline(_ outage: Outage, _ database: Database) async throws -> Screen {
        let connection = Screen()
        DatabaseOffline.connected(database.reference(), connection.show)
        try await connection.wait(forLast: "online")
        outage.stop()
        try await connection.wait(forLast: "offline")
        return connection
    }

    @Test func writesWaitForTheServer() async throws {
        let outage = try Outage()
        let app = outage.app()
        let database = outage.database(app)
        let root = database.reference()
        let connection = try await offline(outage, database)
        let (writes, entries) = (Screen(), Screen())
        DatabaseOffline.later(root, writes.show)
        DatabaseOffline.values(root)
        DatabaseOffline.disconnect(root, entries.show)
        #expect(try await DatabaseOffline.known(root) == "Written in the train")
        let count = try await root.child("counters/notes").observeSingleEvent(of: .value)
        #expect(count.value as? Int == 1)
        #expect(try await DatabaseOffline.get(root) == "This note is not on this device.")
        #expect(writes.lines.isEmpty && entries.lines.isEmpty)

        try await outage.restart()
        try await writes.wait(for: "The server has it.")
        try await entries.wait(for: "The server removes it when this client is gone.")
        #expect(try await DatabaseOffline.get(root) == "no note")
        #expect(try await outage.stored("notes/train") == "\"Written in the train\"")
        #expect(try await outage.stored("counters/notes") == "1")

        try await root.child("online/eva").setValue(true)
        DatabaseOffline.goOffline(database)
        try await connection.wait(forLast: "offline")
        while try await outage.stored("online/eva") != "null" { try await Task.sleep(for: .milliseconds(5)) }
        DatabaseOffline.goOnline(database)
        try await connection.wait(forLast: "online")
        await app.delete()
        try outage.end()
    }

    @Test func writesAreGivenUp() async throws {
        let outage = try Outage()
        let app = outage.app()
        let database = outage.database(app)
        let root = database.reference()
        _ = try await offline(outage, database)
        let (given, note) = (Screen(), Screen())
        // The known data of the location, so that observers receive an event without the write.
        root.child("notes").observe(.childAdded) { note.show("+ \($0.key)") }
        root.child("notes").observe(.childRemoved) { note.show("- \($0.key)") }
        DatabaseOffline.later(root, given.show)
        try await note.wait(forLast: "+ train")
        DatabaseOffline.purge(database)
        try await given.wait(for: "rejected: Write cancelled by user")
        try await note.wait(forLast: "- train")
        await app.delete()
        try outage.end()
    }

    @Test func persistence() async throws {
        let outage = try Outage()
        try await outage.store(#"{"a": {"name": "Adam"}}"#, at: "people")
        try await outage.store(#"{"1": "old", "2": "new"}"#, at: "news")
        var app = outage.app()
        var database = outage.database(app)
        let cache = outage.folder.appendingPathComponent("cache")
        var root = DatabaseOffline.persistence(database, cache)
        // Answered after the listens of `keepSynced`.
        try await root.child("marker").setValue(1)
        _ = try await offline(outage, database)
        DatabaseOffline.later(root) { _ in }
        DatabaseOffline.values(root)
        #expect(try await DatabaseOffline.known(root) == "Written in the train")
        await app.delete()

        // The next run, without a server at first.
        app = outage.app()
        database = outage.database(app)
        root = DatabaseOffline.persistence(database, cache)
        #expect(try await root.child("people/a/name").getData().value as? String == "Adam")
        let news = try await root.child("news").queryOrderedByKey().queryLimited(toLast: 100)
            .observeSingleEvent(of: .value)
        #expect(news.childrenCount == 2)
        #expect(try await DatabaseOffline.known(root) == "Written in the train")
        try await outage.restart()
        while try await outage.stored("counters/notes") != "1" { try await Task.sleep(for: .milliseconds(5)) }
        #expect(try await outage.stored("notes/train") == "\"Written in the train\"")
        await app.delete()
        try outage.end()
    }

    private static let rules = #"{"rules": {".read": true, ".write": "auth != null"}}"#

    @Test func rejectedInTheSameRun() async throws {
        let outage = try Outage(rules: Self.rules)
        let app = outage.app()
        let database = outage.database(app)
        _ = try await offline(outage, database)
        let screen = Screen()
        DatabaseOffline.rejected(database.reference(), screen.show)
        try await screen.wait(forLast: "Written without permission")
        try await outage.restart()
        try await screen.wait(for: "The rules reject it.")
        try await screen.wait(for: "no note")
        await app.delete()
        try outage.end()
    }

    /// Writes of an earlier run are sent in the name of the user who is signed in when the connection begins.
    @Test(arguments: [true, false]) func rejectedInALaterRun(isSignedIn: Bool) async throws {
        let outage = try Outage(rules: Self.rules)
        let token = GuideBench.token(uid: "eva")
        let cache = outage.folder.appendingPathComponent("cache")
        var app = outage.app()
        var database = outage.database(app)
        database.isPersistenceEnabled = true
        database.persistenceDirectory = cache
        var root = try await DatabaseOffline.signIn(app, token, outage.url)
        _ = try await offline(outage, database)
        DatabaseOffline.entry(root)
        #expect(try await DatabaseOffline.known(root) == "Written in the train")
        await app.delete()
        try await outage.restart()

        app = outage.app()
        database = outage.database(app)
        database.isPersistenceEnabled = true
        database.persistenceDirectory = cache
        root = isSignedIn ? try await DatabaseOffline.signIn(app, token, outage.url) : database.reference()
        let connection = Screen()
        DatabaseOffline.connected(root, connection.show)
        try await connection.wait(forLast: "online")
        #expect(try await DatabaseOffline.isMade(root) == isSignedIn)
        #expect(try await outage.stored("notes/train") == (isSignedIn ? "\"Written in the train\"" : "null"))
        await app.delete()
        try outage.end()
    }

    @Test func transactions() async throws {
        let outage = try Outage()
        try await outage.store("4", at: "posts/p1/stars")
        try await outage.store(#""adam""#, at: "seats/12A")
        let app = outage.app()
        let database = outage.database(app)
        let root = database.reference()
        let (stars, seat, ends) = (Screen(), Screen(), Screen())
        root.child("posts/p1/stars").observe(.value) { stars.show("\($0.value ?? 0)") }
        try await stars.wait(forLast: "4")
        _ = try await offline(outage, database)
        DatabaseOffline.transaction(root, ends.show)
        try await stars.wait(forLast: "5")
        root.child("seats").observe(.childAdded) { seat.show("\($0.value ?? 0)") }
        DatabaseOffline.hidden(root, ends.show)
        #expect(try await DatabaseOffline.time(root).0.magnitude < 60_000)
        #expect(ends.lines.isEmpty && seat.lines.isEmpty)
        try await outage.restart()
        try await ends.wait(for: "5 stars at the server")
        try await ends.wait(for: "The seat is taken.")
        try await seat.wait(for: "adam")
        #expect(seat.lines == ["adam"])
        #expect(try await outage.stored("posts/p1/stars") == "5")
        await app.delete()
        try outage.end()
    }
}
