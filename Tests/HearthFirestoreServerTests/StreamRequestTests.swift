import HearthTestSupport
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthDocuments
import HearthWire
import Synchronization
import Testing

@testable import HearthHost

@Suite("Large requests of streams")
struct StreamRequestTests {
    private static let name = StreamSite.name

    private static func commit(_ document: String, _ number: Int64, bytes: Int = 0) -> WriteRequest {
        var fields = [MapValue.Field(name: "n", value: .integer(number))]
        if bytes > 0 { fields.append(MapValue.Field(name: "z", value: .bytes([UInt8](repeating: 1, count: bytes)))) }
        let message = DocumentMessage(name: "\(name.documentsRoot)/c/\(document)", fields: MapValue(fields))
        return WriteRequest(writes: [WriteMessage(update: message)], streamToken: [1])
    }

    /// Takes all of the working memory that the account of the streams may have, so that no large request is decoded.
    private func block(_ memory: ServerMemory) -> Blocked {
        let account = Requester(account: 1, connection: 2, isAdministrator: false)
        var blocked = Blocked()
        var bytes = memory.working.common.claimBytesMax
        while bytes > 0 {
            if let share = memory.working.takeNow(bytes, for: account) {
                blocked.shares.append(share)
            } else {
                bytes /= 2
            }
        }
        return blocked
    }

    private struct Blocked {
        var shares: [WorkingShare] = []
        func end() { for share in shares { share.end() } }
    }

    @Test("are decoded by a worker, in the order of the stream")
    func writes() async throws {
        let bench = try StreamSite()
        bench.write()
        bench.client.say(WriteRequest(database: Self.name.string))
        for number in 1...9 {
            bench.client.say(Self.commit("d", Int64(number), bytes: number % 3 == 0 ? 200 << 10 : 0))
        }
        await until { bench.client.received.count == 10 || bench.client.end != nil }
        #expect(bench.client.end == nil)
        // Three were large, and each was counted and decoded.
        #expect(bench.jobs == 6)
        let times = try bench.client.received.dropFirst().map {
            try #require(try WriteResponse(protobuf: $0).commitTime).timestamp()
        }
        #expect(times == times.sorted())
        let path = ResourcePath(["c", "d"])
        let stored = try #require(try bench.registry.database(Self.name).view().document(path))
        #expect(try FieldsCodec.decode(stored.fields)["n"] == .integer(9))
        await until { bench.memory.working.usedBytes == 0 && bench.memory.received.usedBytes == 0 }
        await bench.stop()
    }

    @Test("a commit in progress is answered before a later request ends the stream")
    func endsBehindAnswers() async throws {
        let bench = try StreamSite()
        let share = block(bench.memory)
        bench.write()
        bench.client.say(WriteRequest(database: Self.name.string))
        for number in 1...2 { bench.client.say(Self.commit("d", Int64(number), bytes: 200 << 10)) }
        bench.client.garble()
        await bench.client.settle()
        #expect(bench.client.end == nil)
        share.end()
        await until { bench.client.end != nil }
        #expect(bench.client.received.count == 3)
        #expect(bench.client.end?.code == .internal)
        await bench.stop()
    }

    @Test("wait for memory while encoded, and later requests wait and are counted")
    func waiting() async throws {
        let bench = try StreamSite()
        let share = block(bench.memory)
        bench.write()
        bench.client.say(WriteRequest(database: Self.name.string))
        bench.client.say(Self.commit("d", 1, bytes: 200 << 10))
        for number in 2...5 { bench.client.say(Self.commit("d", Int64(number), bytes: 50 << 10)) }
        await until { bench.memory.working.waitingCount == 1 }
        await bench.client.settle()
        #expect(bench.client.received.count == 1)
        #expect(bench.memory.received.usedBytes >= 400 << 10)
        share.end()
        await until { bench.client.received.count == 6 || bench.client.end != nil }
        #expect(bench.client.end == nil)
        await until { bench.memory.working.usedBytes == 0 && bench.memory.received.usedBytes == 0 }
        await bench.stop()
    }

    @Test("end their stream when the client's share is used up, after the response to the commit in progress")
    func refused() async throws {
        let small = MemoryBudget(bytesMax: 1 << 20, shareBytesMax: 300 << 10)
        let bench = try StreamSite(ServerMemory(received: small))
        let share = block(bench.memory)
        bench.write()
        bench.client.say(WriteRequest(database: Self.name.string))
        bench.client.say(Self.commit("d", 1, bytes: 200 << 10))
        bench.client.say(Self.commit("d", 2, bytes: 110 << 10))
        await bench.client.settle()
        #expect(bench.client.end == nil)
        share.end()
        await until { bench.client.end != nil }
        #expect(bench.client.end?.code == .resourceExhausted)
        #expect(bench.client.received.count == 2)
        await bench.stop()
        #expect(small.usedBytes == 0)
        #expect(bench.memory.working.usedBytes == 0)
    }

    @Test("leave nothing behind when their client disconnects while they wait")
    func cancelled() async throws {
        for listens in [false, true] {
            let bench = try StreamSite()
            let share = block(bench.memory)
            if listens { bench.listen() } else { bench.write() }
            if listens {
                bench.client.say(Self.documents(1))
                bench.client.say(Self.documents(2))
            } else {
                bench.client.say(WriteRequest(database: Self.name.string))
                bench.client.say(Self.commit("d", 1, bytes: 200 << 10))
                bench.client.say(Self.commit("d", 2))
            }
            await until { bench.memory.working.waitingCount == 1 }
            bench.client.leave()
            await bench.client.settle()
            share.end()
            await until { bench.memory.working.usedBytes == 0 && bench.memory.received.usedBytes == 0 }
            let path = ResourcePath(["c", "d"])
            #expect(try bench.registry.database(Self.name).view().document(path) == nil)
            await bench.stop()
        }
    }

    /// A target of 1,000 documents with long names.
    private static func documents(_ id: Int32) -> ListenRequest {
        let names = (0..<1000).map {
            "\(name.documentsRoot)/c/\(String(repeating: "x", count: 200))\($0)"
        }
        return ListenRequest(
            database: name.string, addTarget: TargetMessage(documents: .init(documents: names), targetId: id))
    }

    @Test("add and remove targets in the order of the stream")
    func listens() async throws {
        let bench = try StreamSite()
        bench.listen()
        bench.client.say(Self.documents(1))
        bench.client.say(ListenRequest(removeTarget: 1))
        bench.client.say(Self.documents(1))
        bench.client.say(ListenRequest(removeTarget: 1))
        func changes() throws -> [TargetChangeMessage] {
            try bench.client.received.compactMap { try ListenResponse(protobuf: $0).targetChange }
                .filter { $0.targetIds == [1] && [.add, .remove].contains($0.targetChangeType) }
        }
        try await until { try changes().count == 4 || bench.client.end != nil }
        #expect(bench.client.end == nil)
        #expect(try changes().map(\.targetChangeType) == [.add, .remove, .add, .remove])
        #expect(bench.jobs >= 4)
        await until { bench.memory.working.usedBytes == 0 && bench.memory.received.usedBytes == 0 }
        await bench.stop()
    }

    @Test("are not stored decoded while their client takes nothing")
    func stalled() async throws {
        let bench = try StreamSite()
        let share = block(bench.memory)
        bench.listen()
        bench.client.say(Self.documents(1))
        await until { bench.memory.working.waitingCount == 1 }
        // The messages that are sent now are not taken.
        bench.client.take(false)
        bench.client.say(ListenRequest(removeTarget: 7))
        await bench.client.settle()
        share.end()
        await until { bench.memory.working.usedBytes == 0 }
        bench.client.take(true)
        func isAdded() throws -> Bool {
            try bench.client.received.contains {
                try ListenResponse(protobuf: $0).targetChange?.targetChangeType == .current
            }
        }
        try await until { try isAdded() || bench.client.end != nil }
        #expect(bench.client.end == nil)
        await bench.stop()
        #expect(bench.memory.received.usedBytes == 0)
    }
}
