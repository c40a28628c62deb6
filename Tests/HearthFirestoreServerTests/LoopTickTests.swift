import HearthTestSupport
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthEngine
import HearthDocuments
import HearthWire
import Synchronization
import Testing

@testable import HearthFirestoreServer

/// The work of one tick of an event loop, counted in steps.
@Suite("One tick of a loop")
struct LoopTickTests {
    // MARK: Commits and targets

    @Test("matches a change with some thousand queries and targets, however many exist")
    func matching() async throws {
        let harness = try ListenHarness()
        let client = await harness.client(connection: 1)
        let count = 3000
        for id in 1...count {
            let filter =
                #"{"fieldFilter":{"field":{"fieldPath":"z"},"op":"GREATER_THAN","value":{"integerValue":"-\#(id)"}}}"#
            await client.ask([ListenHarness.target(id, "c", #","where":\#(filter)"#)])
        }
        await until { client.currentCount == count }
        try await harness.database.put("c/d", ["z": .integer(1)])
        await until { client.shown.count == count }
        let (most, all) = await harness.onLoop {
            (client.stream?.listeners?.matchingStepsOfTickMax ?? 0, client.stream?.listeners?.matchingSteps ?? 0)
        }
        // A query, its target, and the end.
        #expect(all == 2 * count + 1)
        #expect(most <= 2500)
        await client.leave()
        harness.stop()
    }

    @Test("notes nothing for a target that is removed while a change is being matched")
    func removedMeanwhile() async throws {
        let harness = try ListenHarness()
        let client = await harness.client(connection: 1)
        let count = 2500
        for id in 1...count {
            let filter =
                #"{"fieldFilter":{"field":{"fieldPath":"z"},"op":"GREATER_THAN","value":{"integerValue":"-\#(id)"}}}"#
            await client.ask([ListenHarness.target(id, "c", #","where":\#(filter)"#)])
        }
        await until { client.currentCount == count }
        try await harness.database.put("c/d", ["z": .integer(1)])
        var removed: Set<Int32> = []
        for id in stride(from: count, to: count - 1000, by: -1) {
            await client.ask([#"{"database":"\#(ListenHarness.name)","removeTarget":\#(id)}"#])
            removed.insert(Int32(id))
        }
        await client.rest()
        await until { Set(client.shown).union(removed).count == count }
        #expect(client.end == nil)
        await client.leave()
        harness.stop()
    }

    // MARK: Queries

    private static let root = ResourceName(
        database: DatabaseName(project: "p", database: "(default)"), path: ResourcePath([]))

    private func alike(_ count: Int, _ database: Database) async throws -> [String] {
        let prefix = String(repeating: "x", count: 2000)
        for start in stride(from: 0, to: count, by: 400) {
            try await database.commit(
                (start..<min(start + 400, count)).map { number in
                    Write(
                        document: ResourceName(
                            database: Self.root.database, path: ResourcePath(["c", "\(number)"])),
                        operation: .update(
                            fields: MapValue([
                                MapValue.Field(name: "t", value: .string(prefix + String(number * 7919 % 100_003)))
                            ]), mask: nil), transforms: [], precondition: .none)
                })
        }
        return (0..<count).map { String($0 * 7919 % 100_003) }.sorted { UTF8Order.compare($0, $1) < 0 }
    }

    @Test("reads a few documents that the index does not order, and leaves the others to a worker")
    func groups() async throws {
        let registry = DatabaseRegistry(provider: MemoryStoreProvider())
        let database = try registry.database(Self.root.database)
        let expected = try await alike(900, database)
        var query = Query(parent: Self.root, scope: .collection("c"))
        query.orders = [Query.Order(field: FieldPath("t"), descending: false)]
        for limit in [nil, 1, 30] {
            query.limit = limit
            let meter = WorkMeter()
            let results = try SuspendableQuery(
                NormalizedQuery(query), database.view(), meter: meter, requireIndexes: false
            ) { read throws(Status) in try database.pastView(at: Timestamp(microseconds: 1), under: read) }
            #expect(results.isLight)
            #expect(try results.next(onLoop: true) == nil)
            #expect(results.isPaused && !results.isLight)
            #expect(meter.entriesScanned <= 20)
            var found: [String] = []
            while let result = try results.next() {
                guard case .string(let string)? = try FieldsReader(result.document.fields).value(at: FieldPath("t"))
                else { break }
                found.append(String(string.dropFirst(2000)))
            }
            #expect(found == Array(expected.prefix(limit ?? .max)))
        }
        registry.close()
    }

    @Test("returns the same results when a worker takes over a query")
    func goesOver() async throws {
        let bench = try StreamBench()
        let expected = try await alike(300, bench.database)
        let call = TestCall(bench.loop)
        let name = "\(StreamBench.root)/documents"
        let string =
            #"{"parent":"\#(name)","structuredQuery":{"from":[{"collectionId":"c"}],"orderBy":[{"field":{"fieldPath":"t"}}]}}"#
        let request = try RunQueryRequest(json: Array(string.utf8), at: "")
        await call.run { bench.service.runQuery(request, call) }
        await until { call.end != nil }
        #expect(call.end?.code == .ok)
        let found = try call.messages.compactMap { message throws(Status) in
            try RunQueryResponse(json: message, at: "").document?.fields["t"]
        }
        #expect(
            found.map { if case .string(let string) = $0 { String(string.dropFirst(2000)) } else { "" } } == expected)
    }

    // MARK: Messages

    /// Each message takes three milliseconds of its own clock.
    private final class SlowSource: MessageSource {
        var now = MonotonicTime(nanoseconds: 0)
        var rest = 100
        let isLight = true
        let isPaused = false
        let meter: WorkMeter? = nil
        let isSuspended = false
        func hold(_ read: LongRead) {}
        func suspend() {}
        func resume(_ read: LongRead?) {}
        func next(onLoop: Bool, to messages: inout MessageBatch) -> Bool {
            if rest == 0 { return false }
            rest -= 1
            now = now.advanced(milliseconds: 3)
            messages.append([0])
            return true
        }
    }

    @Test("creates messages for some milliseconds, whatever each of them costs")
    func messages() async throws {
        let bench = try StreamBench()
        let call = TestCall(bench.loop, format: .protobuf)
        let most = Mutex(0)
        await call.run {
            let source = SlowSource()
            MessageStream(
                source, to: call, pool: bench.service.pool, reads: bench.service.longReads, now: { source.now }
            ).start()
            // Within one tick.
            most.withLock { $0 = call.messages.count }
        }
        #expect(most.withLock { $0 } == 2)
        await until { call.end != nil }
        #expect(call.messages.count == 100)
    }

    // MARK: BatchGetDocuments

    @Test("judges and reads some names; more are for a worker", arguments: [10, 256, 257, 3000])
    func batchGet(count: Int) async throws {
        let clock = CountingClock()
        let bench = try StreamBench(
            rules: """
                rules_version = '2';
                service cloud.firestore {
                  match /databases/{database}/documents { match /c/{id} { allow get: if id != 'shut'; } }
                }
                """, clock: clock)
        clock.watch(bench.loop)
        for number in [3, 7, 5] { try await bench.database.put("c/\(number)", ["n": .integer(Int64(number))]) }
        for (names, code) in [([], Status.Code.ok), (["shut"], .permissionDenied)] as [([String], Status.Code)] {
            let call = TestCall(bench.loop, identity: .nobody)
            let paths = (0..<count).map { "\(StreamBench.root)/documents/c/\($0)" }
            var request = BatchGetDocumentsRequest()
            request.database = StreamBench.root
            request.documents = paths + names.map { "\(StreamBench.root)/documents/c/\($0)" }
            let (asked, askedOnLoop) = (
                clock.asked.load(ordering: .relaxed), clock.askedOnLoop.load(ordering: .relaxed)
            )
            await call.run { [request] in bench.service.batchGetDocuments(request, call) }
            await until { call.end != nil }
            #expect(call.end?.code == code)
            #expect(clock.asked.load(ordering: .relaxed) - asked == request.documents.count)
            #expect(clock.askedOnLoop.load(ordering: .relaxed) - askedOnLoop <= 257)
            if code != .ok { continue }
            // Found documents come in the order of the request, then the missing ones.
            let answers = try call.messages.map { message throws(Status) in
                try BatchGetDocumentsResponse(json: message, at: "")
            }
            #expect(answers.compactMap(\.found?.name) == [3, 5, 7].map { paths[$0] })
            #expect(
                answers.compactMap(\.missing)
                    == paths.enumerated().filter { ![3, 5, 7].contains($0.offset) }.map(\.element))
        }
    }

    @Test("a denied read of many names leaves no transaction")
    func batchGetRefused() async throws {
        let bench = try StreamBench(
            rules: """
                rules_version = '2';
                service cloud.firestore {
                  match /databases/{database}/documents { match /c/{id} { allow get: if id != '2999'; } }
                }
                """)
        let call = TestCall(bench.loop, identity: .nobody)
        var request = BatchGetDocumentsRequest()
        request.database = StreamBench.root
        request.documents = (0..<3000).map { "\(StreamBench.root)/documents/c/\($0)" }
        request.newTransaction = TransactionOptionsMessage(readWrite: TransactionOptionsMessage.ReadWrite())
        await call.run { [request] in bench.service.batchGetDocuments(request, call) }
        await until { call.end != nil }
        #expect(call.end?.code == .permissionDenied)
        #expect(bench.database.statistics.openTransactions == 0)
        request.documents.removeLast()
        let second = TestCall(bench.loop, identity: .nobody)
        await second.run { [request] in bench.service.batchGetDocuments(request, second) }
        await until { second.end != nil }
        #expect(second.end?.code == .ok)
        #expect(second.messages.count == 2999)
        #expect(bench.database.statistics.openTransactions == 1)
        let first = try BatchGetDocumentsResponse(json: try #require(second.messages.first), at: "")
        #expect(!first.transaction.isEmpty)
    }
}

extension ListenClient {
    /// Targets with sent documents.
    fileprivate var shown: [Int32] { responses.compactMap(\.documentChange).flatMap(\.targetIds) }
}
