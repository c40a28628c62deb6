import HearthConcurrency
import HearthEvents
import HearthModel
import HearthTestDoubles
import HearthTestSupport
import HearthWebSocket
import HearthWire
import Synchronization
import Testing

@testable import HearthDocuments
@testable import HearthEngine
@testable import HearthFirestoreServer
@testable import HearthHost
@testable import HearthNetwork

/// A connection whose client reads or does not.
private final class ChangeConnection: ExchangeTransport, Sendable {
    private struct State {
        var status: Int?
        var headers: [HTTPHeader] = []
        var bytes: [UInt8] = []
        var isOver = false
        var isFull = false
        var writeCount = 0
    }

    private let state = Mutex(State())

    var status: Int? { state.withLock { $0.status } }
    var body: [UInt8] { state.withLock { $0.bytes } }
    var isOver: Bool { state.withLock { $0.isOver } }
    var writeCount: Int { state.withLock { $0.writeCount } }
    func header(_ name: String) -> String? { state.withLock { $0.headers.firstValue(name) } }
    func setFull(_ isFull: Bool) { state.withLock { $0.isFull = isFull } }

    func respond(status: Int, headers: [HTTPHeader], body: [UInt8]) {
        state.withLock { state in
            state.status = status
            state.headers = headers
            state.bytes = body
            state.isOver = true
        }
    }

    func start(status: Int, headers: [HTTPHeader]) {
        state.withLock { state in
            state.status = status
            state.headers = headers
        }
    }

    func write(_ bytes: [UInt8]) -> Bool {
        state.withLock { state in
            state.bytes += bytes
            state.writeCount += 1
            return !state.isFull
        }
    }

    func end(trailers: [HTTPHeader]) { state.withLock { $0.isOver = true } }
    func abort() { state.withLock { $0.isOver = true } }
    func consumed(_ bytes: Int) {}
    func setReadingPaused(_ isPaused: Bool) {}
    func upgradeToWebSocket(
        fields: [HTTPHeader], limits: WebSocketLimits, deflate: WebSocketDeflate?
    ) -> WebSocketChannel? { nil }
}

/// One database, whose reads may fail and are counted.
private final class OneStore: StoreProvider {
    private final class Counted: Store {
        let inner: FaultyStore
        let snapshots: SharedBox<Atomic<Int>>

        let refused: SharedBox<Atomic<Int>>

        init(_ inner: FaultyStore, _ snapshots: SharedBox<Atomic<Int>>, _ refused: SharedBox<Atomic<Int>>) {
            self.inner = inner
            self.snapshots = snapshots
            self.refused = refused
        }

        func snapshot() throws(Status) -> any Snapshot {
            snapshots.value.add(1, ordering: .relaxed)
            do throws(Status) {
                return try inner.snapshot()
            } catch {
                refused.value.add(1, ordering: .relaxed)
                throw error
            }
        }
        func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
            try inner.write(body)
        }
        func maintain() {}
        func close() { inner.close() }
        func close(because reason: Status) { inner.close() }
    }

    let store = FaultyStore()
    private let box = SharedBox(Atomic(0))
    private let refusedBox = SharedBox(Atomic(0))
    private let isMade = Atomic(false)
    var snapshots: Int { box.value.load(ordering: .relaxed) }
    /// Those that could not be taken.
    var refused: Int { refusedBox.value.load(ordering: .relaxed) }

    func open(_ database: DatabaseName) throws(Status) -> any Store {
        isMade.store(true, ordering: .relaxed)
        return Counted(store, box, refusedBox)
    }
    func contains(_ database: DatabaseName) throws(Status) -> Bool {
        isMade.load(ordering: .relaxed) && database.database == "(default)"
    }
    func databases() throws(Status) -> [DatabaseName] { [] }
    func delete(_ database: DatabaseName) throws(Status) { isMade.store(false, ordering: .relaxed) }
}

/// Readers over HTTP: what is sent when, and what is left at their end.
@Suite struct ChangeStreamTests {
    /// A service over memory, with a loop.
    private final class Site {
        let loop: EventLoop
        let pool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 1)
        let provider = OneStore()
        let registry: DatabaseRegistry
        let service: FirestoreService
        let readers: ChangeReaders
        let name = DatabaseName(project: "p", database: "(default)")
        let heartbeatMilliseconds: Int

        init(readersMax: Int = 10, heartbeatMilliseconds: Int = 3_600_000, isEmulator: Bool = true) throws {
            loop = try EventLoop()
            try loop.start()
            self.heartbeatMilliseconds = heartbeatMilliseconds
            registry = DatabaseRegistry(provider: provider)
            readers = ChangeReaders(max: readersMax)
            service = FirestoreService(
                registry: registry, pool: pool, options: FirestoreService.Options(),
                authenticator: Authenticator(isEmulator: isEmulator, project: "p"),
                access: AccessControl(isEmulator: isEmulator))
        }

        var database: Database { get throws { try registry.database(name) } }

        func get(
            _ target: String, _ headers: [HTTPHeader] = [], isFull: Bool = false, method: String = "GET"
        ) async -> (connection: ChangeConnection, exchange: HTTPExchange) {
            let connection = ChangeConnection()
            connection.setFull(isFull)
            let http = ChangesHTTP(
                service: service, readers: readers, project: "p",
                observer: RequestObserver(metrics: RequestMetrics(loopCount: 1)),
                heartbeatMilliseconds: heartbeatMilliseconds)
            let head = HTTPRequestHead(
                method: method, target: target, authority: "h", scheme: "http", headers: headers, version: .http1_1,
                remoteAddress: "192.0.2.1:1", connectionNumber: 1, isSecure: false)
            let loop = loop
            let exchange: HTTPExchange = await withCheckedContinuation { continuation in
                loop.execute {
                    let exchange = HTTPExchange(
                        loop: loop, head: head, transport: connection, bodyBytesMax: 1000,
                        input: HeldInput(ServerMemory().received, address: "192.0.2.1:1", connection: 1))
                    #expect(http.begin(exchange))
                    continuation.resume(returning: exchange)
                }
            }
            return (connection, exchange)
        }

        /// All that was queued for the loop and the workers has run.
        func settle() async {
            for _ in 0..<5 {
                await withCheckedContinuation { continuation in
                    pool.run(.brief, for: .server, refused: { _ in continuation.resume() }) { continuation.resume() }
                }
                await onLoop {}
            }
        }

        func onLoop(_ body: @escaping @Sendable () -> Void) async {
            await withCheckedContinuation { continuation in
                loop.execute {
                    body()
                    continuation.resume()
                }
            }
        }

        func stop() {
            pool.stop()
            loop.stopAndJoin()
            registry.close()
        }
    }

    private static let root = "/hearth/v1/changes"

    @Test func aWaitingReaderGetsEachCommit() async throws {
        let site = try Site()
        defer { site.stop() }
        let database = try site.database
        let (connection, _) = await site.get("\(Self.root)?wait=forever")
        #expect(await eventually { connection.status == 200 })
        #expect(connection.header("content-type") == "application/x-ndjson")
        for number in 1...50 {
            try await database.put("a/b", ["n": .integer(Int64(number))])
            #expect(await eventually { ((try? ReadLine.all(connection.body))?.count ?? 0) == number })
        }
        #expect(try ReadLine.all(connection.body).map(\.after) == Array(1...50))
        #expect(!connection.isOver && site.readers.present == [site.name: 1])
    }

    @Test func aReaderThatDoesNotReadIsPaused() async throws {
        let site = try Site()
        defer { site.stop() }
        let database = try site.database
        let filling = String(repeating: "x", count: 20_000)
        for number in 0..<100 { try await database.put("a/d\(number)", ["t": .string(filling)]) }
        let start = ChangeToken(incarnation: 0, version: 0).string
        let (paused, pausedExchange) = await site.get("\(Self.root)?wait=forever&after=\(start)", isFull: true)
        #expect(await eventually { paused.writeCount == 1 })
        for number in 0..<20 { try await database.put("a/d\(number)", ["t": .string("y" + filling)]) }
        await site.settle()
        #expect(paused.writeCount == 1 && paused.body.count < ChangeReading.stepBytes + 30_000)
        paused.setFull(false)
        await site.onLoop { pausedExchange.becameWritable() }
        #expect(await eventually { ((try? ReadLine.all(paused.body))?.count ?? 0) == 120 })
        #expect(!paused.isOver)
    }

    @Test func theEndOfTheServerIsTheLastLine() async throws {
        let site = try Site()
        defer { site.stop() }
        let (lines, _) = await site.get("\(Self.root)?wait=forever")
        let (events, _) = await site.get("\(Self.root)?wait=60", [HTTPHeader("accept", "text/event-stream")])
        #expect(await eventually { lines.status == 200 && events.status == 200 })
        #expect(events.header("content-type") == "text/event-stream")
        site.service.streams.close()
        #expect(await eventually { lines.isOver && events.isOver })
        #expect(try ReadLine.all(lines.body).last?.errorCode == 503)
        #expect(String(decoding: events.body, as: UTF8.self).hasPrefix("event: error\ndata: {\"error\":{\"code\":503,"))
        #expect(site.readers.present.isEmpty)
        let (late, _) = await site.get("\(Self.root)?wait=forever")
        #expect(await eventually { late.status == 503 })
    }

    @Test func aClientThatLeavesLeavesNothing() async throws {
        let site = try Site()
        defer { site.stop() }
        let (connection, exchange) = await site.get("\(Self.root)?wait=forever")
        #expect(await eventually { connection.status == 200 && site.readers.present.count == 1 })
        await site.onLoop { exchange.cancel() }
        #expect(await eventually { site.readers.present.isEmpty })
        try await site.database.put("a/b", ["n": .integer(1)])
        await site.onLoop {}
        #expect(connection.body.isEmpty)
    }

    @Test func aDatabaseThatIsClearedOrDeletedEndsItsReaders() async throws {
        let site = try Site()
        defer { site.stop() }
        try await site.database.put("a/b", ["n": .integer(1)])
        let (connection, _) = await site.get("\(Self.root)?wait=forever")
        #expect(await eventually { connection.status == 200 })
        let database = try site.database
        try await withCheckedThrowingContinuation { continuation in
            database.clear { continuation.resume(with: $0) }
        }
        #expect(await eventually { connection.isOver })
        #expect(try ReadLine.all(connection.body).last?.errorCode == 410)
        let (second, _) = await site.get("\(Self.root)?wait=forever")
        #expect(await eventually { second.status == 200 })
        try site.registry.delete(site.name)
        #expect(await eventually { second.isOver })
        #expect(try ReadLine.all(second.body).last?.errorCode == 404)
    }

    @Test func heartbeatsMoveThePositionOn() async throws {
        let site = try Site(heartbeatMilliseconds: 5)
        defer { site.stop() }
        let database = try site.database
        let (lines, _) = await site.get("\(Self.root)?wait=forever&document=z/*")
        let (events, _) = await site.get(
            "\(Self.root)?wait=forever&document=z/*", [HTTPHeader("accept", "text/event-stream")])
        #expect(await eventually { lines.status == 200 && events.status == 200 })
        try await database.put("a/b", ["n": .integer(1)])
        let token = ChangeToken(incarnation: database.incarnation, version: database.newestVersion).string
        #expect(
            await eventually {
                guard let last = (try? ReadLine.all(lines.body))?.last else { return false }
                return last.token == token && last.heartbeat != nil
            })
        #expect(await eventually { String(decoding: events.body, as: UTF8.self).hasSuffix(": \nid: \(token)\n\n") })
    }

    @Test func aWaitEnds() async throws {
        let site = try Site()
        defer { site.stop() }
        let (connection, _) = await site.get("\(Self.root)?wait=0.02")
        #expect(await eventually { connection.isOver })
        #expect(connection.status == 200)
        let (atOnce, _) = await site.get(Self.root)
        #expect(await eventually { atOnce.isOver && atOnce.status == 200 })
        #expect(await eventually { site.readers.present.isEmpty })
        for ended in [connection, atOnce] {
            let lines = try ReadLine.all(ended.body)
            #expect(lines.map(\.token) == [ChangeToken(incarnation: 0, version: 0).string])
            #expect(lines.first?.heartbeat != nil)
        }
    }

    /// A reader that ends has the position behind what it did not want, so that it does not fall out of the retention.
    @Test func theEndIsAPosition() async throws {
        let site = try Site()
        defer { site.stop() }
        let database = try site.database
        try await database.put("a/b", ["n": .integer(1)])
        let begin = ChangeToken(incarnation: database.incarnation, version: database.newestVersion).string
        for number in 2...4 { try await database.put("a/b", ["n": .integer(Int64(number))]) }
        let end = ChangeToken(incarnation: database.incarnation, version: database.newestVersion).string
        for (query, count) in [
            ("after=\(begin)&document=z/*", 0), ("after=\(begin)&document=z/*&wait=0.02", 0),
            ("snapshot=true&document=z/*", 0), ("after=\(end)", nil), ("after=\(begin)", 3),
        ] as [(String, Int?)] {
            let (connection, _) = await site.get("\(Self.root)?\(query)")
            #expect(await eventually { connection.isOver })
            let lines = try ReadLine.all(connection.body)
            #expect(lines.filter { $0.heartbeat == nil }.count == count ?? 0, "\(query)")
            #expect(lines.last?.token == (count == nil ? nil : end), "\(query)")
        }
    }

    /// A commit elsewhere wakes nobody: the position moves with the next heartbeat, which this reader does not have.
    @Test func commitsElsewhereWakeNoReader() async throws {
        let site = try Site()
        defer { site.stop() }
        let database = try site.database
        func cost() async throws -> Int {
            let before = site.provider.snapshots
            for number in 0..<20 { try await database.put("a/b", ["n": .integer(Int64(number))]) }
            await site.settle()
            return site.provider.snapshots - before
        }
        let without = try await cost()
        let (reader, _) = await site.get("\(Self.root)?wait=forever&document=z/*")
        let (below, _) = await site.get("\(Self.root)?wait=forever&document=y/**")
        #expect(await eventually { reader.status == 200 && below.status == 200 })
        await site.settle()
        #expect(try await cost() == without)
        for path in ["z/k", "y/a/b/c"] { try await database.put(path, ["n": .integer(7)]) }
        for connection in [reader, below] {
            #expect(await eventually { (try? ReadLine.all(connection.body))?.map(\.after) == [7] })
        }
    }

    /// A snapshot of hours must not begin anew because the store had no reader to spare for a moment.
    @Test func aPassingFailureDoesNotEndASnapshot() async throws {
        let site = try Site()
        defer { site.stop() }
        let database = try site.database
        let filling = String(repeating: "x", count: 20_000)
        for number in 100..<140 { try await database.put("a/d\(number)", ["t": .string(filling)]) }
        let (connection, exchange) = await site.get("\(Self.root)?snapshot=true", isFull: true)
        #expect(await eventually { connection.writeCount == 1 })
        connection.setFull(false)
        site.provider.store.setUnreadable(true)
        await site.onLoop { exchange.becameWritable() }
        #expect(await eventually { site.provider.refused > 0 })
        site.provider.store.setUnreadable(false)
        #expect(await eventually { connection.isOver })
        let lines = try ReadLine.all(connection.body)
        #expect(lines.map(\.document) == (100..<140).map { "a/d\($0)" } && lines.last?.isLast == true)
    }

    /// A failure that stays ends it.
    @Test func aFailureThatStaysIsTheLastLine() async throws {
        let site = try Site()
        defer { site.stop() }
        let filling = String(repeating: "x", count: 200_000)
        for number in 0..<4 { try await site.database.put("a/d\(number)", ["t": .string(filling)]) }
        let (connection, exchange) = await site.get("\(Self.root)?snapshot=true", isFull: true)
        #expect(await eventually { connection.writeCount == 1 })
        site.provider.store.setUnreadable(true)
        await site.onLoop { exchange.becameWritable() }
        #expect(await eventually { connection.isOver })
        #expect(try ReadLine.all(connection.body).last?.errorCode == 429)
    }

    @Test func eventsHaveTheirParts() async throws {
        let site = try Site()
        defer { site.stop() }
        try await site.database.put("a/b", ["n": .integer(1)])
        let (connection, _) = await site.get(
            "\(Self.root)/p/(default)?snapshot=true", [HTTPHeader("accept", "text/event-stream")])
        #expect(await eventually { connection.isOver })
        let parts = String(decoding: connection.body, as: UTF8.self).split(
            separator: "\n", omittingEmptySubsequences: false)
        try #require(parts.count == 5)
        let line = try ReadLine(parts[2].dropFirst(6))
        #expect(
            parts[0] == "id: \(line.token)" && parts[1] == "event: snapshot" && parts[3].isEmpty && parts[4].isEmpty)
        #expect(line.document == "a/b" && line.isLast)
    }

    @Test func noCredentialHasAllReaders() throws {
        let readers = ChangeReaders(max: 100)
        let name = DatabaseName(project: "p")
        func begun(_ credential: UInt8) -> Int {
            var count = 0
            while (try? readers.begin(name, [credential])) != nil { count += 1 }
            return count
        }
        #expect(begun(1) == 50 && begun(2) == 25 && begun(3) == 13)
        #expect(readers.present == [name: 88])
        // One that has none gets one as long as there are any.
        for credential in UInt8(10)..<22 { try readers.begin(name, [credential]) }
        do throws(Status) {
            try readers.begin(name, [99])
            Issue.record("there are too many")
        } catch {
            #expect(error.code == .resourceExhausted && error.message.contains("has 100 readers"))
        }
        for _ in 0..<50 { readers.end(name, [1]) }
        do throws(Status) {
            for _ in 0..<100 { try readers.begin(name, [2]) }
            Issue.record("one has too many")
        } catch {
            #expect(error.code == .resourceExhausted && error.message.hasPrefix("This credential has 38 of 100"))
        }
        #expect(readers.present == [name: 63])
        try ChangeReaders(max: 1).begin(name, [1])
    }

    @Test func readersCountForTheirCredential() async throws {
        let site = try Site(readersMax: 3)
        defer { site.stop() }
        let owner = [HTTPHeader("authorization", "Bearer owner")]
        let target = "\(Self.root)?wait=forever"
        var open: [HTTPExchange] = []
        for _ in 0..<2 { open.append(await site.get(target, owner).exchange) }
        #expect(await eventually { site.readers.present.values.reduce(0, +) == 2 })
        let (refused, _) = await site.get(target, owner)
        #expect(await eventually { refused.isOver })
        #expect(refused.status == 429)
        #expect(String(decoding: refused.body, as: UTF8.self).contains("This credential has 2 of 3 readers"))
        // Nobody may read, too, as there are no rules; and what has ended leaves its share.
        open.append(await site.get(target).exchange)
        #expect(await eventually { site.readers.present.values.reduce(0, +) == 3 })
        let first = open[0]
        await site.onLoop { first.onCancel?() }
        #expect(await eventually { site.readers.present.values.reduce(0, +) == 2 })
        for exchange in open.dropFirst() { await site.onLoop { exchange.onCancel?() } }
        #expect(await eventually { site.readers.present.isEmpty })
    }

    @Test func whatIsWrongIsAnsweredBeforeTheFirstLine() async throws {
        let site = try Site(readersMax: 0)
        defer { site.stop() }
        let old = ChangeToken(incarnation: 5, version: 5).string
        for (target, status, word) in [
            ("\(Self.root)?bogus=1", 400, "bogus"), ("\(Self.root)/p", 404, "PROJECT/DATABASE"),
            ("\(Self.root)/p/q/r", 404, "PROJECT/DATABASE"), ("\(Self.root)/p/absent", 404, "absent"),
            ("\(Self.root)/p/%zz", 400, "%zz"), ("\(Self.root)/%2F/x", 400, "Invalid"),
            (Self.root, 429, "readers"),
        ] {
            let (connection, _) = await site.get(target)
            #expect(await eventually { connection.isOver })
            let body = String(decoding: connection.body, as: UTF8.self)
            #expect(connection.status == status && body.contains(word), "\(target): \(connection.status ?? 0) \(body)")
        }
        let (wrongMethod, _) = await site.get(Self.root, method: "POST")
        #expect(await eventually { wrongMethod.status == 405 })
        let second = try Site()
        defer { second.stop() }
        let (connection, _) = await second.get("\(Self.root)?after=\(old)")
        #expect(await eventually { connection.isOver })
        let body = String(decoding: connection.body, as: UTF8.self)
        #expect(connection.status == 410 && body.contains("OUT_OF_RANGE") && body.contains("\"code\":410"))
    }
}
