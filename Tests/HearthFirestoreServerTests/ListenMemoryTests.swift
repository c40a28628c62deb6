import HearthTestSupport
import HearthConcurrency
import HearthModel
import HearthDocuments
import HearthWire
import Testing

@testable import HearthHost
@testable import HearthFirestoreServer

@Suite("Memory that the server holds for listeners")
struct ListenMemoryTests {
    private static func strings(_ seed: Int, _ count: Int, _ size: Int) -> [String] {
        (0..<count).map { "\(seed)-\($0)-" + String(repeating: "x", count: size) }
    }

    @Test("is limited for each account: targets beyond it fail, and the stream continues")
    func targetsAreRefused() async throws {
        let budget = MemoryBudget(bytesMax: 2 << 20, shareBytesMax: 1 << 20)
        let harness = try ListenHarness(ServerMemory(listening: budget))
        let client = await harness.client(connection: 1)
        let asked = 40
        for id in 1...asked { await client.ask([ListenHarness.query(id, "c", in: Self.strings(id, 30, 1400))]) }
        await client.rest()
        #expect(client.end == nil)
        // A target needs more than three times the size of its request of 43 KB.
        #expect((1...8).contains(client.currentCount))
        #expect(client.refusals.count == asked - client.currentCount)
        #expect(client.refusals.allSatisfy { $0.cause?.code == Int32(Status.Code.resourceExhausted.rawValue) })
        #expect(budget.usedBytes <= 1 << 20 && budget.usedBytes >= client.currentCount * 3 * 43_000)
        // Another account is not affected.
        let bystander = await harness.client(account: 2, connection: 2)
        await bystander.ask([ListenHarness.query(1, "c", in: ["a"])])
        await bystander.rest()
        #expect(bystander.currentCount == 1)
        // Removing a target frees its memory.
        let count = client.currentCount
        await client.ask([#"{"database":"\#(ListenHarness.name)","removeTarget":1}"#])
        await client.ask([ListenHarness.query(99, "c", in: Self.strings(99, 30, 1400))])
        await client.rest()
        #expect(client.currentCount == count + 1)
        await client.leave()
        await bystander.leave()
        await until { budget.usedBytes == 0 }
        harness.stop()
    }

    @Test("is bounded for targets of many documents too")
    func documentsTargetsAreRefused() async throws {
        let budget = MemoryBudget(bytesMax: 2 << 20, shareBytesMax: 1 << 20)
        let harness = try ListenHarness(ServerMemory(listening: budget))
        let client = await harness.client(connection: 1)
        for id in 1...10 { await client.ask([ListenHarness.documents(id, (0..<500).map { "c/\(id)-\($0)" })]) }
        await client.rest()
        #expect(client.end == nil)
        #expect((1...8).contains(client.currentCount))
        #expect(client.refusals.count == 10 - client.currentCount)
        await client.leave()
        await until { budget.usedBytes == 0 }
        harness.stop()
    }

    @Test("is counted once for a query with many watchers")
    func sharedQueries() async throws {
        let budget = MemoryBudget(bytesMax: 64 << 20, shareBytesMax: 64 << 20)
        let harness = try ListenHarness(ServerMemory(listening: budget))
        let request = ListenHarness.query(1, "c", in: Self.strings(0, 30, 1400))
        var clients: [ListenClient] = []
        var first = 0
        for number in 0..<20 {
            let client = await harness.client(account: UInt64(number), connection: UInt64(number))
            await client.ask([request])
            await client.rest()
            #expect(client.currentCount == 1)
            clients.append(client)
            if number == 0 { first = budget.usedBytes }
        }
        #expect(first > 100_000)
        #expect(budget.usedBytes < first + 20 * 2000)
        // The first watcher may end before the others.
        for client in clients { await client.leave() }
        await until { budget.usedBytes == 0 }
        harness.stop()
    }

    @Test("is limited for changes that wait for slow clients, which get everything anew")
    func pendingChanges() async throws {
        let budget = MemoryBudget(bytesMax: 1 << 20, shareBytesMax: 1 << 20)
        let harness = try ListenHarness(ServerMemory(listenersWaiting: budget))
        var clients: [ListenClient] = []
        for number in 0..<20 {
            let client = await harness.client(connection: UInt64(number))
            await client.ask([ListenHarness.target(1, "c\(number)")])
            await client.rest()
            await client.setTakes(false)
            clients.append(client)
        }
        // The first change is sent but not taken, the others wait.
        for round in 0..<4 {
            for number in clients.indices {
                let string = Value.string(String(repeating: "y", count: 100_000))
                try await harness.database.put("c\(number)/d\(round)", ["t": string])
                await harness.onLoop {}
                #expect(budget.usedBytes <= 1 << 20)
            }
        }
        #expect(budget.usedBytes > 0)
        for client in clients { await client.setTakes(true) }
        for client in clients { await client.rest() }
        for client in clients {
            let known = Set(client.responses.compactMap { $0.documentChange?.document?.name })
            #expect(known.count == 4 && client.end == nil)
        }
        let resets = clients.reduce(0) { $0 + $1.changes.count { $0.targetChangeType == .reset } }
        #expect(resets > 0 && resets < clients.count)
        #expect(budget.usedBytes == 0)
        for client in clients { await client.leave() }
        harness.stop()
    }
}

@Suite("The loop of many targets")
struct ListenSliceTests {
    /// The number of ticks until a stream's targets are removed.
    private func ticks(_ count: Int, _ harness: ListenHarness) async -> Int {
        let client = await harness.client(connection: 1)
        for id in 1...count { await client.ask([ListenHarness.query(id, "c", in: ["\(id)"])]) }
        await client.rest()
        #expect(client.currentCount == count)
        let listeners = await harness.onLoop { client.stream?.listeners }
        await client.leave()
        var ticks = 0
        while await harness.onLoop({ listeners?.leavingCount ?? 0 }) > 0 { ticks += 1 }
        return ticks
    }

    @Test("removes the targets of an ended stream in several ticks, and does other work in between")
    func leaving() async throws {
        let harness = try ListenHarness()
        let many = await ticks(1000, harness)
        #expect(many >= 4)
        let budget = harness.service.memory.listening
        await until { budget.usedBytes == 0 }
        harness.stop()
    }

    @Test("handles a few waiting requests per tick")
    func requests() async throws {
        let harness = try ListenHarness()
        let client = await harness.client(connection: 1)
        // Each of them fails immediately.
        let refused = ListenHarness.target(1, "c", #","limit":-1"#)
        await client.setTakes(false)
        await client.ask([ListenHarness.target(1000, "c")])
        await client.ask((0..<90).map { _ in refused })
        var counts: [Int] = []
        await client.setTakes(true)
        while client.refusals.count < 90 {
            counts.append(await harness.onLoop { client.refusals.count })
        }
        let steps = zip(counts, counts.dropFirst()).map { $1 - $0 }
        #expect(steps.allSatisfy { $0 <= 2 * ListenStream.tickRequestsMax })
        await client.leave()
        harness.stop()
    }

    @Test("judges a target once, however many documents of a commit may affect it")
    func judgements() async throws {
        let harness = try ListenHarness(
            rules: """
                rules_version = '2';
                service cloud.firestore { match /databases/{db}/documents {
                  match /c/{d} { allow read: if true; }
                }}
                """)
        let client = await harness.client(connection: 1, identity: .nobody)
        await client.ask([ListenHarness.documents(1, (0..<100).map { "c/\($0)" })])
        await client.rest()
        #expect(client.currentCount == 1)
        let listeners = await harness.onLoop { client.stream?.listeners }
        let before = await harness.onLoop { listeners?.judgementCount ?? 0 }
        let writes = (0..<100).map {
            Write(
                document: ResourceName(database: harness.database.name, path: ResourcePath(["c", "\($0)"])),
                operation: .update(fields: MapValue([]), mask: nil), transforms: [], precondition: .none)
        }
        try await harness.database.commit(writes)
        await client.rest()
        await until { Set(client.responses.compactMap { $0.documentChange?.document?.name }).count == 100 }
        // One judgement of a hundred documents.
        #expect(await harness.onLoop { listeners?.judgementCount ?? 0 } - before == 100)
        await client.leave()
        harness.stop()
    }
}
