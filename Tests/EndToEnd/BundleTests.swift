import Foundation
import FoundationNetworking
import HearthFirestore
import HearthTestSupport
import Testing

/// Clients load bundles from the server's own address.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct BundleTests {
    private static let definition = """
        {"id": "first-page", "documents": ["settings/site"], "public": true,
        "queries": {"all": {"collection": "c", "conditions": [{"orderBy": "n"}]},
        "last": {"collection": "c", "conditions": [{"orderBy": "n"}, {"limitToLast": 2}]}}}
        """
    private static let documentCount = 300

    private func fill(_ backend: Backend) async throws {
        let device = try Device(backend)
        for start in stride(from: 0, to: Self.documentCount, by: 100) {
            let batch = device.db.batch()
            for n in start..<start + 100 {
                batch.setData(
                    ["n": n, "string": String(repeating: "\(n) ", count: 200)],
                    forDocument: device.db.document("c/\(n)"))
            }
            try await batch.commit()
        }
        try await device.db.document("settings/site").setData(["title": "Hearth"])
        await device.end()
    }

    private func fetch(_ backend: Backend) async throws -> Data {
        let (data, response) = try await URLSession.shared.data(from: backend.url("/bundles/bundle"))
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        return data
    }

    @Test func loadsFromAnAddress() async throws {
        let backend = try Backend(bundle: Self.definition)
        try await fill(backend)
        let device = try Device(backend)
        let url = backend.url("/bundles/bundle")
        let progress = try await device.db.loadBundle(from: url)
        #expect(progress.state == .success && progress.documentsLoaded > 0)
        try await device.db.disableNetwork()
        let query = try #require(await device.db.getQuery(named: "last"))
        #expect(try await query.getDocuments(source: .cache).documents.map(\.documentID) == ["298", "299"])

        let other = try Device(backend)
        let folder = TemporaryFolder()
        let file = folder.write("bundle.txt", String(decoding: try await fetch(backend), as: UTF8.self))
        let ends = Recorder<Bool>()
        other.db.loadBundle(from: URL(fileURLWithPath: file)) { progress, error in
            ends.append(progress?.state == .success && error == nil)
        }
        #expect(try await ends.first(1) == [true])

        await #expect {
            try await other.db.loadBundle(from: backend.url("/bundles/none"))
        } throws: { FirestoreErrorCode.notFound ~= $0 }
        await #expect {
            try await other.db.loadBundle(from: URL(string: "http://127.0.0.1:1/bundle")!)
        } throws: { FirestoreErrorCode.unavailable ~= $0 }
        await #expect {
            try await other.db.loadBundle(from: URL(fileURLWithPath: folder.path + "/none"))
        } throws: { FirestoreErrorCode.dataLoss ~= $0 }
        await device.end()
        await other.end()
    }

    @Test func listensGoOnFromTheBundlesReadTime() async throws {
        let backend = try Backend(bundle: Self.definition)
        try await fill(backend)
        let bundle = try await fetch(backend)
        let writer = try Device(backend)
        try await writer.db.document("c/7").updateData(["n": 1000, "string": "short"])
        try await writer.db.document("c/8").delete()
        try await writer.db.document("c/new").setData(["n": 8])
        await writer.end()

        let device = try Device(backend)
        let steps = Recorder<LoadBundleTaskProgress>()
        let end = Recorder<LoadBundleTaskProgress?>()
        let task = device.db.loadBundle(bundle) { progress, _ in end.append(progress) }
        task.addObserver { steps.append($0) }
        let done = try #require(try await end.first(1)[0])
        #expect(done.state == .success)
        #expect(done.documentsLoaded == Self.documentCount + 1 && done.totalDocuments == Self.documentCount + 1)
        #expect(done.bytesLoaded == done.totalBytes && done.totalBytes > bundle.count / 2)
        try await steps.latest { $0.state == .success }
        let loaded = steps.all.map(\.documentsLoaded)
        #expect(loaded == loaded.sorted() && loaded.last == Self.documentCount + 1)
        #expect(backend.network.connectionsAccepted == 2, "loading uses no connection")

        let before = backend.network.bytesToClients
        let query = try #require(await device.db.getQuery(named: "all"))
        #expect(await device.db.getQuery(named: "none") == nil)
        #expect(try await query.getDocuments(source: .cache).count == Self.documentCount)
        let site = try await device.db.document("settings/site").getDocument(source: .cache)
        #expect(site.get("title") as? String == "Hearth")
        let (received, registration) = query.record()
        let first = try #require(try await received.first(1)[0].snapshot)
        #expect(first.metadata.isFromCache && first.count == Self.documentCount)
        let last = try await received.latest { $0.snapshot?.metadata.isFromCache == false }
        #expect(last.changes.split(separator: " ").sorted() == ["+new", "-8", "~7"])
        #expect(last.snapshot?.documents.last?.documentID == "7")
        let resumed = backend.network.bytesToClients - before
        #expect(resumed < 20_000, "only the changes were sent")

        // A client without the bundle must fetch all documents.
        registration.remove()
        await device.end()
        let other = try Device(backend)
        let started = backend.network.bytesToClients
        #expect(try await other.db.collection("c").order(by: "n").getDocuments().count == Self.documentCount)
        let whole = backend.network.bytesToClients - started
        #expect(whole > 10 * resumed, "\(whole) bytes for all, \(resumed) for the changes")
        await other.end()
    }

    @Test func bundlesServeProgramsWithoutANetwork() async throws {
        let backend = try Backend(bundle: Self.definition)
        try await fill(backend)
        let bundle = try await fetch(backend)
        backend.network.cut()
        let device = try Device(backend, isPersistent: true)
        // A local write has precedence over the bundle's document.
        device.db.document("c/299").setData(["n": 500], completion: nil)
        let progress = try await device.db.loadBundle(InputStream(data: bundle))
        #expect(progress.state == .success)
        try await device.restart()
        let query = try #require(await device.db.getQuery(named: "last"))
        #expect(
            QueryEvent(snapshot: try await query.getDocuments(source: .cache)).string
                == "298=298 299=500* pending cache")
        // Loading the same bundle again changes nothing.
        #expect(try await device.db.loadBundle(bundle).state == .success)
        #expect(try await device.db.collection("c").getDocuments(source: .cache).count == Self.documentCount)
        await device.end()
    }

    @Test func brokenBundlesAreRefused() async throws {
        let backend = try Backend(bundle: Self.definition)
        try await fill(backend)
        let bundle = try await fetch(backend)
        let device = try Device(backend)
        let errors = Recorder<Bool>()
        let steps = Recorder<LoadBundleTaskState>()
        let task = device.db.loadBundle(bundle.prefix(bundle.count / 2)) { _, error in errors.append(error != nil) }
        task.addObserver { steps.append($0.state) }
        #expect(try await errors.first(1) == [true])
        try await steps.latest { $0 == .error }
        await #expect(throws: NSError.self) { try await device.db.loadBundle(Data("nonsense".utf8)) }
        #expect(await device.db.getQuery(named: "all") == nil)
        // The complete bundle is accepted afterwards.
        #expect(try await device.db.loadBundle(bundle).state == .success)
        #expect(try await device.db.collection("c").getDocuments(source: .cache).count == Self.documentCount)
        await device.end()
    }
}
