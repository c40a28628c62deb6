import HearthTestSupport
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthEngine
import HearthDocuments
import Synchronization
import Testing

@testable import HearthHost
@testable import HearthFirestoreServer

@Suite("Queries whose clients are slow")
struct SuspendableQueryTests {
    private static let root = ResourceName(
        database: DatabaseName(project: "p", database: "(default)"), path: ResourcePath([]))

    /// A database of 60 documents: `a` has two values, `b` falls, `v` is a vector.
    private func filled() async throws -> Database {
        let registry = DatabaseRegistry(provider: MemoryStoreProvider())
        let database = try registry.database(Self.root.database)
        for number in 0..<60 {
            let fields: [String: Value] = [
                "a": Value.integer(Int64(number % 2)), "b": Value.integer(Int64(100 - number)),
                "v": Value.vector([Double(number), 1.0]),
            ]
            try await database.put("c/\(number)", fields)
        }
        return database
    }

    private static func queries() -> [(name: String, query: Query)] {
        var byName = Query(parent: root, scope: .collection("c"))
        byName.limit = 40
        var ordered = Query(parent: root, scope: .collection("c"))
        ordered.orders = [Query.Order(field: FieldPath("b"), descending: false)]
        var sorted = ordered
        sorted.filter = .field(FieldPath("a"), .equal, Value.integer(1))
        sorted.offset = 3
        sorted.limit = 20
        var nearest = Query(parent: root, scope: .collection("c"))
        nearest.findNearest = Query.FindNearest(
            field: FieldPath("v"), vector: [30, 1], measure: .euclidean, limit: 25, resultField: nil, threshold: nil)
        return [("by name", byName), ("in an index's order", ordered), ("sorted", sorted), ("nearest", nearest)]
    }

    private func run(
        _ query: Query, _ database: Database, suspendedAfter step: Int?, _ disturb: () async throws -> Void
    ) async throws -> [String] {
        let normalized = try NormalizedQuery(query)
        let view = try database.view()
        let readTime = view.readTime
        let reads = LongReads(max: 1)
        let results = try SuspendableQuery(normalized, view, meter: WorkMeter(), requireIndexes: false) {
            read throws(Status) in try database.pastView(at: readTime, under: read)
        }
        var found: [String] = []
        while true {
            if let step, found.count % step == 0 {
                results.suspend()
                #expect(results.isSuspended)
                // A query that waits for its client holds no snapshot.
                #expect(reads.activeCount == 0)
                try await disturb()
                let read = try #require(reads.take())
                try results.resume(read)
            }
            guard let result = try results.next() else { break }
            found.append("\(result.key) \(result.distance ?? 0)")
        }
        return found
    }

    @Test("return the same results when they release their snapshot after some results", arguments: [1, 2, 7])
    func suspended(step: Int) async throws {
        for (name, query) in Self.queries() {
            let expected = try await run(query, try await filled(), suspendedAfter: nil) {}
            #expect(expected.count >= 20, "\(name)")
            let database = try await filled()
            let found = Counter()
            let results = try await run(query, database, suspendedAfter: step) {
                // The query stays in its initial state, whatever is written.
                let number = found.next()
                let changed: [String: Value] = ["a": Value.integer(5), "b": Value.integer(Int64(number))]
                let new: [String: Value] = ["a": Value.integer(1), "b": Value.integer(50), "v": Value.vector([30, 1])]
                try await database.put("c/\(number % 60)", changed)
                try await database.put("c/new\(number)", new)
            }
            #expect(results == expected, "\(name)")
        }
    }

    private final class Counter: Sendable {
        private let value = Mutex(0)
        func next() -> Int {
            value.withLock { value in
                value += 1
                return value
            }
        }
    }

    @Test("hold memory for sorted keys, which is counted and released")
    func sortingMemory() async throws {
        let database = try await filled()
        let budget = MemoryBudget(bytesMax: 1 << 20, shareBytesMax: 1 << 20)
        let small = MemoryBudget(bytesMax: 4 << 10, shareBytesMax: 4 << 10)
        let requester = Requester(account: 1, connection: 1, isAdministrator: false)
        let query = try NormalizedQuery(Self.queries()[2].query)
        for (budget, isEnough) in [(budget, true), (small, true)] {
            let meter = WorkMeter(memory: budget.reservation(for: requester)) {}
            try meter.hold(1 << 10)
            let execution = try QueryExecution(query, view: try database.view(), meter: meter)
            #expect(try execution.takeKeys().count == 20 && isEnough)
        }
        let meter = WorkMeter(memory: small.reservation(for: requester)) {}
        #expect(throws: Status.self) { try meter.hold(1 << 20) }
        #expect(budget.usedBytes == 0)
    }
}

@Suite("Streams of responses")
struct MessageStreamTests {
    /// A source that needs a snapshot for every message, and counts how many are open.
    private final class Source: MessageSource {
        private let reads: Mutex<LongRead?> = Mutex(nil)
        private var isOpen = true
        private var rest: Int
        let isLight: Bool
        init(_ count: Int, isLight: Bool) {
            rest = count
            self.isLight = isLight
        }
        var isSuspended: Bool { !isOpen }
        func hold(_ read: LongRead) { reads.withLock { $0 = read } }
        func suspend() {
            isOpen = false
            reads.withLock { $0 = nil }
        }
        func resume(_ read: LongRead?) {
            isOpen = true
            if let read { hold(read) }
        }
        let isPaused = false
        let meter: WorkMeter? = nil
        func next(onLoop: Bool, to messages: inout MessageBatch) throws(Status) -> Bool {
            if !isOpen { throw .internalError("a suspended source was asked") }
            if rest == 0 { return false }
            rest -= 1
            messages.append([UInt8](repeating: 0, count: 300 << 10))
            return true
        }
    }

    /// A client that takes some messages and then none until it continues.
    private final class Client: ServiceCall, @unchecked Sendable {
        let loop: EventLoop
        let format = MessageFormat.protobuf
        let identity = Identity.nobody
        let requester: Requester
        let cancellation = Cancellation()
        let onceValues: [String] = []
        let triggersValues: [String] = []
        var onWritable: (() -> Void)?
        private let state = Mutex<(received: Int, end: Status?)>((0, nil))
        /// Whether its account may let requests wait.
        var mayPostpone = true
        private let postponements = Mutex(0)
        /// How often the stream was about to wait for others.
        var postponed: Int { postponements.withLock { $0 } }
        private var takes: Bool
        /// Whether it reports capacity after each message, although the stream does not wait for that.
        private let tellsAlways: Bool

        init(_ loop: EventLoop, _ connection: UInt64, takes: Bool, tellsAlways: Bool = false) {
            self.loop = loop
            self.takes = takes
            self.tellsAlways = tellsAlways
            requester = Requester(account: 1, connection: connection, isAdministrator: false)
        }
        var isFinished: Bool { end != nil }
        var end: Status? { state.withLock { $0.end } }
        var received: Int { state.withLock { $0.received } }
        func send(_ message: [UInt8]) -> Bool {
            state.withLock { $0.received += 1 }
            if tellsAlways { loop.execute { [self] in onWritable?() } }
            return takes
        }
        func finish(_ status: Status) { state.withLock { $0.end = status } }
        func postpone() throws(Status) {
            postponements.withLock { $0 += 1 }
            if !mayPostpone { throw LargeRequests.tooMany }
        }
        func drain() {
            loop.execute { [self] in
                takes = true
                onWritable?()
            }
        }
    }

    @Test("let others read while their clients take nothing, however many those are", arguments: [true, false])
    func stalled(isLight: Bool) async throws {
        let loop = try EventLoop()
        try loop.start()
        let pool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 2)
        let reads = LongReads(max: 4)
        let slow = (0..<64).map { Client(loop, UInt64($0), takes: false) }
        for client in slow {
            loop.execute {
                MessageStream(Source(10, isLight: isLight), to: client, pool: pool, reads: reads).start()
            }
        }
        await until { slow.allSatisfy { $0.received > 0 } }
        // None of them has read to the end, and none blocks another reader.
        let bystander = Client(loop, 100, takes: true)
        loop.execute { MessageStream(Source(10, isLight: isLight), to: bystander, pool: pool, reads: reads).start() }
        await until { bystander.end != nil }
        #expect(bystander.end?.code == .ok)
        #expect(bystander.received == 10)
        #expect(slow.allSatisfy { $0.end == nil })
        for client in slow { client.drain() }
        await until { slow.allSatisfy { $0.end != nil } }
        #expect(slow.allSatisfy { $0.end?.code == .ok && $0.received == 10 })
        await until { reads.activeCount == 0 }
        pool.stop()
        loop.stopAndJoin()
    }

    @Test("return their requests' memory before they wait for others, and fail when they may not wait")
    func postponed() async throws {
        let loop = try EventLoop()
        try loop.start()
        let pool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 1)
        let reads = LongReads(max: 1)
        let held = try #require(reads.take())
        let (light, heavy, refused) = (
            Client(loop, 1, takes: true), Client(loop, 2, takes: true), Client(loop, 3, takes: true)
        )
        refused.mayPostpone = false
        loop.execute {
            MessageStream(Source(1, isLight: true), to: light, pool: pool, reads: reads).start()
            MessageStream(Source(1, isLight: false), to: heavy, pool: pool, reads: reads).start()
            MessageStream(Source(1, isLight: false), to: refused, pool: pool, reads: reads).start()
        }
        await until { light.end != nil && refused.end != nil && reads.waitingCount == 1 }
        #expect(light.postponed == 0 && light.end?.code == .ok)
        #expect(heavy.postponed == 1 && heavy.end == nil)
        #expect(refused.end?.code == .resourceExhausted && refused.received == 0)
        held.end()
        await until { heavy.end?.code == .ok }
        pool.stop()
        loop.stopAndJoin()
    }

    @Test("continue on the loop without a long read when they are light, although each tick ends early")
    func lightOnes() async throws {
        let loop = try EventLoop()
        try loop.start()
        let pool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 1)
        let reads = LongReads(max: 1)
        let held = try #require(reads.take())
        let client = Client(loop, 1, takes: true)
        loop.execute {
            // Each look at the clock is a second later: as on a thread that others keep from running.
            var time = MonotonicTime.now
            MessageStream(
                Source(5, isLight: true), to: client, pool: pool, reads: reads,
                now: {
                    time = time.advanced(milliseconds: 1000)
                    return time
                }
            ).start()
        }
        await until { client.end != nil || reads.waitingCount > 0 }
        #expect(client.end?.code == .ok && client.received == 5)
        #expect(reads.waitingCount == 0)
        held.end()
        pool.stop()
        loop.stopAndJoin()
    }

    @Test("end once, whatever makes them continue", arguments: [true, false])
    func endsOnce(isLight: Bool) async throws {
        let loop = try EventLoop()
        try loop.start()
        let pool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 1)
        let client = Client(loop, 1, takes: true, tellsAlways: true)
        let ends = Mutex<[Status.Code]>([])
        loop.execute {
            MessageStream(Source(5, isLight: isLight), to: client, pool: pool, reads: LongReads(max: 1)) { status in
                ends.withLock { $0.append(status.code) }
            }.start()
        }
        await until { !ends.withLock { $0 }.isEmpty }
        // Events that were queued before the end arrive after it.
        for _ in 0..<3 { await withCheckedContinuation { done in loop.execute { done.resume() } } }
        #expect(ends.withLock { $0 } == [.ok])
        #expect(client.received == 5)
        pool.stop()
        loop.stopAndJoin()
    }

    @Test("leave the queue when their calls are cancelled", arguments: [1, 100])
    func cancelled(count: Int) async throws {
        let loop = try EventLoop()
        try loop.start()
        let pool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 1)
        let reads = LongReads(max: 1)
        let held = try #require(reads.take())
        let clients = (0..<count).map { Client(loop, UInt64($0), takes: true) }
        for client in clients {
            loop.execute {
                MessageStream(Source(10, isLight: false), to: client, pool: pool, reads: reads).start()
            }
        }
        await until { reads.waitingCount == count }
        #expect(clients.allSatisfy { $0.cancellation.handlerCount == 1 })
        for client in clients { client.cancellation.cancel() }
        #expect(reads.waitingCount == 0)
        // A call that is cancelled already does not begin to wait.
        loop.execute { MessageStream(Source(10, isLight: false), to: clients[0], pool: pool, reads: reads).start() }
        let last = Client(loop, 1000, takes: true)
        loop.execute { MessageStream(Source(10, isLight: false), to: last, pool: pool, reads: reads).start() }
        await until { reads.waitingCount == 1 }
        held.end()
        await until { last.end != nil }
        #expect(last.end?.code == .ok)
        #expect(last.cancellation.handlerCount == 0)
        #expect(clients.allSatisfy { $0.received == 0 })
        pool.stop()
        loop.stopAndJoin()
    }
}
