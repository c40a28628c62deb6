import Dispatch
import Foundation
import HearthModel
import HearthTestSupport
import HearthWire
import Synchronization
import Testing

@testable import HearthSync

/// Answers single calls; its streams send nothing.
private final class CallServer: Datastore, @unchecked Sendable {
    private let lock = NSLock()
    private var requests: [any WireMessage] = []
    private let aggregates: MapValue
    private let documents: [BatchGetDocumentsResponse]
    /// Ends each stream of writes; nil keeps them open.
    private let endOfWrites: Status?

    init(aggregates: MapValue = [:], documents: [BatchGetDocumentsResponse] = [], endOfWrites: Status? = nil) {
        self.aggregates = aggregates
        self.documents = documents
        self.endOfWrites = endOfWrites
    }

    func note(_ request: any WireMessage) { lock.withLock { requests.append(request) } }
    var lastRequest: (any WireMessage)? { lock.withLock { requests.last } }

    private final class Silent<Request: Sendable>: RequestStream {
        func send(_ request: Request) {}
        func finish() {}
        func cancel() {}
    }

    func openListen(
        headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<ListenResponse>) -> Void
    ) -> any RequestStream<ListenRequest> { Silent<ListenRequest>() }

    func openWrite(
        headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<WriteResponse>) -> Void
    ) -> any RequestStream<WriteRequest> {
        if let endOfWrites { onEvent(.closed(endOfWrites)) }
        return Silent<WriteRequest>()
    }

    func commit(_ request: CommitRequest, headers: RequestHeaders) async throws(Status) -> CommitResponse {
        note(request)
        return CommitResponse()
    }

    func batchGetDocuments(
        _ request: BatchGetDocumentsRequest, headers: RequestHeaders
    ) async throws(Status) -> [BatchGetDocumentsResponse] {
        note(request)
        return documents
    }

    func runAggregationQuery(
        _ request: RunAggregationQueryRequest, headers: RequestHeaders
    ) async throws(Status) -> [RunAggregationQueryResponse] {
        note(request)
        return [RunAggregationQueryResponse(result: AggregationResultMessage(aggregateFields: aggregates))]
    }

    func observeReachability(_ changed: @escaping @Sendable () -> Void) {}
    func shutDown() {}
}

/// The results of callbacks, in order.
private final class Mailbox<Element: Sendable>: Sendable {
    private struct State {
        var elements: [Element] = []
        var waiting: CheckedContinuation<Element?, Never>?
    }

    private let state = Mutex(State())

    func put(_ element: Element) {
        let waiting = state.withLock { state in
            if state.waiting == nil { state.elements.append(element) }
            return state.waiting.take()
        }
        waiting?.resume(returning: element)
    }

    /// The next element; nil when the suite's time limit ends the wait.
    func next() async -> Element? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let element = state.withLock { state -> Element?? in
                    if !state.elements.isEmpty { return state.elements.removeFirst() }
                    if Task.isCancelled { return .some(nil) }
                    state.waiting = continuation
                    return nil
                }
                if let element { continuation.resume(returning: element) }
            }
        } onCancel: {
            state.withLock { $0.waiting.take() }?.resume(returning: nil)
        }
    }

    var isEmpty: Bool { state.withLock { $0.elements.isEmpty } }
}

@Suite("Sync client", .timeLimit(.minutes(Patience.minutes)))
struct SyncClientTests {
    private static let database = DatabaseName(project: "demo")
    private static let everything = SyncClient.ListenOptions(
        includesDocumentMetadataChanges: true, includesQueryMetadataChanges: true)

    private func client(
        _ server: any Datastore = CallServer(), cache: SyncConfiguration.Cache = .memoryEager,
        credentials: any CredentialsProvider = EmptyCredentials()
    ) throws -> SyncClient {
        let queue = DispatchQueue(label: "callbacks")
        return try SyncClient(
            configuration: SyncConfiguration(database: Self.database, appName: "app", cache: cache), datastore: server,
            credentials: credentials
        ) { body in queue.async(execute: body) }
    }

    private func terminate(_ client: SyncClient) async {
        await withCheckedContinuation { done in client.terminate { done.resume() } }
    }

    @Test("A write is visible at once, and also after a restart")
    func writes() async throws {
        let folder = TemporaryFolder()
        let cache = SyncConfiguration.Cache.persistent(folder: folder.path, sizeBytes: -1)
        let first = try client(cache: cache)
        let events = Mailbox<Result<ViewSnapshot, Status>>()
        let listener = first.listen(to: .collection("c"), options: Self.everything) { events.put($0) }
        let answers = Mailbox<Status?>()
        first.write([.set("c/a", ["n": .integer(1)])]) { answers.put($0) }
        let snapshot = try #require(try await events.next()?.get())
        #expect(snapshot.documents.map(\.fields) == [["n": .integer(1)]])
        #expect(snapshot.isFromCache && snapshot.hasPendingWrites && snapshot.changes.map(\.kind) == [.added])
        first.remove(listener)
        first.write([.set("c/b")]) { answers.put($0) }
        #expect(throws: Status.self, "one client at a time") { try client(cache: cache) }
        #expect(answers.isEmpty, "the server hasn't answered")
        await terminate(first)
        for _ in 0..<2 { #expect(await answers.next()??.code == .cancelled) }
        #expect(events.isEmpty, "a removed listener receives no event")
        let second = try client(cache: cache)
        let documents = Mailbox<Result<ViewSnapshot, Status>>()
        second.documentsFromCache(.collection("c")) { documents.put($0) }
        let found = try #require(try await documents.next()?.get())
        #expect(found.documents.map(\.key) == [ResourcePath("c/a"), ResourcePath("c/b")] && found.isFromCache)
        await terminate(second)
        try SyncClient.clearPersistence(
            SyncConfiguration(database: Self.database, appName: "app", cache: cache))
    }

    /// The folder as it is when the process is killed while the client's queue is busy.
    private func copyOfFolder(
        _ folder: TemporaryFolder, _ client: SyncClient, whileBusy calls: () -> Void
    ) async throws -> TemporaryFolder {
        let isBusy = DispatchSemaphore(value: 0)
        let mayContinue = DispatchSemaphore(value: 0)
        // Its callbacks run on the client's queue.
        client.enableNetwork { _ in
            isBusy.signal()
            mayContinue.wait()
        }
        try await blocking { isBusy.wait() }
        defer { mayContinue.signal() }
        calls()
        return try copy(folder)
    }

    private func copy(_ folder: TemporaryFolder) throws -> TemporaryFolder {
        let copy = TemporaryFolder()
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            try FileManager.default.copyItem(atPath: "\(folder.path)/\(name)", toPath: "\(copy.path)/\(name)")
        }
        return copy
    }

    private func value(_ client: SyncClient, _ key: String) async throws -> Value? {
        let documents = Mailbox<Result<ClientDocument, Status>>()
        client.documentFromCache(ResourcePath(key)) { documents.put($0) }
        return try await documents.next()?.get().fields["n"]
    }

    private func pendingWrites(_ client: SyncClient) async -> Int? {
        let counts = Mailbox<Int>()
        let listener = client.observePendingWrites(onCount: { counts.put($0) }, onEnd: { _ in })
        defer { client.remove(listener) }
        return await counts.next()
    }

    @Test("A write is stored when its call returns, for its user, and is made once")
    func journal() async throws {
        let folder = TemporaryFolder()
        let credentials = SpecCredentials(ClientUser(uid: "ann"))
        let increment = Mutation(
            key: ResourcePath("c/a"), kind: .patch([:], mask: []),
            transforms: [FieldTransform(path: FieldPath("n"), operation: .increment(.integer(1)))])
        func start(_ folder: TemporaryFolder, _ credentials: SpecCredentials) throws -> SyncClient {
            try SyncClient(
                configuration: SyncConfiguration(
                    database: Self.database, appName: "app", cache: .persistent(folder: folder.path, sizeBytes: -1)),
                datastore: CallServer(), credentials: credentials, callbacks: { $0() })
        }
        let first = try start(folder, credentials)
        let killed = try await copyOfFolder(folder, first) {
            for _ in 0..<3 { first.write([increment]) { _ in } }
            credentials.change(ClientUser(uid: "bob"))
            first.write([.set("c/a", ["n": .integer(70)])]) { _ in }
            credentials.change(.unauthenticated)
            first.write([.set("c/b", ["n": .integer(5)])]) { _ in }
        }
        // The files as they are after the queue was busy: some writes are in the journal and in the database.
        #expect(try await value(first, "c/b") == .integer(5))
        let later = try copy(folder)
        for copy in [killed, later] {
            let expected: [(uid: String?, a: Int64?, b: Int64?, count: Int)] = [
                ("ann", 3, nil, 3), ("bob", 70, nil, 1), (nil, nil, 5, 1),
            ]
            for (uid, a, b, count) in expected {
                let second = try start(copy, SpecCredentials(ClientUser(uid: uid)))
                #expect(await pendingWrites(second) == count)
                let found = Mailbox<Result<ViewSnapshot, Status>>()
                second.documentsFromCache(.collection("c")) { found.put($0) }
                let documents = try #require(try await found.next()?.get()).documents
                let values = Dictionary(uniqueKeysWithValues: documents.map { ($0.key.string, $0.fields["n"]) })
                #expect(values["c/a"] ?? nil == a.map { .integer($0) })
                #expect(values["c/b"] ?? nil == b.map { .integer($0) })
                await terminate(second)
            }
        }
        await terminate(first)
    }

    @Test("A program that only writes is warned when the server cannot be reached")
    func writesWithoutServer() async throws {
        let warnings = Mailbox<String>()
        var configuration = SyncConfiguration(database: Self.database, appName: "app", cache: .memoryEager)
        configuration.onWarning = { warnings.put($0) }
        let server = CallServer(endOfWrites: .unavailable("no route"))
        let client = try SyncClient(configuration: configuration, datastore: server, credentials: EmptyCredentials()) {
            $0()
        }
        client.write([.set("c/a")]) { _ in }
        #expect(await warnings.next()?.contains("cannot be reached: UNAVAILABLE: no route") == true)
        await terminate(client)
        #expect(warnings.isEmpty, "warned once")
    }

    /// A server that cannot decode a request ends the stream with all its targets.
    @Test("A listen that ends the stream fails alone, and is not retried")
    func strictServer() async throws {
        let server = StrictServer()
        let client = try client(server)
        let events = Mailbox<String>()
        for collection in ["a", "bad1", "b", "late", "bad2", "c"] {
            _ = client.listen(to: .collection(collection), options: Self.everything) { event in
                switch event {
                case .failure(let error): events.put("\(collection) \(error.code.name)")
                case .success(let snapshot): if !snapshot.isFromCache { events.put("\(collection) current") }
                }
            }
        }
        var received: Set<String> = []
        while received.count < 6 { received.insert(try #require(await events.next())) }
        #expect(
            received == [
                "a current", "b current", "c current", "bad1 INVALID_ARGUMENT", "late INVALID_ARGUMENT",
                "bad2 INVALID_ARGUMENT",
            ])
        // Each target is requested alone once; the rejected ones are not requested again.
        let streams = server.requests
        #expect(streams.joined().count { $0 == "bad1" } <= 2 && streams.joined().count { $0 == "bad2" } <= 2)
        await terminate(client)
    }

    @Test("A listen that is removed before it ends the stream causes no failure of another listen")
    func removedSuspect() async throws {
        let client = try client(StrictServer())
        let events = Mailbox<String>()
        let bad = client.listen(to: .collection("slow"), options: Self.everything) { _ in }
        client.remove(bad)
        _ = client.listen(to: .collection("a"), options: Self.everything) { event in
            switch event {
            case .failure(let error): events.put(error.code.name)
            case .success(let snapshot): if !snapshot.isFromCache { events.put("current") }
            }
        }
        #expect(await events.next() == "current")
        await terminate(client)
    }

    @Test("A target that is removed while it loads does not block the others")
    func removedWhileLoading() async throws {
        let server = StrictServer()
        let client = try client(server)
        let events = Mailbox<String>()
        func listen(_ collection: String) -> SyncClient.Listener {
            client.listen(to: .collection(collection), options: Self.everything) { event in
                switch event {
                case .failure(let error): events.put("\(collection) \(error.code.name)")
                case .success(let snapshot): if !snapshot.isFromCache { events.put("\(collection) current") }
                }
            }
        }
        let loading = listen("long")
        _ = listen("bad")
        _ = listen("c")
        #expect(await eventually { server.requests.contains(["long"]) })
        client.remove(loading)
        var received: Set<String> = []
        while received.count < 2 { received.insert(try #require(await events.next())) }
        #expect(received == ["bad INVALID_ARGUMENT", "c current"])
        await terminate(client)
    }

    @Test("Waiting callers receive the termination of the client")
    func termination() async throws {
        let client = try client()
        let answers = Mailbox<String>()
        client.write([.set("c/a")]) { answers.put("write \($0?.code.name ?? "")") }
        client.waitForPendingWrites { answers.put("wait \($0?.code.name ?? "")") }
        let listener = client.listen(
            to: .collection("d"), options: Self.everything, onEnd: { answers.put("end") },
            onEvent: { _ in })
        let removed = client.listen(
            to: .collection("e"), options: Self.everything, onEnd: { answers.put("not this one") }, onEvent: { _ in })
        client.remove(removed)
        // A source that never returns data.
        let isReading = DispatchSemaphore(value: 0)
        let mayGo = DispatchSemaphore(value: 0)
        client.loadBundle(
            read: { _ in
                isReading.signal()
                mayGo.wait()
                return []
            },
            onProgress: { progress, error in
                answers.put("bundle \(progress.state) \(error?.code.name ?? "")")
            })
        try await blocking { isReading.wait() }
        await terminate(client)
        var received: [String] = []
        for _ in 0..<4 { received.append(try #require(await answers.next())) }
        #expect(received.sorted() == ["bundle error FAILED_PRECONDITION", "end", "wait CANCELLED", "write CANCELLED"])
        mayGo.signal()
        client.write([.set("c/b")]) { answers.put("late \($0?.code.name ?? "")") }
        #expect(await answers.next() == "late FAILED_PRECONDITION")
        client.remove(listener)
        await terminate(client)
        #expect(answers.isEmpty, "and nothing more")
    }

    /// Objects that a listener's closure captures are released with the listener, however it ends.
    @Test("A listener is released when it is removed, is rejected, or its client is terminated")
    func letGo() async throws {
        final class Held: Sendable {}
        let client = try client()
        weak var removed: Held?
        weak var ended: Held?
        func listen() -> (SyncClient.Listener, SyncClient.Listener) {
            let (first, second) = (Held(), Held())
            (removed, ended) = (first, second)
            return (
                client.listen(to: .collection("c"), options: Self.everything) { [first] _ in
                    withExtendedLifetime(first) {}
                },
                client.listen(to: .collection("d"), options: Self.everything) { [second] _ in
                    withExtendedLifetime(second) {}
                }
            )
        }
        var listeners: (SyncClient.Listener, SyncClient.Listener)? = listen()
        if let (first, _) = listeners { client.remove(first) }
        listeners = nil
        await withCheckedContinuation { done in client.enableNetwork { _ in done.resume() } }
        #expect(removed == nil)
        #expect(ended != nil, "releasing it does not remove it")
        await terminate(client)
        #expect(ended == nil)
    }

    @Test("A document from the cache: found, missing, or unknown")
    func documentFromCache() async throws {
        let client = try client()
        let answers = Mailbox<Result<ClientDocument, Status>>()
        client.write([.set("c/a"), Mutation(key: ResourcePath("c/b"), kind: .delete)]) { _ in }
        for id in ["a", "b", "x"] { client.documentFromCache(ResourcePath("c/\(id)")) { answers.put($0) } }
        #expect(try await answers.next()?.get().isFound == true)
        #expect(try await answers.next()?.get().kind == .missing)
        guard case .failure(let error)? = await answers.next() else { throw SpecFailure("c/x is unknown") }
        #expect(error.code == .unavailable)
        await terminate(client)
    }

    @Test("Waiting for pending writes ends at once when there are none, and is cancelled when the user changes")
    func pendingWrites() async throws {
        let credentials = SpecCredentials(.unauthenticated)
        let client = try client(credentials: credentials)
        let answers = Mailbox<Status?>()
        client.waitForPendingWrites { answers.put($0) }
        #expect(await answers.next() == .some(nil))
        client.write([.set("c/a")]) { _ in }
        client.waitForPendingWrites { answers.put($0) }
        credentials.change(ClientUser(uid: "x"))
        #expect(await answers.next()??.code == .cancelled)
        await terminate(client)
    }

    @Test("After the end every call fails")
    func terminated() async throws {
        let client = try client()
        await terminate(client)
        await terminate(client)
        let answers = Mailbox<Status?>()
        client.write([.set("c/a")]) { answers.put($0) }
        #expect(await answers.next()??.code == .failedPrecondition)
    }

    @Test("Aggregations are requested once each, and returned under the caller's names")
    func aggregations() async throws {
        let server = CallServer(aggregates: ["aggregation_0": .integer(3), "aggregation_1": .double(1.5)])
        let client = try client(server)
        var query = ClientQuery.collection("c", [filter("n", .greaterThan, .integer(0))], limit: 5)
        query.orders = [Query.Order(field: FieldPath("n"), descending: false)]
        query.limitType = .last
        let result = try await client.aggregate(
            query,
            [
                Aggregation(alias: "count", operator: .count(upTo: nil)),
                Aggregation(alias: "again", operator: .count(upTo: nil)),
                Aggregation(alias: "avg_n", operator: .average(FieldPath("n"))),
            ])
        #expect(result == ["count": .integer(3), "again": .integer(3), "avg_n": .double(1.5)])
        let request = try #require(server.lastRequest as? RunAggregationQueryRequest)
        let asked = try #require(request.structuredAggregationQuery)
        #expect(asked.aggregations.map(\.alias) == ["aggregation_0", "aggregation_1"])
        #expect(asked.structuredQuery?.orderBy.map(\.direction) == [.descending], "reversed, none implied")
        let done = Mailbox<Status?>()
        client.disableNetwork { done.put($0) }
        _ = await done.next()
        await #expect(throws: Status.self) {
            try await client.aggregate(query, [Aggregation(alias: "count", operator: .count(upTo: nil))])
        }
        await terminate(client)
    }

    @Test("Documents are looked up in the given order, and commits carry all writes")
    func calls() async throws {
        let root = Self.database.documentsRoot
        let server = CallServer(documents: [
            BatchGetDocumentsResponse(missing: root + "/c/b", readTime: TimestampMessage(.seconds(9))),
            BatchGetDocumentsResponse(
                found: DocumentMessage(
                    name: root + "/c/a", fields: ["n": .null], updateTime: TimestampMessage(.seconds(3)))),
        ])
        let client = try client(server)
        let documents = try await client.lookUp([ResourcePath("c/a"), ResourcePath("c/b"), ResourcePath("c/a")])
        #expect(documents.map(\.kind) == [.found, .missing, .found])
        #expect(documents.map(\.version) == [.seconds(3), .seconds(9), .seconds(3)])
        await #expect(throws: Status.self) { try await client.lookUp([ResourcePath("c/x")]) }
        let verify = Mutation(key: ResourcePath("c/a"), kind: .verify, precondition: .updateTime(.seconds(3)))
        try await client.commit([.set("c/b"), verify])
        let request = try #require(server.lastRequest as? CommitRequest)
        #expect(request.writes.count == 2 && request.writes[1].verify == root + "/c/a" && request.transaction.isEmpty)
        await terminate(client)
    }

    @Test("A bundle reports its progress; a damaged one its error")
    func bundles() async throws {
        let bytes = [UInt8](
            try Data(contentsOf: Conformance.folder("bundle").appending(path: "example.bundle")))
        let client = try SyncClient(
            configuration: SyncConfiguration(
                database: DatabaseName(project: "test-project"), appName: "app", cache: .memoryEager),
            datastore: CallServer(), credentials: EmptyCredentials()
        ) { $0() }
        func load(_ bytes: [UInt8]) async throws -> [SyncClient.BundleProgress] {
            let updates = Mailbox<(SyncClient.BundleProgress, Status?)>()
            let source = Pieces(bytes)
            client.loadBundle(read: { source.next(min($0, 100)) }) { updates.put(($0, $1)) }
            var all: [SyncClient.BundleProgress] = []
            while let (progress, error) = await updates.next() {
                all.append(progress)
                #expect((error != nil) == (progress.state == .error))
                if progress.state != .inProgress { break }
            }
            return all
        }
        let damaged = try await load(Array(bytes.dropLast(3)))
        #expect(damaged.last?.state == .error)
        let progress = try await load(bytes)
        #expect(progress.map(\.documentsLoaded) == [0, 1, 2, 3, 3])
        #expect(progress.map(\.bytesLoaded) == [0, 1092, 1504, 1650, 1650])
        #expect(progress.last?.state == .success && progress.last?.totalDocuments == 3)
        #expect(try await load(bytes).count == 1, "it was already loaded")
        let query = Mailbox<ClientQuery?>()
        client.namedQuery("last-two") { query.put($0) }
        client.namedQuery("unknown") { query.put($0) }
        let found = try #require(await query.next() ?? nil)
        #expect(found.limit == 2 && found.limitType == .last && found.path == ResourcePath("cities"))
        #expect(await query.next() == .some(nil))
        let documents = Mailbox<Result<ViewSnapshot, Status>>()
        client.documentsFromCache(found) { documents.put($0) }
        let snapshot = try #require(try await documents.next()?.get())
        #expect(snapshot.documents.map(\.key) == [ResourcePath("cities/zrh"), ResourcePath("cities/ber")])
        await terminate(client)
    }

    /// Used by one thread at a time.
    private final class Pieces: @unchecked Sendable {
        private var bytes: ArraySlice<UInt8>
        init(_ bytes: [UInt8]) { self.bytes = bytes[...] }

        func next(_ count: Int) -> [UInt8] {
            let piece = bytes.prefix(count)
            bytes = bytes.dropFirst(count)
            return Array(piece)
        }
    }

    @Test("Index configurations are read; invalid ones fail")
    func indexConfiguration() async throws {
        let json = """
            {"indexes": [{"collectionGroup": "c", "queryScope": "COLLECTION", "fields": [
              {"fieldPath": "a.b", "order": "ASCENDING"}, {"fieldPath": "t", "arrayConfig": "CONTAINS"},
              {"fieldPath": "z", "order": "DESCENDING"}]}], "fieldOverrides": []}
            """
        let indexes = try ClientIndexConfiguration(json: json).indexes
        #expect(indexes.map(\.collectionGroup) == ["c"])
        #expect(indexes[0].segments.map(\.path.string) == ["a.b", "t", "z"])
        #expect(indexes[0].segments.map(\.kind) == [.ascending, .contains, .descending])
        let faults = [
            "", "[]", "{", "{}", "{\"indexes\": 1}", "{\"indexes\": [{}]}",
            "{\"indexes\": [{\"collectionGroup\": \"c\"}]}",
            "{\"indexes\": [{\"collectionGroup\": \"c\", \"fields\": [{\"order\": \"ASCENDING\"}]}]}",
        ]
        for fault in faults {
            #expect(code { _ = try ClientIndexConfiguration(json: fault) } == .invalidArgument, "\(fault)")
        }
        let client = try client()
        let answers = Mailbox<Status?>()
        client.setIndexConfiguration("{", completion: { answers.put($0) })
        #expect(await answers.next() == .some(nil), "a memory cache has no indexes")
        await terminate(client)
    }

    @Test("A query by a client-side index finds the documents of a scan")
    func indexes() async throws {
        let folder = TemporaryFolder()
        let cache = try folder.open()
        let store = LocalStore(cache, user: .unauthenticated)
        try store.configure([FieldIndex("c", ("n", .ascending))])
        for id in 0..<120 { _ = try store.write([.set("c/\(id)", ["n": .integer(Int64(id % 40))])]) }
        let query = ClientQuery.collection("c", [filter("n", .greaterThan, .integer(35))], limit: 7)
        for _ in 0..<4 {
            let documents = try store.execute(query, usesPreviousResults: true).documents
            let view = View(query, remoteKeys: [])
            _ = view.apply(view.computeFirst(documents))
            #expect(view.documents.map { $0.fields["n"] } == [36, 36, 36, 37, 37, 37, 38].map { Value.integer($0) })
            try store.backfillIndexes()
        }
        #expect(try store.backfillIndexes() == 0, "all is written")
        try store.configure([])
        #expect(try store.execute(query, usesPreviousResults: true).documents.count >= 7)
        cache.shutDown()
    }
}
