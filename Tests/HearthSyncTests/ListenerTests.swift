import HearthCache
import HearthModel
import HearthWire
import Testing

@testable import HearthSync

@Suite("Listeners")
struct ListenerTests {
    private let query = ClientQuery.collection("c")

    private func snapshot(
        _ ids: [String] = [], isFromCache: Bool = true, changes: [ViewSnapshot.Change.Kind] = [],
        syncStateChanged: Bool = false, hasCachedResults: Bool = false, isPending: Bool = false
    ) -> ViewSnapshot {
        let documents = ids.map { ClientDocument.found("c/\($0)") }
        return ViewSnapshot(
            query: query, documents: DocumentSet(documents, comparator: query.comparator), oldDocuments: DocumentSet(),
            changes: changes.map { ViewSnapshot.Change(kind: $0, document: .found("c/a")) },
            mutatedKeys: isPending ? [ResourcePath("c/a")] : [], isFromCache: isFromCache,
            syncStateChanged: syncStateChanged, excludesMetadataChanges: false, hasCachedResults: hasCachedResults)
    }

    /// The events of listeners with these options.
    private func received(
        _ options: SyncClient.ListenOptions, _ body: (QueryListener) -> Void
    ) -> [ViewSnapshot] {
        var events: [ViewSnapshot] = []
        let listener = QueryListener(query, options) { if case .success(let snapshot) = $0 { events.append(snapshot) } }
        body(listener)
        return events
    }

    @Test("The first event waits for a result")
    func firstEvent() {
        typealias Options = SyncClient.ListenOptions
        let plain = Options()
        let waiting = Options(waitsForSyncWhenOnline: true)
        let cache = Options(source: .cache)
        let cases: [(Options, OnlineState, ViewSnapshot, Bool)] = [
            (plain, .unknown, snapshot(), false), (plain, .online, snapshot(), false),
            (plain, .offline, snapshot(), true), (plain, .unknown, snapshot(["a"]), true),
            (plain, .unknown, snapshot(hasCachedResults: true), true),
            (plain, .unknown, snapshot(isFromCache: false), true),
            (waiting, .unknown, snapshot(["a"]), false), (waiting, .online, snapshot(["a"]), false),
            (waiting, .offline, snapshot(), true), (waiting, .online, snapshot(isFromCache: false), true),
            (cache, .unknown, snapshot(), true),
        ]
        for (index, (options, state, snapshot, isRaised)) in cases.enumerated() {
            let events = received(options) { listener in
                _ = listener.take(state)
                #expect(listener.take(snapshot) == isRaised, "case \(index)")
            }
            #expect(events.count == (isRaised ? 1 : 0), "case \(index)")
        }
        let late = received(waiting) { listener in
            #expect(!listener.take(snapshot(["a", "b"], changes: [.modified])))
            #expect(listener.take(.offline) && !listener.take(.offline))
        }
        #expect(
            late.count == 1 && late[0].changes.map(\.kind) == [.added, .added], "for a listener all documents are new")
        #expect(late[0].syncStateChanged && late[0].oldDocuments.isEmpty)
    }

    @Test("Later events: changes always, states only on request")
    func laterEvents() {
        let updates = [
            snapshot(["a"], changes: [.modified]), snapshot(["a"], changes: [.metadata]),
            snapshot(["a"], isFromCache: false, syncStateChanged: true),
            snapshot(["a"], isFromCache: false, isPending: true),
            snapshot(["a"], isFromCache: false, isPending: true),
        ]
        func count(document: Bool, query: Bool) -> Int {
            let options = SyncClient.ListenOptions(
                includesDocumentMetadataChanges: document, includesQueryMetadataChanges: query)
            let events = received(options) { listener in
                _ = listener.take(snapshot(["a"]))
                for update in updates { _ = listener.take(update) }
            }
            #expect(events.allSatisfy { $0.excludesMetadataChanges == !document })
            return events.count - 1
        }
        #expect(count(document: false, query: false) == 1)
        #expect(count(document: true, query: false) == 2)
        #expect(count(document: false, query: true) == 3)
        #expect(count(document: true, query: true) == 4)
    }

    @Test("When the cache fails, all waiting callers receive the error once")
    func failure() throws {
        let persistence = FailingPersistence()
        let backend = SpecBackend()
        let core = SyncCore(
            database: SpecDriver.database, persistence: persistence, datastore: backend,
            credentials: SpecCredentials(.unauthenticated),
            options: .init(firesTimers: false, schedulesMaintenance: false, tokens: { $0(.success(nil)) }))
        core.start()
        core.queue.drain()
        var errors: [Status] = []
        var completions: [Status?] = []
        let listener = QueryListener(query, .init()) { if case .failure(let error) = $0 { errors.append(error) } }
        try core.perform { engine throws(Status) in
            try engine.eventManager.add(listener)
            try engine.write([.set("c/a")]) { completions.append($0) }
        }
        core.queue.drain()
        persistence.fails = true
        #expect(throws: Status.self) {
            try core.perform { engine throws(Status) in try engine.write([.set("c/b")]) { completions.append($0) } }
        }
        core.queue.drain()
        #expect(errors.map(\.code) == [.dataLoss] && completions.map { $0?.code } == [.dataLoss])
        #expect(!backend.isWatchOpen)
        persistence.fails = false
        #expect(throws: Status.self, "it stays so") { try core.perform { _ in } }
        core.terminate {}
        core.queue.drain()
    }

    @Test("On a full disk only the write fails")
    func fullDisk() throws {
        let persistence = FailingPersistence()
        let core = SyncCore(
            database: SpecDriver.database, persistence: persistence, datastore: SpecBackend(),
            credentials: SpecCredentials(.unauthenticated),
            options: .init(firesTimers: false, schedulesMaintenance: false, tokens: { $0(.success(nil)) }))
        core.start()
        core.queue.drain()
        var completions: [Status?] = []
        persistence.fails = true
        persistence.code = .resourceExhausted
        try core.perform { engine throws(Status) in try engine.write([.set("c/a")]) { completions.append($0) } }
        #expect(completions.map { $0?.code } == [.resourceExhausted])
        persistence.fails = false
        try core.perform { engine throws(Status) in try engine.write([.set("c/b")]) { completions.append($0) } }
        #expect(completions.count == 1)
        core.terminate {}
        core.queue.drain()
    }
}

/// A cache in memory that fails on request.
private final class FailingPersistence: Persistence {
    private let memory = MemoryPersistence()
    let journal: WriteJournal? = nil
    var journalNumber: Int64 = 0
    var fails = false
    var code = Status.Code.dataLoss

    func transaction<Result>(
        _ label: StaticString, isDurable: Bool, _ body: () throws(Status) -> Result
    ) throws(Status) -> Result {
        if fails { throw Status(code, "the test requested it") }
        return try memory.transaction(label, isDurable: isDurable, body)
    }

    var currentSequenceNumber: Int64 { memory.currentSequenceNumber }
    func mutationQueue(for user: ClientUser) -> any MutationQueue { memory.mutationQueue(for: user) }
    func overlayCache(for user: ClientUser) -> any OverlayCache { memory.overlayCache(for: user) }
    func indexManager(for user: ClientUser) -> any IndexManager { memory.indexManager(for: user) }
    var remoteDocuments: any RemoteDocumentCache { memory.remoteDocuments }
    var targets: any TargetCache { memory.targets }
    var bundles: any BundleCache { memory.bundles }
    var references: any ReferenceDelegate { memory.references }
    var collector: (any LRUCollector)? { memory.collector }
    func shutDown() {}
}

/// The engine's streams with a server that the test controls.
@Suite("Streams")
struct StreamTests {
    private func driver() throws -> SpecDriver {
        try SpecDriver(cache: .memory, isEager: true, limboResolutionsMax: 100)
    }

    @Test("A message that cannot be read ends the stream, and is not requested again at once")
    func poison() throws {
        let driver = try driver()
        defer { driver.shutDown() }
        _ = try driver.listen(.collection("c"), source: .default)
        #expect(driver.backend.isWatchOpen)
        for round in 0..<3 {
            try driver.say(.init(documentChange: .init(document: .init(name: "projects/other/x"), targetIds: [2])))
            #expect(!driver.backend.isWatchOpen && driver.core.queue.isScheduled(.listenStreamBackoff), "\(round)")
            driver.skipBackoff(ofWatchStream: true)
            #expect(driver.backend.isWatchOpen)
        }
    }

    @Test("An answer that does not match its write ends the stream; the write is sent again")
    func misfit() throws {
        let driver = try driver()
        defer { driver.shutDown() }
        try driver.write(.set("c/a"))
        for _ in 0..<2 {
            let sent = try driver.backend.takeWrite()
            #expect(sent.writes.count == 1)
            try driver.backend.answerWrite(.init(streamToken: [1], commitTime: .init(.seconds(5))))
            driver.core.queue.drain()
            #expect(driver.acknowledged.isEmpty && driver.rejected.isEmpty)
            driver.skipBackoff(ofWatchStream: true)
        }
        _ = try driver.backend.takeWrite()
        try driver.backend.answerWrite(
            .init(
                streamToken: [1], writeResults: [.init(updateTime: .init(.seconds(5)))], commitTime: .init(.seconds(5)))
        )
        driver.core.queue.drain()
        #expect(driver.acknowledged == ["c/a"])
    }

    @Test(
        "An acknowledged write stays visible when the server's first state is older than it", arguments: [true, false])
    func ownWrite(isEager: Bool) throws {
        let driver = try SpecDriver(cache: .memory, isEager: isEager, limboResolutionsMax: 100)
        defer { driver.shutDown() }
        try driver.write(.set("c/a"))
        let query = ClientQuery(path: ResourcePath("c/a"))
        let target = try driver.listen(query, source: .default)
        _ = try driver.backend.takeWrite()
        let time = TimestampMessage(.seconds(5))
        try driver.backend.answerWrite(
            .init(streamToken: [1], writeResults: [.init(updateTime: time)], commitTime: time))
        driver.core.queue.drain()
        #expect(driver.acknowledged == ["c/a"])
        for change in [TargetChangeMessage.TargetChangeType.add, .current] {
            try driver.say(.init(targetChange: .init(targetChangeType: change, targetIds: [target], resumeToken: [1])))
        }
        try driver.say(.init(targetChange: .init(readTime: .init(.seconds(4)))))
        guard case .snapshot(let last) = try #require(driver.events.last) else {
            throw Status.internalError("no snapshot")
        }
        #expect(last.documents.count == 1 && !last.isFromCache)
    }

    @Test("A cache listener raises no event for an acknowledgement, and releases its documents with its end")
    func cacheListener() throws {
        let driver = try driver()
        defer { driver.shutDown() }
        var query = ClientQuery.collection("c")
        query.filters = [.field(FieldPath("n"), .equal, .integer(1))]
        func write(_ id: String, _ n: Int64) throws {
            var fields = MapValue()
            fields.set(FieldPath("n"), .integer(n))
            try driver.write(Mutation(key: ResourcePath("c/\(id)"), kind: .set(fields)))
        }
        func acknowledge(_ seconds: Int64) throws {
            _ = try driver.backend.takeWrite()
            let time = TimestampMessage(.seconds(seconds))
            try driver.backend.answerWrite(
                .init(streamToken: [1], writeResults: [.init(updateTime: time)], commitTime: time))
            driver.core.queue.drain()
        }
        for id in ["a", "b"] { try write(id, 1) }
        _ = try driver.listen(query, source: .cache)
        #expect(driver.events.count == 1)
        for seconds in 1...2 as ClosedRange<Int64> { try acknowledge(seconds) }
        #expect(driver.events.count == 1 && driver.acknowledged == ["c/a", "c/b"])
        try write("b", 2)
        #expect(driver.events.count == 2)
        try driver.unlisten(query)
        try acknowledge(3)
        #expect(driver.events.count == 2)
        _ = try driver.listen(.collection("c"), source: .cache)
        guard case .snapshot(let last) = try #require(driver.events.last) else {
            throw Status.internalError("no snapshot")
        }
        #expect(driver.events.count == 3 && last.documents.isEmpty)
    }

    @Test("Every listener falls back to the cache while the provider of tokens is silent")
    func silentProvider() throws {
        let driver = try SpecDriver(cache: .memory, isEager: true, limboResolutionsMax: 100, tokens: { _ in })
        defer { driver.shutDown() }
        // One after another, as reads do.
        for round in 1...3 {
            _ = try driver.listen(.collection("c"), source: .default)
            #expect(driver.core.queue.isScheduled(.onlineStateTimeout), "round \(round)")
            driver.core.queue.runDelayed(only: .onlineStateTimeout)
            #expect(driver.events.count == round)
            try driver.unlisten(.collection("c"))
        }
        // Beside each other, and when the program enables the network meanwhile.
        _ = try driver.listen(.collection("c"), source: .default)
        try driver.engine { $0.remoteStore.enableNetwork() }
        #expect(driver.core.queue.isScheduled(.onlineStateTimeout))
        driver.core.queue.runDelayed(only: .onlineStateTimeout)
        #expect(driver.events.count == 4)
        _ = try driver.listen(.collection("d"), source: .default)
        #expect(driver.events.count == 5)
    }

    @Test("When a token has expired, the next connection has a new one", arguments: [false, true])
    func expiredToken(isHealthy: Bool) throws {
        let driver = try driver()
        defer { driver.shutDown() }
        _ = try driver.listen(.collection("c"), source: .default)
        if isHealthy { driver.core.queue.runDelayed(only: .listenStreamHealth) }
        try driver.backend.closeWatch(Status(.unauthenticated, "expired"))
        driver.core.queue.drain()
        #expect(driver.credentials.invalidations == 1)
        driver.skipBackoff(ofWatchStream: true)
        #expect(driver.backend.isWatchOpen && driver.credentials.invalidations == 1)
    }

    @Test("A stream that opens without listeners is closed after the idle timeout")
    func forsaken() throws {
        let driver = try driver()
        defer { driver.shutDown() }
        _ = try driver.listen(.collection("c"), source: .default)
        try driver.backend.closeWatch(.unavailable("gone"))
        driver.core.queue.drain()
        try driver.unlisten(.collection("c"))
        driver.skipBackoff(ofWatchStream: true)
        #expect(driver.backend.isWatchOpen && driver.core.queue.isScheduled(.listenStreamIdle))
        driver.core.queue.runDelayed(through: .listenStreamIdle)
        #expect(!driver.backend.isWatchOpen)
    }

    @Test("At most ten batches are in flight")
    func pipeline() throws {
        let driver = try driver()
        defer { driver.shutDown() }
        for id in 0..<25 { try driver.write(.set("c/\(id)")) }
        #expect(driver.backend.sentWrites.count == 10)
        #expect(try driver.engine { $0.remoteStore.outstandingWriteCount } == 10)
        for id in 0..<25 {
            _ = try driver.backend.takeWrite()
            let time = TimestampMessage(.seconds(Int64(100 + id)))
            try driver.backend.answerWrite(
                .init(streamToken: [1], writeResults: [.init(updateTime: time)], commitTime: time))
            driver.core.queue.drain()
        }
        #expect(driver.acknowledged == (0..<25).map { "c/\($0)" })
        #expect(driver.backend.sentWrites.isEmpty)
    }
}
