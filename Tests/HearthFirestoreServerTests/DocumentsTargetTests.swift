@testable import HearthConcurrency
import HearthTestSupport
import HearthModel
import HearthNetwork
import HearthEngine
import HearthWire
import Synchronization
import Testing

@testable import HearthHost

/// Targets that name many large documents: neither their results nor the documents that rules read are all read at
/// once.
@Suite("Targets of many documents")
struct DocumentsTargetTests {
    private static let count = 40
    private static let names = (0..<count).map { "c/\($0)" }
    private static let user = Identity.client(ClientIdentity(uid: "a", token: MapValue(), end: nil, projects: .all))

    private static func fill(_ bench: StreamBench, sizeBytes: Int) async throws {
        let string = Value.string(String(repeating: "x", count: sizeBytes))
        for name in names { try await bench.database.put(name, ["n": .integer(1), "body": string]) }
    }

    @Test("are sent at the client's speed")
    func backPressure() async throws {
        let bench = try StreamBench()
        try await Self.fill(bench, sizeBytes: 200_000)
        let call = await bench.listen()
        await call.set(hasCapacity: false)
        await call.ask(StreamBench.add(1, documents: Self.names + ["c/missing"]))
        // A connection that takes nothing gets nothing more, however many ticks pass.
        for _ in 0..<50 { await call.run {} }
        #expect(call.responses.compactMap(\.documentChange).count <= 3)
        #expect(call.current.isEmpty)
        // Meanwhile one document changes: the old version is sent, then the new one.
        try await bench.database.put("c/7", ["n": .integer(2)])
        await call.set(hasCapacity: true)
        await until { call.current == [1] }
        await until { call.responses.contains { $0.documentChange?.document?.fields["n"] == .integer(2) } }
        let shown = call.responses.compactMap { $0.documentChange?.document }.filter { $0.fields["n"] == .integer(1) }
        #expect(shown.map(\.name).count == Self.count && Set(shown.map(\.name)).count == Self.count)
        #expect(
            call.responses.compactMap(\.documentDelete).map(\.document) == [StreamBench.root + "/documents/c/missing"])
        await call.leave()
    }

    private static func rules(_ condition: String) -> String {
        """
        rules_version = '2';
        service cloud.firestore { match /databases/{database}/documents {
          match /c/{id} { allow read: if \(condition); }
        } }
        """
    }

    @Test(
        "are judged by a worker when that takes more than a loop may do",
        arguments: ["resource.data.size() > 0", "resource.data.n > 0"])
    func judgedByWorkers(condition: String) async throws {
        let clock = CountingClock()
        let bench = try StreamBench(rules: Self.rules(condition), clock: clock)
        try await Self.fill(bench, sizeBytes: 300_000)
        let call = await bench.listen(identity: Self.user)
        clock.watch(bench.loop)
        await call.ask(StreamBench.add(1, documents: Self.names))
        await until { call.current == [1] }
        #expect(call.documents(of: 1).count == Self.count)
        #expect(clock.askedOnLoop.load(ordering: .relaxed) < Self.count / 2)
        #expect(clock.askedElsewhere.load(ordering: .relaxed) >= Self.count)
        await call.leave()
    }

    @Test("are judged again by a worker, and nothing is sent before")
    func judgedAgain() async throws {
        let bench = try StreamBench(rules: Self.rules("resource.data.size() > 1"))
        try await Self.fill(bench, sizeBytes: 100_000)
        let call = await bench.listen(identity: Self.user)
        await call.ask(StreamBench.add(1, documents: Self.names))
        await until { call.current == [1] }
        for number in 2...6 {
            try await bench.database.put("c/3", ["n": .integer(Int64(number)), "body": .string("now small")])
        }
        await until { call.responses.contains { $0.documentChange?.document?.fields["n"] == .integer(6) } }
        #expect(call.refused.isEmpty)
        // The client does not get documents that it may not see, and the target ends.
        try await bench.database.put("c/3", ["secret": .integer(1)])
        await until { call.refused == [1: Int32(Status.Code.permissionDenied.rawValue)] }
        #expect(!call.responses.contains { $0.documentChange?.document?.fields["secret"] != nil })
        await call.leave()
    }

    @Test("that rules deny are denied by a worker, too")
    func refusedByWorkers() async throws {
        let bench = try StreamBench(rules: Self.rules("resource.data.size() > 0 && id != '39'"))
        try await Self.fill(bench, sizeBytes: 100_000)
        let call = await bench.listen(identity: Self.user)
        await call.ask(StreamBench.add(1, documents: Self.names))
        await call.ask(StreamBench.add(2, documents: ["c/1", "c/2"]))
        await until { call.current == [2] }
        #expect(call.refused == [1: Int32(Status.Code.permissionDenied.rawValue)])
        #expect(call.documents(of: 1).isEmpty && call.documents(of: 2).count == 2)
        await call.leave()
    }

    @Test("whose client disconnects during a worker's judgement leave nothing behind")
    func leaving() async throws {
        let reads = LongReads()
        let bench = try StreamBench(longReads: reads, rules: Self.rules("resource.data.size() > 0"))
        try await Self.fill(bench, sizeBytes: 100_000)
        for _ in 0..<20 {
            let call = await bench.listen(identity: Self.user)
            await call.ask(StreamBench.add(1, documents: Self.names))
            await call.leave()
            #expect(call.current.isEmpty || call.current == [1])
        }
        let call = await bench.listen(identity: Self.user)
        await call.ask(StreamBench.add(1, documents: Self.names))
        await until { call.current == [1] }
        await call.leave()
    }
}
