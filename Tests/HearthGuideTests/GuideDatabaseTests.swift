import Foundation
import HearthDatabase
import HearthTestSupport
import Testing

/// Runs the samples of the Realtime Database's pages.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct GuideDatabaseTests {
    private func withRoot(
        namespace: String = "guide-\(UUID().uuidString.lowercased())",
        configure: (Database, GuideBench) -> Void = { _, _ in },
        _ body: (DatabaseReference, GuideBench) async throws -> Void
    ) async throws {
        let bench = try GuideBench()
        let database = Database.database(app: bench.app, url: "http://127.0.0.1:\(bench.port)?ns=\(namespace)")
        database.callbackQueue = DispatchQueue(label: "guide.callbacks")
        configure(database, bench)
        try await body(database.reference(), bench)
        try await bench.end()
    }

    @Test func writingAndReading() async throws {
        try await withRoot { root, _ in
            #expect(try await DatabaseBasics.first(root) == "Hello")
            try await DatabaseBasics.write(root)
            try await DatabaseBasics.server(root)
            let (name, age, keys) = try await DatabaseBasics.read(root)
            #expect(name == "Eva" && age == 42 && keys == ["age", "city", "name", "seen", "visits"])
            let screen = Screen()
            DatabaseBasics.later(root, screen.show)
            try await screen.wait(for: "name is saved")
            try await DatabaseBasics.remove(root)
            #expect(try await root.child("users").getData().childrenCount == 1)
        }
    }

    @Test func codableAndKeys() async throws {
        try await withRoot { root, _ in
            let screen = Screen()
            try DatabaseBasics.codable(root, screen.show)
            try await screen.wait(for: "saved")
            let room = try await root.child("rooms/main").getData()
            let line = try DatabaseBasics.decode(try #require(room.children.nextObject() as? DataSnapshot))
            #expect(line.text == "Hi" && line.at != nil)
            let key = try #require(try await DatabaseBasics.fanOut(root))
            #expect(try await root.child("posts-by/eva/\(key)/title").getData().value as? String == "Bread")
        }
    }

    @Test func observing() async throws {
        try await withRoot { root, _ in
            let (name, lines) = (Screen(), Screen())
            let handle = DatabaseLive.value(root, name.show)
            DatabaseLive.children(root, lines.show)
            try await name.wait(for: "nobody")
            try await DatabaseBasics.write(root)
            try await name.wait(for: "Eva")
            DatabaseLive.stop(root, handle)
            _ = try await DatabaseBasics.first(root)
            try await lines.wait(for: "+ first")
            try await root.child("rooms/main/first/text").setValue("Hullo")
            try await lines.wait(for: "~ first")
            try await root.child("rooms/main/first").removeValue()
            try await lines.wait(for: "- first")
        }
    }

    @Test func sequences() async throws {
        try await withRoot { root, _ in
            let (name, lines, saving) = (Screen(), Screen(), Screen())
            let tasks = [
                Task { try await DatabaseLive.values(root, name.show) },
                Task { try await DatabaseLive.events(root, lines.show) },
                Task { try await DatabaseLive.saving(root.database, saving.show) },
            ]
            try await name.wait(for: "nobody")
            try await saving.wait(for: "saved")
            try await root.child("users/eva/name").setValue("Eva")
            try await name.wait(for: "Eva")
            try await root.child("rooms/main/first").setValue("Hello")
            try await lines.wait(for: "+ first")
            try await root.child("rooms/main/second").setValue("Hello")
            try await lines.wait(for: "+ second")
            try await root.child("rooms/main/first").setPriority(1)
            try await lines.wait(for: "first after second")
            try await root.child("rooms/main/first").removeValue()
            try await lines.wait(for: "- first")
            root.database.goOffline()
            root.child("rooms/main/third").setValue("Hello", withCompletionBlock: { _, _ in })
            try await saving.wait(for: "saving 1")
            for task in tasks { task.cancel() }
            for task in tasks { try await task.value }
        }
    }

    @Test func queriesAndTransactions() async throws {
        try await withRoot { root, _ in
            try await root.child("people").setValue([
                "a": ["name": "Adam", "age": 50], "b": ["name": "Bob", "age": 30], "e": ["name": "Eva", "age": 41],
            ])
            var found: [[String]] = []
            for query in DatabaseLive.queries(root) {
                let snapshot = try await query.observeSingleEvent(of: .value)
                found.append(snapshot.children.compactMap { ($0 as? DataSnapshot)?.key })
            }
            #expect(found == [["e", "a"], ["b"], ["b", "e"], ["e"]])
            try await root.child("posts/p1").setValue(["title": "x"])
            for stars in 1...2 {
                let (isCommitted, count) = try await DatabaseLive.transaction(root)
                #expect(isCommitted && count == stars)
            }
        }
    }

    @Test func presenceAndNetwork() async throws {
        try await withRoot { root, _ in
            DatabaseLive.presence(root)
            let screen = Screen()
            root.child("status/eva").observe(.value) { snapshot in
                let online = snapshot.childSnapshot(forPath: "online").value as? Bool
                screen.show(online.map { $0 ? "online" : "offline" } ?? "unknown")
            }
            try await screen.wait(for: "online")
            // Answered after the onDisconnect operations.
            try await root.child("marker").setValue(true)
            DatabaseLive.network(root.database)
            try await screen.wait(for: "offline")
            while screen.lines.last != "online" { try await Task.sleep(for: .milliseconds(5)) }
        }
    }

    @Test func persistence() async throws {
        try await withRoot(configure: { DatabaseLive.persistence($0, $1.folder) }) { root, bench in
            try await root.child("people/a").setValue(1)
            #expect(FileManager.default.fileExists(atPath: bench.folder.path))
        }
    }

    @Test func usersAndRules() async throws {
        try await withRoot(namespace: "locked") { root, bench in
            #expect(await DatabaseLive.refused(root) == "The rules don't let this user write here.")
            try await DatabaseLive.signIn(bench.app, GuideBench.token(uid: "eva"))
            #expect(await DatabaseLive.refused(root) == "written")
        }
    }
}
