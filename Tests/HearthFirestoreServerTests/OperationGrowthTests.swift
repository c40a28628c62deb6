import HearthTestSupport
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthDocuments
import HearthWire
import Synchronization
import Testing

@testable import HearthFirestoreServer

/// The cost of operations at n, 10n and 100n, counted in steps.
@Suite("Operations of n, 10n and 100n parts")
struct OperationGrowthTests {
    @Test("a commit judged by rules judges each write once, and reads each document a few times")
    func judgedCommits() async throws {
        let clock = CountingClock()
        let store = CountedStore()
        let bench = try StreamBench(
            rules: """
                rules_version = '2';
                service cloud.firestore {
                  match /databases/{database}/documents {
                    match /c/{id} { allow write: if resource == null || resource.data.n < request.resource.data.n; }
                  }
                }
                """, clock: clock, store: store)
        for round in 1...2 {
            for count in [10, 100, 1000] {
                let (asked, reads) = (clock.asked.load(ordering: .relaxed), store.reads.load(ordering: .relaxed))
                var request = CommitRequest()
                request.database = StreamBench.root
                request.writes = (0..<count).map { number in
                    WriteMessage(
                        update: DocumentMessage(
                            name: "\(StreamBench.root)/documents/c/\(count)-\(number)",
                            fields: MapValue([MapValue.Field(name: "n", value: .integer(Int64(round)))])))
                }
                let call = TestCall(bench.loop, identity: .nobody)
                await call.run { [request] in bench.service.commit(request, sizeBytes: 100 * count, call) }
                await until { call.end != nil }
                #expect(call.end == .ok)
                // And a few for the commit.
                #expect(clock.asked.load(ordering: .relaxed) - asked <= count + 5)
                #expect(store.reads.load(ordering: .relaxed) - reads <= 2 * count + 10)
            }
        }
    }

    @Test("a document that n targets show is noted for each of them in a few steps", arguments: [10, 100, 1000])
    func targetsOfADocument(count: Int) async throws {
        let harness = try ListenHarness()
        let client = await harness.client(connection: 1)
        for id in 1...count { await client.ask([ListenHarness.documents(id, ["c/d"])]) }
        await until { client.currentCount == count }
        await client.rest()
        await client.setTakes(false)
        // The first message shows that the client takes nothing.
        try await harness.database.put("c/d", ["n": .integer(0)])
        await until { client.shownCount >= count }
        for number in 1...3 { try await harness.database.put("c/d", ["n": .integer(Int64(number))]) }
        let settled = Atomic(false)
        await harness.onLoop { client.stream?.listeners?.settle { _ in settled.store(true, ordering: .releasing) } }
        await until { settled.load(ordering: .acquiring) }
        let (steps, targets) = await harness.onLoop { () -> (Int, Int) in
            let changes = client.stream?.pending
            return (changes?.change(at: 0)?.net.steps ?? 0, changes?.targetCount ?? 0)
        }
        #expect(targets == count)
        // For three commits; a few targets are compared.
        #expect(steps <= 3 * count + 3 * 17 * 17)
        #expect(steps >= 3 * (count - 17))
        await client.leave()
        harness.stop()
    }

    @Test("n targets that are sent anew are each sent once", arguments: [10, 100, 1000])
    func targetsSentAnew(count: Int) async throws {
        let store = CountedStore()
        let bench = try StreamBench(store: store)
        try await bench.database.put("c/d", ["n": .integer(1)])
        let call = await bench.listen()
        for id in 1...count { await call.ask(StreamBench.add(id, documents: ["c/d"])) }
        await until { call.current.count == count && call.endsWithBoundary }
        let (messages, reads) = (call.responses.count, store.reads.load(ordering: .relaxed))
        try await withCheckedContinuation { continuation in
            bench.database.clear { continuation.resume(returning: $0) }
        }.get()
        await until { call.responses.count > messages + 3 * count && call.endsWithBoundary }
        // A reset, the deletion, and CURRENT; and the boundary.
        #expect(call.responses.count - messages == 3 * count + 1)
        #expect(store.reads.load(ordering: .relaxed) - reads <= 3 * count + 10)
        await call.leave()
    }
}

extension TestCall {
    fileprivate var endsWithBoundary: Bool {
        guard let last = responses.last?.targetChange else { return false }
        return last.targetChangeType == .noChange && last.targetIds.isEmpty
    }
}

extension ListenClient {
    fileprivate var shownCount: Int {
        responses.compactMap(\.documentChange).reduce(0) { $0 + $1.targetIds.count }
    }
}
