import HearthModel
import HearthNetwork
import HearthEngine
import HearthDocuments
import Testing

@testable import HearthHost

@Suite struct MetricsTests {
    @Test func labelsAreEscaped() {
        var string = MetricsWriter()
        string.family("x", .gauge, "Help.")
        string.sample("x", [("a", "q\"b\\c\nd"), ("b", "ü")], 3)
        string.sample("x", [], 0.25)
        #expect(
            String(decoding: string.writer.bytes, as: UTF8.self)
                == "# HELP x Help.\n# TYPE x gauge\nx{a=\"q\\\"b\\\\c\\nd\",b=\"ü\"} 3\nx 0.25\n")
    }

    @Test func bucketsAddUp() {
        var string = MetricsWriter()
        string.histogram("h", [("m", "x")], bounds: [0.5, 1], [2, 0, 3], sum: 7)
        #expect(
            String(decoding: string.writer.bytes, as: UTF8.self) == """
                h_bucket{m="x",le="0.5"} 2
                h_bucket{m="x",le="1"} 2
                h_bucket{m="x",le="+Inf"} 5
                h_sum{m="x"} 7
                h_count{m="x"} 5

                """)
    }

    @Test func furtherDatabasesShareARow() {
        let databases = (0..<DatabaseMetrics.labelsMax + 3).map { number in
            (labels: [(name: "d", value: "\(number)")], statistics: number == 1 ? nil : number)
        }
        let figure: LabelledStatistics<Int?>.Figure = ("x", .gauge, "Help.", { $0 })
        func lines(_ count: Int) -> [Substring] {
            var string = MetricsWriter()
            LabelledStatistics(Array(databases.prefix(count)), other: [("d", "other")]).write([figure], to: &string)
            return String(decoding: string.writer.bytes, as: UTF8.self).split(separator: "\n")
        }
        #expect(lines(3).dropFirst(2) == [#"x{d="0"} 0"#, #"x{d="2"} 2"#], "what is not known has no sample")
        #expect(lines(DatabaseMetrics.labelsMax).last == #"x{d="99"} 99"#)
        #expect(lines(DatabaseMetrics.labelsMax + 3).suffix(2) == [#"x{d="99"} 99"#, #"x{d="other"} 303"#])
    }

    @Test func requestsAreCountedByMethodTransportAndCode() {
        let requests = RequestMetrics(loopCount: 2)
        requests.record(.commit, .grpc, code: .ok, nanoseconds: 40_000, loopIndex: 0)
        requests.record(.commit, .grpc, code: .ok, nanoseconds: 2_000_000, loopIndex: 1)
        requests.record(.commit, .rest, code: .aborted, nanoseconds: 90_000_000_000, loopIndex: 1)
        var string = MetricsWriter()
        requests.write(to: &string)
        let lines = String(decoding: string.writer.bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        for expected in [
            #"hearth_requests_total{method="Commit",transport="grpc",code="OK"} 2"#,
            #"hearth_requests_total{method="Commit",transport="rest",code="ABORTED"} 1"#,
            #"hearth_request_duration_seconds_bucket{method="Commit",le="5e-05"} 1"#,
            #"hearth_request_duration_seconds_bucket{method="Commit",le="0.0025"} 2"#,
            #"hearth_request_duration_seconds_bucket{method="Commit",le="60"} 2"#,
            #"hearth_request_duration_seconds_bucket{method="Commit",le="+Inf"} 3"#,
            #"hearth_request_duration_seconds_count{method="Commit"} 3"#,
        ] {
            #expect(lines.contains(expected), "\(expected)")
        }
        #expect(!lines.contains { $0.contains("RunQuery") })
    }

    @Test func namesAreThoseOfGRPC() {
        #expect(RequestMetrics.Method(path: "/google.firestore.v1.Firestore/RunQuery") == .runQuery)
        #expect(RequestMetrics.Method(path: "/google.firestore.v1.Firestore/Nonsense") == .other)
        #expect(RequestMetrics.Method(path: "/google.firestore.admin.v1.FirestoreAdmin/CreateIndex") == .admin)
        #expect(RequestMetrics.Method(path: "/grpc.health.v1.Health/Check") == .other)
        #expect(RequestMetrics.Method.listCollectionIds.name == "ListCollectionIds")
    }

    @Test func everyLineIsASampleOrAComment() async throws {
        let database = try Database(name: DatabaseName(project: "p\"q"), store: MemoryStore())
        defer { database.close() }
        let write = Write(
            document: ResourceName(database: database.name, path: ResourcePath(["c", "d"])),
            operation: .update(fields: MapValue([MapValue.Field(name: "a", value: .integer(1))]), mask: nil))
        _ = try await withCheckedContinuation { continuation in
            database.commit([write]) { continuation.resume(returning: $0) }
        }.get()
        let metrics = ServerMetrics(
            requests: RequestMetrics(loopCount: 1), network: { NetworkStatistics() },
            databases: { [database] })
        let string = String(decoding: metrics.string(), as: UTF8.self)
        #expect(string.hasSuffix("\n"))
        #expect(string.contains(#"hearth_commits_total{project="p\"q",database="(default)"} 1"#))
        #expect(string.contains(#"hearth_commit_group_size_count{project="p\"q",database="(default)"} 1"#))
        for line in string.split(separator: "\n") where !line.hasPrefix("#") {
            let value = line.split(separator: " ").last.flatMap { Double($0) }
            #expect(value != nil, "\(line)")
        }
        #expect(ProcessFigures.residentBytes ?? 0 > 1 << 20)
    }
}
