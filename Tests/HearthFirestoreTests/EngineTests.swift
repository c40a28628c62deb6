import Foundation
import HearthModel
import HearthSync
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthFirestore

/// The API on the real engine without a server: the offline behaviour of a program.
struct EngineTests {
    /// A network without a reachable server.
    private final class DeadNetwork: Datastore {
        private final class Stream<Request: Sendable>: RequestStream {
            func send(_ request: Request) {}
            func finish() {}
            func cancel() {}
        }

        private let queue = DispatchQueue(label: "dead")
        private static let reason = Status.unavailable("there is no network")

        func openListen(
            headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<ListenResponse>) -> Void
        ) -> any RequestStream<ListenRequest> {
            queue.async { onEvent(.closed(Self.reason)) }
            return Stream<ListenRequest>()
        }

        func openWrite(
            headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<WriteResponse>) -> Void
        ) -> any RequestStream<WriteRequest> {
            queue.async { onEvent(.closed(Self.reason)) }
            return Stream<WriteRequest>()
        }

        func commit(_ request: CommitRequest, headers: RequestHeaders) async throws(Status) -> CommitResponse {
            throw Self.reason
        }

        func batchGetDocuments(
            _ request: BatchGetDocumentsRequest, headers: RequestHeaders
        ) async throws(Status) -> [BatchGetDocumentsResponse] { throw Self.reason }

        func runAggregationQuery(
            _ request: RunAggregationQueryRequest, headers: RequestHeaders
        ) async throws(Status) -> [RunAggregationQueryResponse] { throw Self.reason }

        func observeReachability(_ changed: @escaping @Sendable () -> Void) {}
        func shutDown() {}
    }

    private func app() throws -> FirebaseApp {
        let name = "engine-\(UUID().uuidString)"
        try FirebaseApp.add(name: name, options: FirebaseOptions(projectID: "projectID"))
        return FirebaseApp.app(name: name)!
    }

    private func firestore(
        _ app: FirebaseApp, cache: any LocalCacheSettings & NSObjectProtocol = MemoryCacheSettings()
    ) -> Firestore {
        let firestore = Firestore.instance(
            app: app, database: "(default)", factory: .syncing { (_) throws(Status) in DeadNetwork() })
        let settings = FirestoreSettings()
        settings.dispatchQueue = DispatchQueue(label: "tests.user")
        settings.cacheSettings = cache
        firestore.settings = settings
        return firestore
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func localWritesShowAtOnce() async throws {
        let db = firestore(try app())
        let cities = db.collection("cities")
        cities.document("zrh").setData(
            ["name": "Zürich", "pop": 400_000, "updated": FieldValue.serverTimestamp()], completion: nil)
        cities.document("brn").setData(["name": "Bern", "pop": 140_000, "tags": ["capital"]], completion: nil)
        cities.document("brn").updateData(["pop": FieldValue.increment(Int64(1))], completion: nil)

        let snapshot = try await cities.order(by: "pop").getDocuments(source: .cache)
        #expect(snapshot.documents.map(\.documentID) == ["brn", "zrh"])
        #expect(snapshot.metadata == SnapshotMetadata(hasPendingWrites: true, isFromCache: true))
        #expect(snapshot.documents[0].data()["pop"] as? Int == 140_001)
        #expect(snapshot.documents[1].data()["updated"] is NSNull)
        #expect(snapshot.documents[1].data(with: .estimate)["updated"] is Timestamp)

        // Uses the cache when the server is known to be unreachable.
        let document = try await cities.document("zrh").getDocument()
        #expect(document.data()?["name"] as? String == "Zürich")
        #expect(document.metadata.isFromCache)
        let matching = try await cities.whereField("tags", arrayContains: "capital").getDocuments()
        #expect(matching.documents.map(\.documentID) == ["brn"])
        try await db.terminate()
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func getOfTheUnknownFailsOffline() async throws {
        let db = firestore(try app())
        for source in [FirestoreSource.default, .server, .cache] {
            do {
                _ = try await db.document("c/unknown").getDocument(source: source)
                Issue.record("must fail")
            } catch FirestoreErrorCode.unavailable {
            } catch {
                Issue.record("another error: \(error)")
            }
        }
        #expect(try await db.collection("c").getDocuments().isEmpty)
        await #expect(throws: NSError.self) { try await db.collection("c").getDocuments(source: .server) }
        try await db.terminate()
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func listenersReceiveLocalWrites() async throws {
        let db = firestore(try app())
        let query = db.collection("c").order(by: "n")
        let received = Locked<[[String]]>([])
        let registration = query.addSnapshotListener(options: SnapshotListenOptions().withSource(.cache)) {
            snapshot, _ in
            let changes = snapshot?.documentChanges.map {
                "\($0.type.rawValue)\($0.document.documentID)@\($0.newIndex == UInt(NSNotFound) ? -1 : Int($0.newIndex))"
            }
            received.with { $0.append(changes ?? ["error"]) }
        }
        #expect(await eventually { received.with { $0.count == 1 } })
        db.document("c/b").setData(["n": 2], completion: nil)
        #expect(await eventually { received.with { $0.count == 2 } })
        db.document("c/a").setData(["n": 1], completion: nil)
        #expect(await eventually { received.with { $0.count == 3 } })
        db.document("c/a").updateData(["n": 3], completion: nil)
        #expect(await eventually { received.with { $0.count == 4 } })
        db.document("c/b").delete(completion: nil)
        #expect(await eventually { received.with { $0.count == 5 } })
        #expect(received.with { $0 } == [[], ["0b@0"], ["0a@0"], ["1a@1"], ["2b@-1"]])
        registration.remove()
        try await db.terminate()
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func aggregatesFromTheCache() async throws {
        let db = firestore(try app())
        let scores = db.collection("scores")
        for n in 1...4 { scores.document("\(n)").setData(n == 4 ? ["other": 1] : ["n": n], completion: nil) }
        let aggregate = scores.aggregate([.count(), .sum("n"), .average("n")])
        let snapshot = try await aggregate.getAggregation(source: .cache)
        #expect(snapshot.count == 3)
        #expect(snapshot.get(.sum("n")) as? Int == 6)
        #expect(try await scores.count.getAggregation(source: .cache).count == 4)
        let received = Locked<[Int]>([])
        let registration = aggregate.addSnapshotListener(source: .cache) { snapshot, _ in
            received.with { $0.append(snapshot?.get(.sum("n")) as? Int ?? -1) }
        }
        #expect(await eventually { received.with { $0 == [6] } })
        scores.document("5").setData(["n": 10], completion: nil)
        #expect(await eventually { received.with { $0 == [6, 16] } })
        registration.remove()
        await #expect(throws: NSError.self) { try await aggregate.getAggregation(source: .server) }
        try await db.terminate()
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func writesSurviveOnDisk() async throws {
        let folder = TemporaryFolder()
        let app = try app()
        let cache = PersistentCacheSettings(sizeBytes: 2_000_000, directory: URL(filePath: folder.path))
        let first = firestore(app, cache: cache)
        first.document("c/d").setData(["a": 1], completion: nil)
        #expect(try await first.document("c/d").getDocument(source: .cache).data()?["a"] as? Int == 1)
        try await first.terminate()
        let second = firestore(app, cache: cache)
        #expect(second !== first)
        let cached = try await second.document("c/d").getDocument(source: .cache)
        #expect(cached.data()?["a"] as? Int == 1)
        #expect(cached.metadata.hasPendingWrites)
        try await second.terminate()
        try await second.clearPersistence()
        let third = firestore(app, cache: cache)
        await #expect(throws: NSError.self) { try await third.document("c/d").getDocument(source: .cache) }
        try await third.terminate()
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func transactionsNeedTheNetwork() async throws {
        let db = firestore(try app())
        let options = TransactionOptions()
        options.maxAttempts = 1
        let code = await withCheckedContinuation { continuation in
            db.runTransaction(
                with: options,
                block: { transaction, errorPointer in
                    do {
                        _ = try transaction.getDocument(db.document("c/d"))
                    } catch {
                        errorPointer?.pointee = error as NSError
                    }
                    return nil
                }
            ) { _, error in continuation.resume(returning: (error as NSError?)?.code) }
        }
        #expect(code == 14)
        try await db.terminate()
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func eachUserHasHisOwnWrites() async throws {
        let app = try app()
        let auth = Auth.auth(app: app)
        try await auth.signIn(withCustomToken: AuthTests.token(#"{"sub": "ada"}"#))
        let db = firestore(app)
        let note = db.document("notes/1")
        note.setData(["string": "ada's"], completion: nil)
        #expect(try await note.getDocument(source: .cache).get("string") as? String == "ada's")
        let waiting = Locked<Int?>(nil)
        db.waitForPendingWrites { error in waiting.with { $0 = (error as NSError?)?.code ?? 0 } }
        try await auth.signIn(withCustomToken: AuthTests.token(#"{"sub": "bob"}"#))
        await #expect(throws: NSError.self) { try await note.getDocument(source: .cache) }
        #expect(await eventually { waiting.with { $0 == FirestoreErrorCode.cancelled.rawValue } })
        try await auth.signIn(withCustomToken: AuthTests.token(#"{"sub": "ada"}"#))
        #expect(try await note.getDocument(source: .cache).get("string") as? String == "ada's")
        try await db.terminate()
    }

    @Test(.timeLimit(.minutes(Patience.minutes)))
    func bundles() async throws {
        let folder = Vectors.folder.deletingLastPathComponent()
        let bundle = try Data(contentsOf: folder.appendingPathComponent("bundle/example.bundle"))
        let name = "engine-\(UUID().uuidString)"
        try FirebaseApp.add(name: name, options: FirebaseOptions(projectID: "test-project"))
        let db = firestore(try #require(FirebaseApp.app(name: name)))
        let progress = try await db.loadBundle(InputStream(data: bundle))
        #expect(progress.state == .success)
        #expect(progress.documentsLoaded == 3)
        #expect(progress.totalDocuments == 3)
        #expect(progress.bytesLoaded == 1650)
        #expect(progress.totalBytes == 1650)
        let query = try #require(await db.getQuery(named: "big"))
        let documents = try await query.getDocuments(source: .cache)
        #expect(!documents.isEmpty)
        #expect(await db.getQuery(named: "unknown") == nil)
        do {
            try await db.loadBundle(Data("nonsense".utf8))
            Issue.record("must fail")
        } catch {
            #expect((error as NSError).domain == FirestoreErrorDomain)
        }
        try await db.terminate()
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func listenersAreInSync() async throws {
        let db = firestore(try app())
        let events = Locked<[String]>([])
        let options = SnapshotListenOptions().withSource(.cache)
        let first = db.collection("c").addSnapshotListener(options: options) { snapshot, _ in
            events.with { $0.append("a\(snapshot?.count ?? -1)") }
        }
        let second = db.collection("c").limit(to: 1).addSnapshotListener(options: options) { snapshot, _ in
            events.with { $0.append("b\(snapshot?.count ?? -1)") }
        }
        #expect(await eventually { events.with { $0.count == 2 } })
        let sync = db.addSnapshotsInSyncListener { events.with { $0.append("sync") } }
        #expect(await eventually { events.with { $0 == ["a0", "b0", "sync"] } })
        db.document("c/d").setData([:], completion: nil)
        #expect(await eventually { events.with { $0.count == 6 } })
        #expect(Set(events.with { $0[3...4] }) == ["a1", "b1"])
        #expect(events.with { $0[5] } == "sync")
        for registration in [first, second, sync] { registration.remove() }
        try await db.terminate()
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func cursorsByDocument() async throws {
        let db = firestore(try app())
        let numbers = db.collection("numbers")
        let batch = db.batch()
        for n in 0..<6 { batch.setData(["n": n % 3], forDocument: numbers.document("d\(n)")) }
        batch.commit(completion: nil)
        let ordered = numbers.order(by: "n")
        let all = try await ordered.getDocuments(source: .cache).documents
        #expect(all.map(\.documentID) == ["d0", "d3", "d1", "d4", "d2", "d5"])
        func ids(_ query: Query) async throws -> [String] {
            try await query.getDocuments(source: .cache).documents.map(\.documentID)
        }
        #expect(try await ids(ordered.start(afterDocument: all[1])) == ["d1", "d4", "d2", "d5"])
        #expect(try await ids(ordered.start(atDocument: all[1]).end(beforeDocument: all[4])) == ["d3", "d1", "d4"])
        #expect(try await ids(ordered.start(after: [1])) == ["d2", "d5"])
        #expect(try await ids(ordered.limit(toLast: 2)) == ["d2", "d5"])
        #expect(try await ids(numbers.whereField(FieldPath.documentID(), in: ["d1", "d5"])) == ["d1", "d5"])
        #expect(try await ids(numbers.whereField("n", isNotEqualTo: 1)) == ["d0", "d3", "d2", "d5"])
        #expect(
            try await ids(
                numbers.whereFilter(
                    .orFilter([.whereField("n", isEqualTo: 0), .whereField("n", isGreaterThan: 1)])))
                == ["d0", "d3", "d2", "d5"])
        try await db.terminate()
    }

    // MARK: Pending writes

    @Test(.timeLimit(.minutes(Patience.minutes))) func pendingWritesAreCounted() async throws {
        let db = firestore(try app())
        var iterator = db.pendingWriteCounts.makeAsyncIterator()
        #expect(try await iterator.next() == 0)
        db.document("c/a").setData(["n": 1], completion: nil)
        #expect(try await iterator.next() == 1)
        let batch = db.batch()
        for n in 0..<3 { batch.setData(["n": n], forDocument: db.document("c/\(n)")) }
        batch.commit(completion: nil)
        #expect(try await iterator.next() == 2, "a batch counts once")
        for n in 0..<20 { db.document("c/a").setData(["n": n], completion: nil) }
        _ = try await db.document("c/a").getDocument(source: .cache)
        #expect(try await iterator.next() == 22, "the numbers in between are not delivered")
        var second = db.pendingWriteCounts.makeAsyncIterator()
        #expect(try await second.next() == 22)
        // A write that the server would reject anyway is not stored.
        await #expect(throws: NSError.self) { try await db.document("c/__x__").setData([:]) }
        try await db.terminate()
        #expect(try await iterator.next() == nil)
        #expect(try await second.next() == nil)
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func pendingWritesOfAnEarlierRunAreCounted() async throws {
        let folder = TemporaryFolder()
        let app = try app()
        let cache = PersistentCacheSettings(sizeBytes: 2_000_000, directory: URL(filePath: folder.path))
        let first = firestore(app, cache: cache)
        for n in 0..<3 { first.document("c/\(n)").setData(["n": n], completion: nil) }
        try await first.terminate()
        let second = firestore(app, cache: cache)
        var iterator = second.pendingWriteCounts.makeAsyncIterator()
        #expect(try await iterator.next() == 3)
        second.document("c/x").setData([:], completion: nil)
        #expect(try await iterator.next() == 4)
        try await second.terminate()
    }

    @Test(.timeLimit(.minutes(Patience.minutes)), arguments: [false, true])
    func pendingWritesAreThoseOfTheUser(isPersistent: Bool) async throws {
        let folder = TemporaryFolder()
        let app = try app()
        let auth = Auth.auth(app: app)
        try await auth.signIn(withCustomToken: AuthTests.token(#"{"sub": "ada"}"#))
        let db =
            isPersistent
            ? firestore(
                app, cache: PersistentCacheSettings(sizeBytes: 2_000_000, directory: URL(filePath: folder.path)))
            : firestore(app)
        var iterator = db.pendingWriteCounts.makeAsyncIterator()
        #expect(try await iterator.next() == 0)
        for n in 1...2 { db.document("notes/\(n)").setData([:], completion: nil) }
        while let count = try await iterator.next(), count < 2 {}
        try await auth.signIn(withCustomToken: AuthTests.token(#"{"sub": "bob"}"#))
        #expect(try await iterator.next() == 0)
        db.document("notes/3").setData([:], completion: nil)
        #expect(try await iterator.next() == 1)
        try await auth.signIn(withCustomToken: AuthTests.token(#"{"sub": "ada"}"#))
        #expect(try await iterator.next() == 2)
        try await db.terminate()
    }

    /// The cache cannot be opened.
    @Test(.timeLimit(.minutes(Patience.minutes))) func pendingWritesOfABrokenInstanceFail() async throws {
        let factory = EngineFactory(
            make: { (_) throws(Status) in throw .resourceExhausted("the disk is full") },
            clearPersistence: { (_) throws(Status) in })
        let db = Firestore.instance(app: try app(), database: "(default)", factory: factory)
        var iterator = db.pendingWriteCounts.makeAsyncIterator()
        let error = await #expect(throws: NSError.self) { try await iterator.next() }
        #expect(error?.domain == FirestoreErrorDomain && error?.code == FirestoreErrorCode.resourceExhausted.rawValue)
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func pendingWritesAreNotObservedWithoutAConsumer() async throws {
        let db = firestore(try app())
        let task = Task {
            var counts: [Int] = []
            for try await count in db.pendingWriteCounts { counts.append(count) }
            return counts
        }
        task.cancel()
        #expect(try await task.value.count <= 1)
        for try await count in db.pendingWriteCounts {
            #expect(count == 0)
            break
        }
        db.document("c/a").setData([:], completion: nil)
        for try await count in db.pendingWriteCounts {
            #expect(count == 1)
            break
        }
        try await db.terminate()
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func indexConfigurations() async throws {
        let folder = TemporaryFolder()
        let db = firestore(
            try app(), cache: PersistentCacheSettings(sizeBytes: 2_000_000, directory: URL(filePath: folder.path)))
        let good = #"{"indexes": [{"collectionGroup": "c", "fields": [{"fieldPath": "a", "order": "ASCENDING"}]}]}"#
        #expect(await code { db.setIndexConfiguration(good, completion: $0) } == 0)
        #expect(await code { db.setIndexConfiguration(InputStream(data: Data(good.utf8)), completion: $0) } == 0)
        #expect(await code { db.setIndexConfiguration("nonsense", completion: $0) } == 3)
        #expect(await code { db.setIndexConfiguration(InputStream(data: Data([0xFF])), completion: $0) } == 3)
        try await db.terminate()
    }

    private func code(_ call: (@escaping ((any Error)?) -> Void) -> Void) async -> Int {
        await withCheckedContinuation { continuation in
            call { error in continuation.resume(returning: (error as NSError?)?.code ?? 0) }
        }
    }
}
