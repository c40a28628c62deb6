import HearthModel
import HearthWire
import Testing

@testable import hearth

@Suite struct BenchTests {
    @Test func workloadsAreFoundByName() throws {
        #expect(try BenchSettings(["get", "commit-1"]).workloads.map(\.name) == ["get", "commit-1"])
        #expect(try BenchSettings([]).workloads == Workload.all)
        #expect(throws: ToolFailure.usage("There is no workload \"gte\"; did you mean \"get\"?")) {
            try BenchSettings(["gte"])
        }
        #expect(try BenchSettings(["--peers", "all"]).peers == BenchSettings.peerNames)
        #expect(throws: ToolFailure.usage("There is no peer \"postgre\"; did you mean \"postgres\"?")) {
            try BenchSettings(["--peers=postgre"])
        }
        #expect(Set(Workload.all.map(\.name)).count == Workload.all.count)
    }

    @Test func percentiles() {
        var result = LoadResult()
        #expect(result.percentile(0.5) == 0)
        result.latenciesMicroseconds = Array(1...100)
        #expect(result.percentile(0.5) == 51)
        #expect(result.percentile(0.99) == 100)
        #expect(BenchReport.median([3, 1, 2]) == 2)
        #expect(BenchReport.median([4, 1, 2, 3]) == 2.5)
    }

    @Test func numbersForPeople() {
        for (number, text) in [
            (0.0049, "0.005"), (0.5, "0.500"), (1.005, "1.00"), (9.999, "10.00"), (12.34, "12.3"), (99.96, "100.0"),
            (1234.5, "1235"), (Double.nan, "-"),
        ] {
            #expect(BenchReport.text(number) == text)
        }
    }

    @Test func tablesCompareWithTheFirstTarget() throws {
        var report = BenchReport(try BenchSettings(["get"]))
        func figure(_ metric: String, _ value: Double, _ direction: Figure.Direction) -> Figure {
            Figure(workload: "get", metric: metric, unit: "/s", value: value, direction: direction)
        }
        report.add([figure("rate", 10, .higherIsBetter), figure("p50", 2, .lowerIsBetter)], to: "hearth")
        report.add([figure("rate", 30, .higherIsBetter), figure("p50", 4, .lowerIsBetter)], to: "hearth")
        report.add([figure("rate", 5, .higherIsBetter), figure("p50", 6, .lowerIsBetter)], to: "other")
        #expect(
            report.table() == """
                workload   figure      hearth   other   ratio
                get        rate (/s)     20.0    5.00   4.00x
                get        p50 (/s)      3.00    6.00   2.00x

                """)
        #expect(report.json().contains(#""target":"other","direction":"higherIsBetter","median":5.0,"ratio":4.0"#))
    }

    @Test func requestsAreWhatTheWorkloadsPromise() throws {
        let requests = BenchRequests()
        var random = SeededRandom(seed: 1)
        let commit = try CommitRequest(protobuf: requests.commit("c", documents: 10, .all, &random))
        let write = try #require(commit.writes.first?.update)
        #expect(commit.writes.count == 1)
        #expect(write.fields.count == 6)
        #expect((450...550).contains(FieldsCodec.encode(write.fields).count))
        let one = try CommitRequest(protobuf: requests.commit("c", documents: 10, .one, &random))
        #expect(one.writes.first?.update?.fields.count == 1)
        #expect(one.writes.first?.updateMask?.fieldPaths.count == 1)
        let batch = try BatchWriteRequest(protobuf: requests.batch("c", 200..<203, &random))
        #expect(batch.writes.map { $0.update?.fields["g"] } == [.integer(2), .integer(2), .integer(2)])
        for shape in [Workload.QueryShape.range, .equality] {
            let query = try RunQueryRequest(protobuf: requests.query("c", documents: 1000, shape, &random))
            #expect(query.structuredQuery?.limit == 100)
        }
        #expect(try RunAggregationQueryRequest(protobuf: requests.count("c")).structuredAggregationQuery != nil)
    }

    @Test func theSameSeedGivesTheSameNumbers() {
        var a = SeededRandom(seed: 7)
        var b = SeededRandom(seed: 7)
        #expect((0..<10).map { _ in a.next() } == (0..<10).map { _ in b.next() })
    }
}
