import FirebaseAuth
import FirebaseCore
import FirebaseDatabase
import FirebaseFirestore
import HearthTestSupport
import Testing

/// Code for Apple platforms does what it does there, with the imports that it has there.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct ShimTests {
    @Test func codableWritesReachAListener() async throws {
        let bench = try ShimBench()
        let store = CityStore(db: bench.firestore())
        let screen = Screen()
        store.listen { cities in
            screen.show(cities.map { "\($0.name) \($0.population) \($0.changed != nil)" }.joined(separator: ", "))
        }
        try store.add(City(name: "Bern", population: 140_000))
        try store.add(City(name: "Aarau", population: 22_000))
        try await screen.wait(for: "Aarau 22000 true, Bern 140000 true")
        store.stop()
        await bench.end()
    }

    @Test func transactionsAndAggregates() async throws {
        let bench = try ShimBench()
        let db = bench.firestore()
        let store = CityStore(db: db)
        let (bern, thun) = (db.document("cities/bern"), db.document("cities/thun"))
        try await bern.setData(["name": "Bern", "population": 140])
        try await thun.setData(["name": "Thun", "population": 40])
        try await store.move(30, from: bern, to: thun)
        #expect(try await thun.getDocument().get("population") as? Int == 70)
        do {
            try await store.move(1000, from: bern, to: thun)
            Issue.record("More moved than live there.")
        } catch let error as NSError {
            #expect(error.domain == "Cities")
            #expect(error.localizedDescription == "Only 110 live there.")
        }
        let figures = try await store.figures()
        #expect(figures == (2, 180))
        await bench.end()
    }

    @Test func bundlesAndTheirQueries() async throws {
        let bench = try ShimBench()
        let screen = Screen()
        CityStore(db: bench.firestore()).load(Self.bundle(project: bench.project), screen.show)
        try await screen.wait(for: "1 loaded")
        try await screen.wait(for: "bern")
        await bench.end()
    }

    @Test func observersTransactionsAndPresence() async throws {
        let bench = try ShimBench()
        let root = bench.database()
        let model = ChannelViewModel("main", root: root)
        let screen = Screen()
        model.enter(as: "ann", screen.show)
        model.say("Hello", by: "ann")
        model.say("Anyone?", by: "ann")
        try await screen.wait(for: "ann: Anyone?")
        let channel = root.child("channels/main")
        channel.child("count").observe(.value) { screen.show("count \($0.value as? Int ?? 0)") }
        try await screen.wait(for: "count 2")
        // Answered after the writes before it, so that the server has the operation for the disconnection.
        try await channel.child("marker").setValue(true)
        channel.child("present").observe(.value) { screen.show($0.exists() ? "somebody" : "nobody") }
        try await screen.wait(for: "somebody")
        root.database.goOffline()
        root.database.goOnline()
        try await screen.wait(for: "nobody")
        model.leave()
        await bench.end()
    }

    @Test func bothProductsAndTheOlderModules() async throws {
        let bench = try ShimBench()
        let message = bench.firestore().document("messages/first")
        try await message.setData(["body": "Hello", "sent": FieldValue.serverTimestamp()])
        let beat = try await OlderCode.copy(message, to: bench.database().child("beats/first"))
        #expect(beat.name == "Hello" && beat.at != nil)
        let token = Self.token(uid: "eva")
        #expect(try await OlderCode.user(bench.app, token) == "eva")
        await bench.end()
    }

    /// A bundle of one document and of the query `large`, whose result it is.
    private static func bundle(project: String) -> Data {
        let database = "projects/\(project)/databases/(default)"
        let name = "\(database)/documents/cities/bern"
        let time = "2024-01-01T00:00:00.000000Z"
        let query =
            #"{"from":[{"collectionId":"cities"}],"orderBy":[{"field":{"fieldPath":"__name__"},"direction":"ASCENDING"}]}"#
        let elements = [
            #"{"namedQuery":{"name":"large","bundledQuery":{"parent":"\#(database)/documents","structuredQuery":\#(query),"#
                + #""limitType":"FIRST"},"readTime":"\#(time)"}}"#,
            #"{"documentMetadata":{"name":"\#(name)","readTime":"\#(time)","exists":true,"queries":["large"]}}"#,
            #"{"document":{"name":"\#(name)","fields":{"name":{"stringValue":"Bern"}},"createTime":"\#(time)","#
                + #""updateTime":"\#(time)"}}"#,
        ].map { "\($0.utf8.count)\($0)" }.joined()
        let metadata =
            #"{"metadata":{"id":"cities","createTime":"\#(time)","version":1,"totalDocuments":1,"#
            + #""totalBytes":\#(elements.utf8.count)}}"#
        return Data("\(metadata.utf8.count)\(metadata)\(elements)".utf8)
    }

    /// An unsigned token, which servers for local development accept.
    private static func token(uid: String) -> String {
        [#"{"alg":"none","typ":"JWT"}"#, #"{"sub":"\#(uid)","user_id":"\#(uid)"}"#].map { part in
            Data(part.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
                .replacing("=", with: "")
        }.joined(separator: ".") + "."
    }
}
