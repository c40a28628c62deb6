@testable import HearthToolSupport
import HearthModel
import HearthWire
import Testing

@testable import hearth
@testable import hearth_bench

@Suite struct BenchTests {
    @Test func workloadsAreFoundByName() throws {
        #expect(try BenchSettings(["get", "commit-1"]).workloads.map(\.name) == ["commit-1", "get"])
        // A workload includes those that it is compared with.
        #expect(try BenchSettings(["commit-32-many"]).workloads.map(\.name) == ["commit-32", "commit-32-many"])
        #expect(try BenchSettings([]).workloads == Workload.all)
        #expect(throws: ToolFailure.usage("There is no workload \"gte\"; did you mean \"get\"?")) {
            try BenchSettings(["gte"])
        }
        #expect(try BenchSettings(["--peers", "all"]).peers == BenchSettings.peerNames)
        #expect(throws: ToolFailure.usage("There is no peer \"postgre\"; did you mean \"postgres\"?")) {
            try BenchSettings(["--peers=postgre"])
        }
        #expect(Set(Workload.all.map(\.name)).count == Workload.all.count)
        #expect(try BenchSettings(["--seconds", "0.2"]).seconds == 0.2)
        #expect(throws: ToolFailure.usage("--seconds expects a number from 0.1 to 3600.0, not \"soon\".")) {
            try BenchSettings(["--seconds", "soon"])
        }
    }

    @Test func barsAreOfWorkloadsAndTargetsThatExist() {
        let workloads = Set(Workload.all.map(\.name))
        let targets = Set(BenchSettings.peerNames + [BenchTarget.disk.name])
        for bar in BenchBar.all {
            #expect(workloads.contains(bar.workload))
            if let workload = bar.base?.workload { #expect(workloads.contains(workload)) }
            if let target = bar.base?.target { #expect(targets.contains(target)) }
        }
        #expect(Workload.all.compactMap(\.base).allSatisfy { workloads.contains($0) })
    }

    @Test func barsInTheirOwnTerms() {
        func comparison(_ kind: BenchBar.Kind, _ own: Double, _ other: Double, _ direction: Figure.Direction)
            -> BenchComparison
        {
            BenchBar(workload: "w", metric: "m", kind: kind).comparison(
                own: own, other: other, unit: "u", direction, hearth: "hearth")
        }
        typealias Base = BenchBar.Base
        for (comparison, base, value, wanted, isMet) in [
            (comparison(.asGood(1.2, as: Base(target: "p")), 12, 10, .higherIsBetter), "p", "1.20x", ">= 1.20x", true),
            (comparison(.asGood(10, as: Base(target: "p")), 2, 10, .lowerIsBetter), "p", "5.00x", ">= 10.0x", false),
            (
                comparison(.atMostTimes(1.3, Base(workload: "v")), 13, 11, .lowerIsBetter), "v", "1.18x", "<= 1.30x",
                true
            ),
            (
                comparison(.atMostTimes(1.3, Base(workload: "v")), 15, 11, .lowerIsBetter), "v", "1.36x", "<= 1.30x",
                false
            ),
            (comparison(.atMostAbove(2, Base(target: "p")), 7, 6, .lowerIsBetter), "p", "7.00 u", "<= 8.00 u", true),
            (comparison(.atMostAbove(2, Base(target: "p")), 9, 6, .lowerIsBetter), "p", "9.00 u", "<= 8.00 u", false),
            (comparison(.limit(30), 20, 1, .lowerIsBetter), "limit", "20.0 u", "<= 30.0 u", true),
            (comparison(.limit(30), 20, 1, .higherIsBetter), "limit", "20.0 u", ">= 30.0 u", false),
            (
                comparison(.asGood(3, as: Base(workload: "v", target: "p")), 40, 10, .higherIsBetter), "p v", "4.00x",
                ">= 3.00x", true
            ),
        ] {
            #expect(comparison.base == base)
            #expect(comparison.value == value)
            #expect(comparison.wanted == wanted)
            #expect(comparison.isMet == isMet)
        }
    }

    @Test func framesOfAnswers() {
        func first(_ framing: any AnswerFraming.Type, _ string: String) -> FramedAnswer? {
            Array(string.utf8).withUnsafeBytes { framing.first($0) }
        }
        let head = "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 5\r\n\r\n"
        #expect(first(HTTP1Framing.self, head + "12345HTTP") == FramedAnswer(sizeBytes: head.utf8.count + 5))
        #expect(first(HTTP1Framing.self, head + "1234") == nil)
        #expect(first(HTTP1Framing.self, String(head.dropLast(2))) == nil)
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n"
        #expect(first(HTTP1Framing.self, chunked) == nil)
        #expect(first(HTTP1Framing.self, chunked + "0\r\n\r\n")?.sizeBytes == chunked.utf8.count + 5)
        #expect(
            first(HTTP1Framing.self, "HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n")?.failure == "HTTP/1.1 404 No\r")
        #expect(first(RedisFraming.self, "$3\r\nabc\r\n+") == FramedAnswer(sizeBytes: 9))
        #expect(first(RedisFraming.self, "$3\r\nabc\r") == nil)
        #expect(first(RedisFraming.self, "+OK\r\n") == FramedAnswer(sizeBytes: 5))
        #expect(first(RedisFraming.self, "$-1\r\n")?.failure != nil)
        #expect(first(RedisFraming.self, "-ERR no\r\n") == FramedAnswer(sizeBytes: 9, failure: "-ERR no"))
        #expect(first(RedisFraming.self, "+O") == nil)
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
        for (number, string) in [
            (0.0049, "0.005"), (0.5, "0.500"), (1.005, "1.00"), (9.999, "10.00"), (12.34, "12.3"), (99.96, "100.0"),
            (1234.5, "1235"), (Double.nan, "-"),
        ] {
            #expect(BenchReport.string(number) == string)
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
                workload   figure                        hearth   other   ratio
                get        rate (/s)   20.0 (10.0..30.0, 100 %)    5.00   4.00x
                get        p50 (/s)     3.00 (2.00..4.00, 67 %)    6.00   2.00x

                """)
        #expect(report.json().contains(#""median":20.0,"noise":1.0,"values":[10.0,30.0]"#))
        #expect(report.json().contains(#""target":"other","direction":"higherIsBetter","median":5.0,"ratio":4.0"#))
    }

    @Test func requirementsAreASeparateTable() throws {
        var report = BenchReport(try BenchSettings(["get", "get-constant", "--runs", "1"]))
        func add(_ workload: String, _ value: Double, to target: String) {
            let figure = Figure(
                workload: workload, metric: "rate", unit: "/s", value: value, direction: .higherIsBetter)
            report.add([figure], to: target)
        }
        add("get", 60, to: "hearth")
        add("get-constant", 100, to: "hearth")
        add("get", 20, to: "emulator")
        report.addGap("bulk", "emulator", "no memory")
        #expect(report.table().contains("emulator could not do bulk: no memory\n"))
        #expect(report.comparisons().map(\.isMet) == [true, false])
        #expect(report.json().contains(#""ratio":0.6,"bar":0.5,"met":true"#))
        #expect(BenchPlot(report).svg().hasSuffix("</svg>\n"))
    }

    @Test func requestsMatchTheWorkloads() throws {
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
        let six = try BatchWriteRequest(protobuf: requests.batchOfSix("c", 0..<1, &random))
        #expect(six.writes.first?.update?.fields.count == BenchRequests.indexedFields + 1)
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
