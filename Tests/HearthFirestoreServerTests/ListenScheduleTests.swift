@testable import HearthFirestoreServer
import HearthTestSupport
import HearthConcurrency
import HearthModel
import HearthEngine
import HearthWire
import Testing

@testable import HearthHost

@Suite("Boundaries of listeners")
struct ListenBoundaryTests {
    private func boundaries(_ client: ListenClient) -> Int {
        client.changes.count { $0.targetChangeType == .noChange && $0.targetIds.isEmpty && !$0.resumeToken.isEmpty }
    }

    /// A client with a change that waits for a judgement.
    private func waiting(_ harness: ListenHarness) async throws -> ListenClient {
        let client = await harness.client(connection: 1)
        await client.ask([ListenHarness.target(1, "c")])
        await client.rest()
        #expect(client.currentCount == 1)
        await harness.onLoop { client.stream?.judgementsPending += 1 }
        try await harness.database.put("c/a", [:])
        await until { await harness.onLoop { !(client.stream?.pending.isEmpty ?? false) } }
        return client
    }

    private func judge(_ client: ListenClient, _ harness: ListenHarness) async {
        await harness.onLoop {
            client.stream?.judgementsPending -= 1
            client.stream?.proceed()
        }
        await client.rest()
    }

    @Test("are not sent by a heartbeat while earlier changes wait for a judgement")
    func heartbeat() async throws {
        let harness = try ListenHarness()
        let client = try await waiting(harness)
        let before = boundaries(client)
        for _ in 0..<3 {
            await harness.onLoop { client.stream?.beat() }
            for _ in 0..<4 { await harness.onLoop {} }
        }
        #expect(boundaries(client) == before)
        await judge(client, harness)
        #expect(client.responses.contains { $0.documentChange != nil })
        #expect(boundaries(client) == before + 1)
        await client.leave()
        harness.stop()
    }

    @Test("are not sent for an added target while changes of others wait for a judgement")
    func addedTarget() async throws {
        let harness = try ListenHarness()
        let client = try await waiting(harness)
        let before = boundaries(client)
        await client.ask([ListenHarness.target(2, "other")])
        for _ in 0..<10 { await harness.onLoop {} }
        #expect(client.currentCount == 1 && boundaries(client) == before)
        await judge(client, harness)
        #expect(client.currentCount == 2)
        let index = try #require(client.responses.firstIndex { $0.documentChange != nil })
        let later = client.responses[index...].compactMap(\.targetChange)
        #expect(later.contains { $0.targetChangeType == .noChange })
        #expect(boundaries(client) > before)
        // No boundary covered a version before its change was sent.
        let earlier = client.responses[..<index].compactMap(\.targetChange)
        #expect(earlier.count { $0.targetChangeType == .noChange } == before)
        await client.leave()
        harness.stop()
    }
}

@Suite("Listeners that resume")
struct ListenResumeQueueTests {
    @Test("hold no snapshot while they wait for a read, and do not wait after their end")
    func waiting() async throws {
        let reads = LongReads(max: 1)
        let harness = try ListenHarness(reads: reads)
        let first = await harness.client(connection: 100)
        await first.ask([ListenHarness.target(1, "c"), ListenHarness.target(2, "w", #","limit":3"#)])
        await first.rest()
        let token = try #require(first.changes.last { !$0.resumeToken.isEmpty }).resumeToken
        await first.leave()
        // Too many to find in a brief read.
        let count = Limits.briefEntriesMax + 100
        for collection in ["c", "w"] {
            for start in stride(from: 0, to: count, by: 400) {
                try await harness.database.commit(
                    (start..<min(start + 400, count)).map { number in
                        Write(
                            document: ResourceName(
                                database: StreamBench.name, path: ResourcePath([collection, "\(number)"])),
                            operation: .update(fields: MapValue(), mask: nil), transforms: [], precondition: .none)
                    })
            }
        }
        var held: LongRead? = reads.take()
        #expect(held != nil)
        var clients: [ListenClient] = []
        for number in 0..<8 {
            let client = await harness.client(connection: UInt64(number))
            let string = ListenHarness.base64(token)
            await client.ask([
                number % 2 == 0
                    ? ListenHarness.target(1, "c", token: string)
                    : ListenHarness.target(1, "w", #","limit":3"#, token: string)
            ])
            clients.append(client)
        }
        await until { reads.waitingCount == 8 }
        for client in clients { #expect(await harness.onLoop { client.stream?.sending?.isSuspended } == true) }
        for client in clients.prefix(4) { await client.leave() }
        #expect(reads.waitingCount == 4)
        held = nil
        for (number, client) in clients.enumerated().dropFirst(4) {
            await client.rest()
            #expect(client.end == nil && client.currentCount == 1)
            #expect(client.responses.count { $0.documentChange != nil } == (number % 2 == 0 ? count : 3))
            #expect(client.changes.allSatisfy { $0.targetChangeType != .reset })
            await client.leave()
        }
        await until { reads.activeCount == 0 }
        #expect(harness.service.memory.sorting.usedBytes == 0)
        harness.stop()
    }
}

@Suite("Windows of listeners")
struct ListenWindowMemoryTests {
    @Test("hold names, and no more than some of their documents; many changes are sent anew")
    func largeWindow() async throws {
        let memory = ServerMemory(sorting: MemoryBudget(bytesMax: 4 << 20, shareBytesMax: 4 << 20))
        let harness = try ListenHarness(memory)
        let client = await harness.client(connection: 1)
        await client.ask([ListenHarness.target(1, "c", #","limit":1000"#)])
        await client.rest()
        // Thirty documents of 300 KB change while the client takes nothing: more than may wait, and more than queries
        // may hold.
        await client.setTakes(false)
        for number in 0..<30 {
            try await harness.database.put("c/\(number)", ["t": Value.string(String(repeating: "x", count: 300_000))])
        }
        await client.setTakes(true)
        await client.rest()
        #expect(client.end == nil)
        let names = Set(client.responses.compactMap { $0.documentChange?.document?.name })
        #expect(names.count == 30)
        try await harness.database.put("c/0", [:])
        await until { client.responses.compactMap(\.documentChange).last?.document?.fields.isEmpty == true }
        #expect(client.refusals.isEmpty && client.end == nil)
        await client.leave()
        await until { memory.sorting.usedBytes == 0 }
        harness.stop()
    }
}
