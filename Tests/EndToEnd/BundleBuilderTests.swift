import Foundation
import FoundationNetworking
import HearthFirestore
import HearthTestSupport
import Testing

@testable import hearth

/// Bundles that a client builds from snapshots, and that clients load.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct BundleBuilderTests {
    private func fill(_ db: Firestore) async throws {
        let batch = db.batch()
        for n in 0..<5 {
            batch.setData(
                ["n": n, "at": GeoPoint(latitude: 1, longitude: 2), "next": db.document("c/\(n + 1)")],
                forDocument: db.document("c/\(n)"))
        }
        batch.setData(["title": "Hearth"], forDocument: db.document("settings/site"))
        try await batch.commit()
        try await db.waitForPendingWrites()
    }

    private func isCode(_ code: FirestoreErrorCode.Code) -> (any Error) -> Bool {
        { ($0 as NSError).domain == FirestoreErrorDomain && ($0 as NSError).code == code.rawValue }
    }

    /// The other client is offline: everything that it reads is from the bundle.
    @Test(arguments: [false, true]) func whatIsBuiltIsLoaded(isPersistent: Bool) async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend), try Device(backend, isPersistent: isPersistent))
        try await fill(device.db)
        let all = device.db.collection("c").order(by: "n")
        let builder = device.db.bundle("first-page")
        try builder.add(try await device.db.document("settings/site").getDocument(source: .server))
            .add("even", try await all.whereField("n", in: [0, 2, 4]).getDocuments(source: .server))
            .add("last", try await all.limit(toLast: 2).getDocuments(source: .server))
            .add("group", try await device.db.collectionGroup("c").getDocuments(source: .server))
            .add("none", try await all.whereField("n", isLessThan: -1).getDocuments(source: .server))
        let bundle = try builder.build()
        #expect(try builder.build() == bundle)
        #expect(builder.bundleID == "first-page")
        var inspection = BundleInspection()
        inspection.feed(Array(bundle)[...])
        inspection.finish()
        #expect(inspection.problems.map(\.description) == [])
        let report = inspection.json
        for name in ["first-page", "settings/site", "even", "last", "group", "none"] { #expect(report.contains(name)) }

        try await other.db.disableNetwork()
        let progress = try await other.db.loadBundle(bundle)
        #expect(progress.state == .success && progress.documentsLoaded == 6)
        let site = try await other.db.document("settings/site").getDocument(source: .cache)
        #expect(site.get("title") as? String == "Hearth" && !site.metadata.hasPendingWrites)
        func ids(_ name: String) async throws -> [String] {
            let query = try #require(await other.db.getQuery(named: name))
            return try await query.getDocuments(source: .cache).documents.map(\.documentID)
        }
        #expect(try await ids("even") == ["0", "2", "4"])
        #expect(try await ids("last") == ["3", "4"])
        #expect(try await ids("group") == ["0", "1", "2", "3", "4"])
        #expect(try await ids("none") == [])
        let first = try await other.db.document("c/0").getDocument(source: .cache)
        #expect(first.get("next") as? DocumentReference == other.db.document("c/1"))
        #expect(first.get("at") as? GeoPoint == GeoPoint(latitude: 1, longitude: 2))
        // The listens continue from the bundle's read time.
        try await device.db.document("c/4").delete()
        try await other.db.enableNetwork()
        let last = try #require(await other.db.getQuery(named: "last"))
        #expect(try await last.getDocuments(source: .server).documents.map(\.documentID) == ["2", "3"])
        await device.end()
        await other.end()
    }

    /// Names are identified by their bytes: the two spellings of one letter are two documents and two queries.
    @Test(arguments: [false, true]) func oddNames(isPersistent: Bool) async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend), try Device(backend, isPersistent: isPersistent))
        let names = ["\u{e9}", "e\u{301}", "\"q\" \\ ü", "日本語", "a.b~*[]`", "%2F%", "😀", " ", "\u{1}\n"]
        let odd = device.db.collection("odd")
        let builder = device.db.bundle("\"odd\" \\\n é")
        for (n, name) in names.enumerated() { try await odd.document(name).setData(["n": n, "\u{1}\"`.": name]) }
        for (n, name) in names.enumerated() {
            try builder.add(name, try await odd.whereField("n", isEqualTo: n).getDocuments(source: .server))
        }
        let bundle = try builder.build()
        var inspection = BundleInspection()
        inspection.feed(Array(bundle)[...])
        inspection.finish()
        #expect(inspection.problems.map(\.description) == [])
        #expect(inspection.queries.map(\.documentCount) == names.map { _ in 1 })
        #expect(inspection.string("odd").contains("    \\u{1}\\n: 1 document at"), "control characters are escaped")
        try await other.db.disableNetwork()
        #expect(try await other.db.loadBundle(bundle).documentsLoaded == names.count)
        for (n, name) in names.enumerated() {
            let query = try #require(await other.db.getQuery(named: name))
            let found = try await query.getDocuments(source: .cache).documents
            #expect(found.map { Array($0.documentID.utf8) } == [Array(name.utf8)])
            #expect(found.first?.get("n") as? Int == n)
            let value = found.first?.get(FieldPath(["\u{1}\"`."])) as? String
            #expect(value.map { Array($0.utf8) } == Array(name.utf8))
        }
        await device.end()
        await other.end()
    }

    /// A newer bundle of the same name is loaded, also when documents are only missing in it.
    @Test func aNewerBundleReplacesAnOlderOne() async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend), try Device(backend))
        try await fill(device.db)
        let query = device.db.collection("c").order(by: "n")
        let document = device.db.document("c/0")
        let (received, registration) = query.record()
        try await received.latest { $0.string == "0=0 1=1 2=2 3=3 4=4" }
        func bundle() async throws -> Data {
            try device.db.bundle("all").add("all", try await query.getDocuments(source: .server))
                .add(try await document.getDocument(source: .server)).build()
        }
        let old = try await bundle()
        try await document.delete()
        try await received.latest { $0.string == "1=1 2=2 3=3 4=4" }
        let new = try await bundle()
        try await other.db.disableNetwork()
        for (data, count) in [(old, 5), (new, 4), (old, 4)] {
            try await other.db.loadBundle(data)
            let all = try #require(await other.db.getQuery(named: "all"))
            #expect(try await all.getDocuments(source: .cache).count == count)
        }
        #expect(try await other.db.document("c/0").getDocument(source: .cache).exists == false)
        registration.remove()
        await device.end()
        await other.end()
    }

    @Test func whatIsNotFromTheServerFails() async throws {
        let backend = try Backend()
        let device = try Device(backend)
        let db = device.db
        try await fill(db)
        let builder = db.bundle()
        #expect(builder.bundleID.count == 20)
        let all = try await db.collection("c").getDocuments(source: .server)
        try builder.add("all", all)
        #expect { try builder.add("all", all) } throws: { isCode(.alreadyExists)($0) }
        #expect { try builder.add("", all) } throws: { isCode(.invalidArgument)($0) }
        let cached = try await db.collection("c").getDocuments(source: .cache)
        #expect { try builder.add("cached", cached) } throws: { isCode(.failedPrecondition)($0) }
        // A document in the cache is the server's, of some time.
        try builder.add(try await db.document("c/0").getDocument(source: .cache))

        try await db.disableNetwork()
        db.document("c/0").updateData(["n": 7], completion: nil)
        let changed = try await db.document("c/0").getDocument(source: .cache)
        #expect { try builder.add(changed) } throws: { isCode(.failedPrecondition)($0) }
        let other = device.database("other")
        let foreign = try await other.document("c/0").getDocument(source: .server)
        #expect { try builder.add(foreign) } throws: { isCode(.invalidArgument)($0) }
        // All of these left the builder as it was.
        let loading = try Device(backend)
        try await loading.db.disableNetwork()
        #expect(try await loading.db.loadBundle(try builder.build()).documentsLoaded == 5)
        #expect(try await loading.db.document("c/0").getDocument(source: .cache).get("n") as? Int == 0)
        await device.end()
        await loading.end()
    }

    /// No client can load a reference to another database.
    @Test func aResultThatWasAddedInPartEndsTheBuilder() async throws {
        let backend = try Backend()
        let device = try Device(backend)
        let url = backend.url("/v1/projects/\(Backend.project)/databases/(default)/documents/c?documentId=x")
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.httpBody = Data(
            #"{"fields": {"r": {"referenceValue": "projects/p/databases/(default)/documents/c/y"}}}"#.utf8)
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        let (_, response) = try await URLSession.shared.data(for: request)
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        let builder = device.db.bundle("b")
        let all = try await device.db.collection("c").getDocuments(source: .server)
        #expect(all.count == 1)
        #expect { try builder.add("all", all) } throws: { isCode(.invalidArgument)($0) }
        #expect { try builder.build() } throws: { isCode(.invalidArgument)($0) }
        await device.end()
    }
}
