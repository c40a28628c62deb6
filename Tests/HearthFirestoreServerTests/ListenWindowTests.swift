@testable import HearthFirestoreServer
import HearthTestSupport
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthEngine
import HearthWire
import Synchronization
import Testing

@testable import HearthHost

@Suite("Targets with a limit")
struct ListenWindowTests {
    private func fill(_ bench: StreamBench, _ count: Int) async throws {
        for number in 0..<count { try await bench.database.put("c/\(number)", ["n": .integer(Int64(number))]) }
    }

    @Test("fail beyond the memory of their client, and the others of the stream continue")
    func memory() async throws {
        let windows = MemoryBudget(bytesMax: 1 << 20, shareBytesMax: 128 << 10)
        let bench = try StreamBench(memory: ServerMemory(windows: windows))
        try await fill(bench, 150)
        let call = await bench.listen(identity: .nobody)
        let count: Int32 = 20
        // Limits differ, so that each target has its own query.
        for id in 1...count { await call.ask(StreamBench.add(Int(id), limit: 120 + Int(id))) }
        await until { call.current.count + call.refused.count >= count }
        #expect(!call.current.isEmpty && !call.refused.isEmpty && call.end == nil)
        #expect(Set(call.refused.values) == [Int32(Status.Code.resourceExhausted.rawValue)])
        #expect(windows.usedBytes > 64 << 10 && windows.usedBytes <= 128 << 10)
        // Removing targets frees their memory.
        let remaining = try #require(call.current.min())
        let leaving = call.current.subtracting([remaining])
        for id in leaving { await call.ask(#"{"removeTarget": \#(id)}"#) }
        await until { call.refused.count >= Int(count) - 1 }
        await call.ask(StreamBench.add(100, limit: 140))
        await until { call.current.contains(100) || call.refused[100] != nil }
        #expect(call.current.contains(100))
        // The remaining targets are still notified of changes.
        try await bench.database.put("c/first", ["n": .integer(-1)])
        let name = "\(StreamBench.root)/documents/c/first"
        await until { call.documents(of: remaining).contains(name) && call.documents(of: 100).contains(name) }
        await call.leave()
        // A worker may still hold the memory of a search.
        await until { windows.usedBytes == 0 }
    }

    /// The number of ticks of a loop.
    private final class Rounds: Sendable {
        let count = Mutex(0)
        let isOver = Mutex(false)

        func tick(_ loop: EventLoop) {
            loop.execute { [self] in
                count.withLock { $0 += 1 }
                if !isOver.withLock({ $0 }) { tick(loop) }
            }
        }
    }

    @Test("are moved in slices when one commit concerns many of them")
    func slices() async throws {
        let bench = try StreamBench()
        try await fill(bench, 110)
        let call = await bench.listen()
        let count: Int32 = 100
        for id in 1...count { await call.ask(StreamBench.add(Int(id), limit: Int(id))) }
        await until { call.current.count == Int(count) && !call.boundaries.isEmpty }
        let before = call.boundaries.count
        let rounds = Rounds()
        rounds.tick(bench.loop)
        try await bench.database.put("c/first", ["n": .integer(-1)])
        await until { call.boundaries.count > before }
        let ticks = rounds.count.withLock { $0 }
        rounds.isOver.withLock { $0 = true }
        // All of them in one snapshot of one version.
        for id in 1...count {
            let expected = Set(
                (0..<Int(id)).map { "\(StreamBench.root)/documents/c/\($0 == 0 ? "first" : "\($0 - 1)")" })
            #expect(call.documents(of: id) == expected)
        }
        // 5,050 results, of which one tick finds 1,500 and the last window.
        #expect(ticks >= 3)
        await call.leave()
    }

    @Test("leave the queue of long reads when they have no watchers any more")
    func cancelled() async throws {
        let reads = LongReads(max: 1)
        let bench = try StreamBench(longReads: reads)
        try await fill(bench, 10)
        let call = await bench.listen()
        // For a worker: too many for one tick of the loop.
        await call.ask(StreamBench.add(1, limit: 5000))
        await until { call.current == [1] && !call.boundaries.isEmpty && reads.activeCount == 0 }
        let held = try #require(reads.take())
        try await bench.database.put("c/3", ["n": .integer(33)])
        await until { reads.waitingCount == 1 }
        await call.leave()
        await until { reads.waitingCount == 0 }
        held.end()
        #expect(reads.activeCount == 0)
    }
}

@Suite("A target that is resumed")
struct ListenResumeTests {
    /// Changes are held by name while the client takes nothing; they do not need a snapshot.
    @Test("holds no snapshot while its client takes nothing")
    func suspends() async throws {
        let reads = LongReads(max: 1)
        let bench = try StreamBench(longReads: reads)
        func put(_ numbers: Range<Int>, _ more: Int) async throws {
            try await bench.database.commit(
                numbers.map { number in
                    Write(
                        document: ResourceName(database: StreamBench.name, path: ResourcePath(["c", "\(number)"])),
                        operation: .update(
                            fields: MapValue([MapValue.Field(name: "n", value: .integer(Int64(number + more)))]),
                            mask: nil))
                })
        }
        try await put(0..<10, 0)
        let first = await bench.listen()
        await first.ask(StreamBench.add(1))
        await until { !first.boundaries.isEmpty }
        let token = try #require(first.boundaries.last?.resumeToken)
        await first.leave()
        try await put(5..<800, 7)
        for number in 0..<3 {
            let name = ResourceName(database: StreamBench.name, path: ResourcePath(["c", "\(number)"]))
            try await bench.database.commit([Write(document: name, operation: .delete)])
        }
        let call = await bench.listen()
        await call.set(hasCapacity: false)
        var writer = JSONWriter()
        token.withUnsafeBytes { writer.base64($0) }
        let string = String(decoding: writer.bytes, as: UTF8.self)
        await call.ask(StreamBench.add(1, more: #", "resumeToken": \#(string)"#))
        // The first batch is sent, and the client takes nothing more.
        await until { call.messages.count > 200 && reads.activeCount == 0 }
        #expect(call.current.isEmpty)
        #expect(reads.take() != nil)
        // Changes in the meantime are sent afterwards.
        try await bench.database.put("c/late", ["n": .integer(1)])
        await call.set(hasCapacity: true)
        await until { call.documents(of: 1).contains("\(StreamBench.root)/documents/c/late") }
        let deleted = call.responses.compactMap(\.documentDelete).map(\.document)
        #expect(Set(deleted) == Set((0..<3).map { "\(StreamBench.root)/documents/c/\($0)" }))
        #expect(call.documents(of: 1).count == 796)
        await call.leave()
        await until { reads.activeCount == 0 && bench.service.memory.sorting.usedBytes == 0 }
    }
}
