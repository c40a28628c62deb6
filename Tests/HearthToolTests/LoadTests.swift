import Glibc
import HearthHost
import HearthModel
import HearthNetwork
import HearthServer
import HearthToolSupport
import HearthWire
import Testing

@testable import hearth_bench

/// The generator in `Tools/LoadC`, against a server.
@Suite struct LoadTests {
    private static let requests = BenchRequests()

    /// A server in memory with `count` documents in the collection `c`.
    private func withDocuments(_ count: Int, _ body: (Int) throws -> Void) throws {
        var configuration = Server.Configuration()
        configuration.dataFolder = nil
        configuration.network = ServerConfiguration(host: "127.0.0.1", port: 0, loopCount: 1)
        let server = try Server(configuration)
        try server.start()
        defer { server.shutdown(graceSeconds: 0) }
        // Batches larger than the windows with which a connection begins.
        let batch = 250
        let result = try generator("BatchWrite", server.port).run(.requests(count / batch)) { number, random in
            Self.requests.batch("c", number * batch..<(number + 1) * batch, &random)
        }
        #expect(result.count == count / batch)
        #expect(result.errors == 0)
        try body(server.port)
    }

    private func generator(
        _ method: String, _ port: Int, connections: Int = 2, streams: Int = 3
    ) -> LoadGenerator {
        LoadGenerator(
            host: "127.0.0.1", port: port,
            wire: .grpc(
                path: BenchRequests.service + method, metadata: [HTTPHeader("authorization", "Bearer owner")]),
            connections: connections, streams: streams, answers: AnswerRule(method: method))
    }

    @Test func allRequestsAreAnswered() throws {
        try withDocuments(1000) { port in
            for fields in [Workload.CommitFields.all, .one] {
                let commits = CommitRequests(Self.requests, "c", documents: 1000, fields, seed: 1)
                let result = try generator("Commit", port).run(.requests(200), commits)
                #expect(result.count == 200)
                #expect(result.all == 200)
                #expect(result.errors == 0)
                #expect(result.latenciesMicroseconds.count == 200)
                #expect(result.latenciesMicroseconds == result.latenciesMicroseconds.sorted())
                #expect(try #require(result.generatorSeconds) > 0)
            }
            let timed = try generator("GetDocument", port).run(
                .seconds(2, warmUp: 0.1), CycledRequests([Self.get(1), Self.get(77)]))
            #expect(timed.count > 0)
            #expect(timed.all >= timed.count)
            #expect(timed.seconds > 0 && timed.seconds <= 2)
        }
    }

    @Test func wrongAnswersAreErrors() throws {
        try withDocuments(1000) { port in
            #expect(throws: ToolFailure.self) {
                try generator("GetDocument", port).run(.requests(10), CycledRequests([Self.get(5000)]))
            }
            let some = try generator("GetDocument", port).run(
                .requests(10), CycledRequests([Self.get(1), Self.get(5000)]))
            #expect(some.count == 5)
            #expect(some.errors == 5)
            #expect(some.firstError?.hasPrefix("grpc-status 5: ") == true)
            var random = SeededRandom(seed: 1)
            let query = CycledRequests([Self.requests.query("c", documents: 1000, .range, &random)])
            var queries = generator("RunQuery", port)
            #expect(try queries.run(.requests(20), query).errors == 0)
            queries.answers.messages = 99
            #expect(throws: ToolFailure(.failed, "No request succeeded: 100 messages instead of 99.")) {
                try queries.run(.requests(20), query)
            }
            var counts = generator("RunAggregationQuery", port)
            let count = CycledRequests([try Self.requests.count("c")])
            counts.answers.expectCount(1000)
            #expect(try counts.run(.requests(3), count).errors == 0)
            counts.answers.expectCount(999)
            #expect(throws: ToolFailure(.failed, "No request succeeded: the content of an answer is wrong.")) {
                try counts.run(.requests(3), count)
            }
        }
    }

    @Test func aServerThatIsNotThere() throws {
        let port = try FreePort.find()
        #expect(throws: ToolFailure(.unavailable, "Cannot reach 127.0.0.1:\(port): Connection refused.")) {
            try generator("GetDocument", port).run(.requests(1), CycledRequests([Self.get(1)]))
        }
    }

    private static func get(_ number: Int) -> [UInt8] {
        GetDocumentRequest(name: requests.name("c", number)).protobuf()
    }

    @Test func preparedCommitsAreThoseOfTheWorkload() throws {
        let all = CommitRequests(Self.requests, "c", documents: 12_000, .all, seed: 3)
        let one = CommitRequests(Self.requests, "c", documents: 12_000, .one, seed: 3)
        var digits: Set<Int> = []
        var fields: Set<String> = []
        var values: Set<Int64> = []
        for number in 0..<3000 {
            let write = try #require(try CommitRequest(protobuf: Array(all.next(number))).writes.first)
            let document = try #require(write.update)
            let id = try #require(document.name.split(separator: "/").last?.dropFirst())
            #expect((0..<12_000).contains(try #require(Int(id))))
            digits.insert(id.count)
            #expect(document.fields.count == 6)
            for field in 0..<5 {
                guard case .integer(let value)? = document.fields["f\(field)"] else {
                    Issue.record("f\(field) has no number")
                    continue
                }
                values.insert(value)
            }
            let change = try #require(try CommitRequest(protobuf: Array(one.next(number))).writes.first)
            let path = try #require(change.updateMask?.fieldPaths.first)
            #expect(change.update?.fields.count == 1)
            #expect(change.update?.fields[path] != nil)
            fields.insert(path)
        }
        #expect(digits == [2, 3, 4, 5] || digits == [1, 2, 3, 4, 5])
        #expect(values.count == 15_000)
        #expect(fields == ["f0", "f1", "f2", "f3", "f4", "f5"])
    }

    @Test func aBatchIsRightWhenAllOfItsWritesAre() {
        func isRight(_ message: [UInt8]) -> Bool { message.withUnsafeBufferPointer(AnswerRule.areAllWritten) }
        #expect(isRight(BatchWriteResponse(writeResults: [.init(), .init()], status: [.init(), .init()]).protobuf()))
        var failed = StatusMessage()
        failed.code = 6
        #expect(!isRight(BatchWriteResponse(writeResults: [.init(), .init()], status: [.init(), failed]).protobuf()))
    }

    @Test func theProcessThatListensOnAPort() throws {
        try withDocuments(250) { port in #expect(ProcessTimes.listener(port: port) == getpid()) }
        #expect(ProcessTimes.seconds(family: getpid()) > 0)
        #expect(ProcessTimes.own > 0)
    }
}
