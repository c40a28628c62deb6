import Foundation
import FoundationNetworking
import HearthFirestore
import HearthTestSupport
import Testing

/// Runs the guide's samples against a server in this process.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct GuideSampleTests {
    private func withBench(project: String? = nil, _ body: (GuideBench) async throws -> Void) async throws {
        let bench = try project.map { try GuideBench(project: $0) } ?? GuideBench()
        do {
            try await body(bench)
        } catch {
            try await bench.end()
            throw error
        }
        try await bench.end()
    }

    /// Three notes: `a`, `b` and `c`, with two comments below `a`.
    private func fill(_ db: Firestore) async throws {
        let batch = db.batch()
        for (id, stars, tags, by) in [
            ("a", 1, ["home"], "Eva"), ("b", 4, ["garden"], "Adam"), ("c", 6, ["home"], "Adam"),
        ] {
            batch.setData(
                ["title": "Note \(id)", "stars": stars, "tags": tags, "by": ["name": by]],
                forDocument: db.document("notes/\(id)"))
        }
        batch.setData(["by": "Eva"], forDocument: db.document("notes/a/comments/1"))
        batch.setData(["by": "Adam"], forDocument: db.document("notes/a/comments/2"))
        try await batch.commit()
    }

    // MARK: Connecting

    /// The only test with the default app. No data is sent: any program may use the sample's port.
    @Test func connecting() async throws {
        let db = Connecting.connect()
        #expect(db.settings.host == "127.0.0.1:8080" && !db.settings.isSSLEnabled)
        #expect(db.app.options.projectID == "demo")
        await db.app.delete()
    }

    @Test func firstSteps() async throws {
        try await withBench { bench in
            let title = try await Connecting.first(bench.firestore())
            #expect(title == "Hello")
        }
    }

    @Test func settings() async throws {
        try await withBench { bench in
            let dbs = Connecting.more(bench.app)
            #expect(dbs.count == 2 && dbs[0] !== dbs[1])
            Connecting.settings(dbs[0])
            #expect(dbs[0].settings.host == "firestore.example.com:8443" && dbs[0].settings.isSSLEnabled)
            #expect(dbs[0].settings.cacheSettings.isEqual(PersistentCacheSettings(sizeBytes: 209_715_200)))
            Connecting.memory(dbs[1])
            #expect(dbs[1].settings.cacheSettings is MemoryCacheSettings)
        }
    }

    @Test func clientsOfTestsShareNothing() async throws {
        let port = try GuideBench().port
        let (one, two) = (testDatabase(port: port), testDatabase(port: port))
        try await one.document("cities/only").setData(["name": "Bern"])
        #expect(try await one.collection("cities").getDocuments(source: .server).count == 1)
        #expect(try await two.collection("cities").getDocuments(source: .server).isEmpty)
        for db in [one, two] { await db.app.delete() }
    }

    // MARK: Writing and reading

    @Test func writingAndReading() async throws {
        try await withBench { bench in
            let db = bench.firestore()
            #expect(try await Reading.get(db) == nil)
            try await Writing.set(db)
            try await Writing.merge(db)
            let data = try #require(try await Reading.get(db))
            #expect(data["body"] as? String == "Bread, cheese, plums" && data["stars"] as? Int == 3)
            #expect(data["place"] as? GeoPoint == GeoPoint(latitude: 46.948, longitude: 7.447))
            #expect(try await Reading.sources(db) == [false, true])
            let note = try await Reading.codable(db)
            #expect(note.id == "shopping" && note.title == "Shopping" && note.changed != nil)
            let (stars, author, changed) = Reading.fields(try await db.document("notes/shopping").getDocument())
            #expect(stars == 3 && author == "Eva" && changed == note.changed)
            #expect(try await Reading.codableQuery(db).map(\.id) == ["shopping"])

            try await Writing.update(db)
            let updated = try #require(try await db.document("notes/shopping").getDocument(source: .server).data())
            #expect(updated["tags"] as? [String] == ["home", "weekend"] && updated["due"] == nil)
            let by = try #require(updated["by"] as? [String: Any])
            #expect(by["name"] as? String == "Adam" && by["reads"] as? Int == 1)

            try await Writing.delete(db)
            #expect(try await db.document("notes/shopping").getDocument().exists == false)
        }
    }

    @Test func newDocuments() async throws {
        try await withBench { bench in
            let db = bench.firestore()
            let id = try await Writing.add(db)
            #expect(id.count == 20)
            try await Writing.codable(db)
            let screen = Screen()
            try Writing.codableWithCompletion(db) { screen.show($0.map { "\($0)" } ?? "done") }
            try await screen.wait(for: "done")
            #expect(try await Reading.all(db).count == 3)
            let call = try await db.document("notes/call").getDocument(source: .server).data(as: Note.self)
            #expect(call.title == "Call Eva" && call.changed != nil)
        }
    }

    // MARK: Listening

    @Test func listening() async throws {
        try await withBench { bench in
            let db = bench.firestore()
            let document = Screen()
            let query = Screen()
            let metadata = Screen()
            let first = Listening.document(db, document.show)
            let second = Listening.query(db, query.show)
            let third = Listening.metadata(db, metadata.show)
            try await document.wait(for: "gone")
            try await Writing.set(db)
            try await document.wait(for: "Shopping")
            try await query.wait(for: "+ Shopping")
            try await metadata.wait(for: "saved on this device")
            try await metadata.wait(for: "as at the server")
            try await Writing.update(db)
            try await query.wait(for: "~ Shopping on Saturday")
            try await Writing.delete(db)
            try await query.wait(for: "- Shopping on Saturday")
            for registration in [first, second, third] { Listening.stop(registration) }
        }
    }

    @Test func sequences() async throws {
        try await withBench { bench in
            let db = bench.firestore()
            let screen = Screen()
            async let listening: Void = Listening.sequence(db, screen.show)
            try await screen.wait(for: "0 notes")
            try await fill(db)
            try await listening
            #expect(screen.lines.last == "3 notes")
        }
    }

    // MARK: Queries

    @Test func queries() async throws {
        try await withBench { bench in
            let db = bench.firestore()
            try await fill(db)
            var found: [[String]] = []
            for query in Queries.filters(db) + [Queries.either(db)] + Queries.order(db) + [Queries.group(db)] {
                found.append(try await query.getDocuments(source: .server).documents.map(\.documentID))
            }
            #expect(
                found == [
                    ["b", "c"], ["a", "c"], ["a", "b", "c"], [], ["a", "b"], ["a", "c"], ["c", "b"], ["b", "c"], ["b"],
                    ["1"],
                ])
            #expect(try await Queries.pages(db) == [["a", "b"], ["c"]])
        }
    }

    @Test func aggregates() async throws {
        try await withBench { bench in
            let db = bench.firestore()
            let screen = Screen()
            let registration = Aggregates.live(db, screen.show)
            try await fill(db)
            #expect(try await Aggregates.count(db) == 3)
            let (sum, mean) = try await Aggregates.figures(db)
            #expect(sum == 7 && mean == 3.5)
            try await screen.wait(for: "3 notes")
            #expect(try await Aggregates.cached(db) == 3)
            registration.remove()
        }
    }

    // MARK: Transactions

    @Test func aggregation() async throws {
        try await withBench { bench in
            let db = bench.firestore()
            try await db.document("restaurants/rome").setData(["name": "Rome"])
            #expect(try await Aggregation.read(db).1 == nil)
            for (user, stars) in [("eva", 5), ("adam", 2), ("eva", 4)] {
                try await Aggregation.rate(db, user: user, stars: stars)
            }
            let (count, average) = try await Aggregation.read(db)
            #expect(count == 2 && average == 3)
            try await Aggregation.increment(db)
            let restaurant = try await db.document("restaurants/rome").getDocument(source: .server)
            #expect(restaurant.get("numRatings") as? Int == 2 && restaurant.get("sumRatings") as? Int == 6)
            #expect(restaurant.get("avgRating") as? Double == 3 && restaurant.get("reviews") as? Int == 1)
        }
    }

    @Test func transactions() async throws {
        try await withBench { bench in
            let db = bench.firestore()
            #expect(try await Transactions.transaction(db) == 1)
            #expect(try await Transactions.transaction(db) == 2)

            try await db.document("users/eva").setData(["notes": 4])
            try await Transactions.batch(db)
            #expect(try await db.document("users/eva").getDocument(source: .server).get("notes") as? Int == 5)

            try await db.document("accounts/eva").setData(["credit": 15])
            try await Transactions.refuse(db)
            let error = await #expect(throws: NSError.self) { try await Transactions.refuse(db) }
            #expect(error?.domain == "Notes")
            #expect(try await db.document("accounts/eva").getDocument(source: .server).get("credit") as? Int == 5)
        }
    }

    @Test func batchesInParts() async throws {
        try await withBench { bench in
            let db = bench.firestore()
            try await Transactions.parts(db, (0..<1001).map { "line \($0)" })
            #expect(try await db.collection("lines").count.getAggregation(source: .server).count == 1001)
            let last = try await db.document("lines/1000").getDocument(source: .server)
            #expect(last.get("text") as? String == "line 1000")
        }
    }

    // MARK: Offline

    @Test func offline() async throws {
        try await withBench { bench in
            let first = bench.firestore()
            Connecting.folder(first, bench.folder)
            Offline.indexes(first)
            let screen = Screen()
            try await Offline.network(first)
            let saving = Screen()
            let showing = Task { try await Offline.saving(first, saving.show) }
            try await saving.wait(for: "saved")
            Offline.write(first, screen.show)
            try await saving.wait(for: "saving 1")
            let (title, isPending) = try await Offline.read(first)
            #expect(title == "Written in the train" && isPending && screen.lines.isEmpty)
            try await Connecting.end(first)
            try await showing.value

            // This client represents the program's next run: the write is still stored, and is sent to the server now.
            let second = bench.firestore()
            Connecting.folder(second, bench.folder)
            let note = try await second.document("notes/train").getDocument(source: .cache)
            #expect(note.metadata.hasPendingWrites)
            try await Offline.online(second)
            #expect(try await second.document("notes/train").getDocument(source: .server).exists)
            try await Offline.clear(second)

            let third = bench.firestore()
            Connecting.folder(third, bench.folder)
            let empty = try await third.collection("notes").getDocuments(source: .cache)
            #expect(empty.isEmpty)
        }
    }

    @Test func completionsOfOfflineWritesComeLater() async throws {
        try await withBench { bench in
            let db = bench.firestore()
            let screen = Screen()
            try await Offline.network(db)
            Offline.write(db, screen.show)
            db.document("notes/train").setData(["changed": FieldValue.serverTimestamp()], merge: true, completion: nil)
            let note = try await db.document("notes/train").getDocument(source: .cache)
            #expect(Offline.estimate(note) != nil && note.get("changed") is NSNull)
            #expect(screen.lines.isEmpty)
            try await Offline.online(db)
            try await screen.wait(for: "The server has it.")
        }
    }

    // MARK: Bundles

    @Test func bundles() async throws {
        // The server's own project, whose saved bundles have short addresses.
        try await withBench(project: "demo-hearth") { bench in
            let db = bench.firestore()
            try await fill(db)
            let server = "http://127.0.0.1:\(bench.port)"
            var request = URLRequest(
                url: URL(string: server + "/v1/projects/demo-hearth/databases/(default)/bundles/front-page")!)
            request.httpMethod = "PUT"
            request.setValue("Bearer owner", forHTTPHeaderField: "Authorization")
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            request.httpBody = Data(
                #"{"public": true, "queries": {"latest": {"collection": "notes", "conditions": [{"orderBy": "title"}]}}}"#
                    .utf8)
            let (_, answer) = try await URLSession.shared.data(for: request)
            #expect((answer as? HTTPURLResponse)?.statusCode == 200)

            try await db.terminate()
            let reader = bench.firestore()
            let url = URL(string: server + "/bundles/front-page")!
            #expect(try await Bundles.named(reader) == nil)
            #expect(try await Bundles.load(reader, url).documentsLoaded == 3)
            let notes = try #require(try await Bundles.named(reader))
            #expect(notes.documents.map(\.documentID) == ["a", "b", "c"])

            try FileManager.default.createDirectory(at: bench.folder, withIntermediateDirectories: true)
            let file = bench.folder.appendingPathComponent("front-page.bundle")
            try await URLSession.shared.data(from: url).0.write(to: file)
            let screen = Screen()
            Bundles.file(reader, file.path, screen.show)
            try await screen.wait(for: "loaded")

            let built = bench.folder.appendingPathComponent("first-page.bundle")
            try await Bundles.build(reader, built)
            // The three notes, and the document that is missing.
            #expect(try await reader.loadBundle(from: built).documentsLoaded == 4)
        }
    }

    // MARK: Identity and errors

    @Test func identity() async throws {
        try await withBench { bench in
            let db = bench.firestore(database: "guarded")
            await #expect(throws: NSError.self) { try await db.document("notes/a").setData(["title": "A"]) }
            #expect(try await Identity.signIn(bench.app, GuideBench.token(uid: "eva")) == "eva")
            Identity.refresh(Auth.auth(app: bench.app)) { GuideBench.token(uid: "eva") }
            try await db.document("notes/a").setData(["title": "A"])
            #expect(try await db.document("notes/a").getDocument(source: .server).exists)
            try Identity.signOut(Auth.auth(app: bench.app))
            await #expect(throws: NSError.self) { try await db.document("notes/a").getDocument(source: .server) }
        }
    }

    @Test func ownLogin() async throws {
        try await withBench { bench in
            let db = bench.firestore(database: "guarded")
            Identity.own(db, Login(uid: "eva") { GuideBench.token(uid: "eva") })
            try await db.document("notes/b").setData(["title": "B"])
            #expect(try await db.document("notes/b").getDocument(source: .server).exists)
        }
    }

    @Test func errors() async throws {
        try await withBench { bench in
            #expect(await Errors.handle(bench.firestore()) == "done")
            #expect(
                await Errors.handle(bench.firestore(database: "guarded")) == "The rules don't let this user write here."
            )
            let error = NSError(domain: FirestoreErrorDomain, code: 7, userInfo: [NSLocalizedDescriptionKey: "no"])
            #expect(Errors.codes(error) == "permissionDenied: no")
            Errors.log()
        }
    }
}
