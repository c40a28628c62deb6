import HearthTestSupport
import HearthConcurrency
import HearthModel
import HearthEngine
import HearthDocuments
import HearthWire
import Testing

@testable import HearthFirestoreServer

/// Small reads during large ones that use all threads for long work and all long snapshots.
@Suite("Small reads during large ones")
struct BriefReadTests {
    private static let documents = "\(StreamBench.root)/documents"

    /// A service whose only thread for long work is busy until the gate opens, and whose only long read is taken.
    private final class Busy {
        let bench: StreamBench
        let gate = Latch()
        private let reads = LongReads(max: 1)
        private var read: LongRead?

        init() throws {
            bench = try StreamBench(longReads: reads)
            let begun = Latch()
            bench.service.pool.run(.long, for: .server, refused: { _ in }) { [gate] in
                begun.open()
                gate.wait()
            }
            begun.wait()
            read = reads.take()
        }

        func fill(_ count: Int) async throws {
            for start in stride(from: 0, to: count, by: 400) {
                try await bench.database.commit(
                    (start..<min(start + 400, count)).map { number in
                        Write(
                            document: ResourceName(
                                database: StreamBench.name, path: ResourcePath(["c", "d\(number)"])),
                            operation: .update(
                                fields: MapValue([
                                    MapValue.Field(name: "a", value: .integer(Int64(number % 2))),
                                    MapValue.Field(name: "b", value: .integer(Int64(number % 3))),
                                    MapValue.Field(name: "n", value: .integer(Int64(count - number))),
                                ]), mask: nil), transforms: [], precondition: .none)
                    })
            }
        }

        func free() {
            read = nil
            gate.open()
        }
    }

    private static func filter(_ field: String, _ operator: String, _ value: Int) -> String {
        #"{"fieldFilter":{"field":{"fieldPath":"\#(field)"},"op":"\#(`operator`)","value":{"integerValue":"\#(value)"}}}"#
    }

    /// Queries that no single range of an index answers: by two fields, sorted, or with alternatives.
    private static let queries = [
        #","where":{"compositeFilter":{"op":"AND","filters":[\#(filter("a", "EQUAL", 1)),\#(filter("b", "EQUAL", 1))]}}"#,
        #","where":\#(filter("a", "GREATER_THAN_OR_EQUAL", 0)),"orderBy":[{"field":{"fieldPath":"n"}},{"field":{"fieldPath":"a"}}]"#,
        #","where":{"compositeFilter":{"op":"OR","filters":[\#(filter("a", "EQUAL", 1)),\#(filter("b", "EQUAL", 2))]}}"#,
    ]

    private func query(_ more: String, _ bench: StreamBench) async throws -> TestCall {
        let string = #"{"parent":"\#(Self.documents)","structuredQuery":{"from":[{"collectionId":"c"}]\#(more)}}"#
        let call = TestCall(bench.loop)
        let request = try RunQueryRequest(json: Array(string.utf8), at: "")
        await call.run { bench.service.runQuery(request, call) }
        return call
    }

    private func names(_ call: TestCall) throws -> [String] {
        try call.messages.compactMap { message throws(Status) in
            try RunQueryResponse(json: message, at: "").document?.name
        }
    }

    private func aggregate(_ aggregation: String, _ bench: StreamBench) async throws -> TestCall {
        let string =
            #"{"parent":"\#(Self.documents)","structuredAggregationQuery":{"structuredQuery":{"from":[{"collectionId":"c"}]},"aggregations":[{"alias":"x",\#(aggregation)}]}}"#
        let call = TestCall(bench.loop)
        let request = try RunAggregationQueryRequest(json: Array(string.utf8), at: "")
        await call.run { bench.service.runAggregationQuery(request, call) }
        return call
    }

    private static let aggregations = [#""count":{}"#, #""sum":{"field":{"fieldPath":"n"}}"#]

    @Test("queries do not wait for large ones", arguments: queries)
    func smallQueries(_ more: String) async throws {
        let busy = try Busy()
        try await busy.fill(30)
        let call = try await query(more, busy.bench)
        await until { call.end != nil }
        #expect(call.end?.code == .ok)
        #expect(try !names(call).isEmpty)
        busy.free()
    }

    @Test("aggregations do not wait for large ones", arguments: aggregations)
    func smallAggregations(_ aggregation: String) async throws {
        let busy = try Busy()
        try await busy.fill(30)
        let call = try await aggregate(aggregation, busy.bench)
        await until { call.end != nil }
        #expect(call.end?.code == .ok && call.messages.count == 1)
        busy.free()
    }

    @Test("targets of streams are loaded and resumed during large reads")
    func targets() async throws {
        let busy = try Busy()
        try await busy.fill(30)
        let filter = Self.queries[0].dropFirst()
        let target =
            #"{"database":"\#(StreamBench.root)","addTarget":{"targetId":1,"query":{"parent":"\#(Self.documents)","structuredQuery":{"from":[{"collectionId":"c"}],\#(filter)}}"#
        let first = await busy.bench.listen()
        await first.ask(target + "}}")
        await until { first.responses.contains { $0.targetChange?.targetChangeType == .current } }
        let token = try #require(first.responses.compactMap { $0.targetChange?.resumeToken }.last { !$0.isEmpty })
        let second = await busy.bench.listen(connection: 2)
        await second.ask(target + #","resumeToken":"\#(Base64.encode(token))"}}"#)
        await until { second.responses.contains { $0.targetChange?.targetChangeType == .current } }
        #expect(!second.responses.contains { $0.documentChange != nil })
        busy.free()
    }

    @Test("large reads are detected, and return the same results", arguments: queries)
    func large(_ more: String) async throws {
        let busy = try Busy()
        try await busy.fill(3000)
        let call = try await query(more, busy.bench)
        let sums = [
            try await aggregate(Self.aggregations[0], busy.bench),
            try await aggregate(Self.aggregations[1], busy.bench),
        ]
        // They wait behind the job that occupies the thread for long work.
        await until { busy.bench.service.longReads.waitingCount == 3 }
        #expect(call.end == nil && sums.allSatisfy { $0.end == nil })
        busy.free()
        await until { call.end != nil && sums.allSatisfy { $0.end != nil } }
        let expected = try await alone(more)
        #expect(try names(call) == expected)
        let values = try sums.map { call in
            try RunAggregationQueryResponse(json: call.messages[0], at: "").result?.aggregateFields["x"]
        }
        let expectedValues: [Value?] = [.integer(3000), .integer(3000 * 3001 / 2)]
        #expect(values == expectedValues)
    }

    /// The names that an execution of the same query without a service returns.
    private func alone(_ more: String) async throws -> [String] {
        let other = try Busy()
        try await other.fill(3000)
        other.free()
        let string = #"{"parent":"\#(Self.documents)","structuredQuery":{"from":[{"collectionId":"c"}]\#(more)}}"#
        let message = try #require(try RunQueryRequest(json: Array(string.utf8), at: "").structuredQuery)
        let execution = try QueryExecution(
            NormalizedQuery(try message.query(parent: ResourceName(parent: Self.documents))),
            view: try other.bench.database.view())
        var names: [String] = []
        var all = DocumentNames(StreamBench.name)
        while let result = try execution.next() { names.append(try all.name(key: result.key)) }
        return names
    }

    @Test("a brief read ends after a number of entries, documents or counted entries")
    func bounds() async throws {
        let busy = try Busy()
        defer { busy.free() }
        try await busy.fill(Limits.briefEntriesMax + 10)
        let query = Query(
            parent: ResourceName(database: StreamBench.name, path: ResourcePath([])), scope: .collection("c"))
        for aggregation in [
            Aggregation(alias: "x", operator: .count(upTo: nil)),
            Aggregation(alias: "x", operator: .sum(FieldPath("n"))),
        ] {
            let meter = WorkMeter()
            meter.beBrief()
            let execution = try AggregationExecution(
                query, [aggregation], view: try busy.bench.database.view(), meter: meter)
            #expect(throws: WorkMeter.isHeavier) { try execution.run() }
            #expect(meter.entriesScanned == Limits.briefEntriesMax + 1)
        }
        let large = MapValue([MapValue.Field(name: "t", value: .string(String(repeating: "x", count: 900_000)))])
        for number in 0..<4 {
            try await busy.bench.database.commit([
                Write(
                    document: ResourceName(database: StreamBench.name, path: ResourcePath(["large", "d\(number)"])),
                    operation: .update(fields: large, mask: nil), transforms: [], precondition: .none)
            ])
        }
        let meter = WorkMeter()
        meter.beBrief()
        let execution = try QueryExecution(
            NormalizedQuery(Query(parent: query.parent, scope: .collection("large"))),
            view: try busy.bench.database.view(),
            meter: meter)
        var found = 0
        #expect(throws: WorkMeter.isHeavier) { while try execution.next() != nil { found += 1 } }
        #expect(found == 3)
    }
}
