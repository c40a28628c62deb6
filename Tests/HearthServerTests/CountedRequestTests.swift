@testable import HearthHost
@testable import HearthFirestoreServer
import HearthTestSupport
import HearthEngine
import HearthModel
import HearthWire
import Testing

@testable import HearthServer

/// Requests of 2 KiB or more count with their decoded size, and wait until they may have as much.
@Suite struct CountedRequestTests {
    private static let database = "projects/p/databases/(default)"
    private static let method = "/\(FirestoreService.name)/Commit"

    private static func commit(_ id: String, stringBytes: Int) throws -> [UInt8] {
        let string = String(repeating: "x", count: stringBytes)
        return try encoded(
            CommitRequest.self,
            """
            {"database":"\(database)","writes":[{"update":{"name":"\(database)/documents/c/\(id)",
            "fields":{"t":{"stringValue":"\(string)"}}}}]}
            """)
    }

    /// Accounts that take what they get, until a request of 2 KiB has to wait.
    private static func takeAll(_ memory: CommonWorkingMemory) -> [WorkingShare] {
        var shares: [WorkingShare] = []
        var bytes = memory.claimBytesMax
        while bytes >= 1 << 10 {
            let account = Requester(account: .max - UInt64(shares.count), connection: 0, isAdministrator: false)
            if let share = memory.takeNow(bytes, for: account) { shares.append(share) } else { bytes /= 2 }
        }
        return shares
    }

    @Test func waitForMemoryWhileSmallOnesDoNot() async throws {
        let server = try await ServedServer()
        defer { server.stop() }
        let memory = server.server.memory
        let all = Self.takeAll(memory.working.common)
        let middle = try Self.commit("middle", stringBytes: 5000)
        async let waiting = server.call(Self.method, [middle])
        await until { memory.working.waitingCount == 1 }
        #expect(memory.received.usedBytes >= 5000)
        let small = await server.call(Self.method, [try Self.commit("small", stringBytes: 100)])
        #expect(small.status.code == .ok)
        #expect(memory.working.waitingCount == 1)
        for share in all { share.end() }
        #expect(await waiting.status.code == .ok)
        await until { memory.working.usedBytes == 0 && memory.received.usedBytes == 0 }
    }

    @Test("a write that was made is reported as made, even when no memory is left")
    func responsesNeedNoMemory() async throws {
        let server = try await ServedServer()
        defer { server.stop() }
        let memory = server.server.memory
        let held = memory.received.reservation(for: .server)
        var step = memory.received.bytesMax
        while step > 0 { if !held.grow(by: step) { step /= 2 } }
        // Small enough to arrive without being counted.
        let answer = await server.call(Self.method, [try Self.commit("made", stringBytes: 3000)])
        #expect(answer.status.code == .ok)
        held.resize(to: 0)
        await until { memory.working.usedBytes == 0 && memory.received.usedBytes == 0 }
    }

    /// A large request that waits for all of the memory does not block these.
    @Test func doNotWaitForLargeOnes() async throws {
        let server = try await ServedServer()
        defer { server.stop() }
        let memory = server.server.memory
        let some = try #require(memory.working.takeNow(.max, for: .server))
        memory.working.take(.max, for: .server) { $0.end() }
        #expect(memory.working.waitingCount == 1)
        let middle = await server.call(Self.method, [try Self.commit("middle", stringBytes: 5000)])
        #expect(middle.status.code == .ok)
        #expect(memory.working.waitingCount == 1)
        some.end()
        await until { memory.working.waitingCount == 0 && memory.working.usedBytes == 0 }
    }

    /// All long reads are in use: how long requests wait for one is up to others.
    @Test func returnTheirMemoryWhileTheyWaitForALongRead() async throws {
        let server = try await ServedServer()
        defer { server.stop() }
        let (memory, reads) = (server.server.memory, server.server.longReads)
        var held: [LongRead] = []
        while let read = reads.take() { held.append(read) }
        let select = (0..<1000).map { #"{"fieldPath":"f\#($0)"}"# }.joined(separator: ",")
        let query = try encoded(
            RunAggregationQueryRequest.self,
            """
            {"parent":"\(Self.database)/documents","explainOptions":{"analyze":true},"structuredAggregationQuery":{
            "structuredQuery":{"from":[{"collectionId":"c"}],"select":{"fields":[\(select)]}},
            "aggregations":[{"alias":"n","count":{}}]}}
            """)
        let count = 20
        async let answers = withTaskGroup(of: Status.Code.self) { group in
            for _ in 0..<count {
                group.addTask {
                    await server.call("/\(FirestoreService.name)/RunAggregationQuery", [query]).status.code
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        await until { reads.waitingCount == count }
        #expect(memory.working.usedBytes == 0)
        // What they have become is still counted.
        #expect(memory.received.usedBytes >= count * query.count * 4)
        for read in held { read.end() }
        #expect(await answers == Array(repeating: .ok, count: count))
        await until { memory.working.usedBytes == 0 && memory.received.usedBytes == 0 }
    }
}
