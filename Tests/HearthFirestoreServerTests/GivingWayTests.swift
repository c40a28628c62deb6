@testable import HearthFirestoreServer
@testable import HearthConcurrency
import HearthTestSupport
import HearthModel
import HearthDocuments
import HearthWire
import Testing

@testable import HearthHost

/// Work whose cost depends on stored documents lets other jobs run first, also when it reads few documents.
@Suite("Work on large documents gives way")
struct GivingWayTests {
    private static let user = Identity.client(ClientIdentity(uid: "a", token: MapValue(), end: nil, projects: .all))

    /// A service whose workers give way at every opportunity.
    private static func bench(rules: String? = nil) throws -> StreamBench {
        try StreamBench(
            rules: rules, pool: WorkerPool(shortThreadsMax: 1, longThreadsMax: 1, sliceNanoseconds: 0))
    }

    /// Starts the work while the only thread of its kind is busy and another client's job waits behind it.
    /// - Parameter before: the number of jobs of that work that end first because they do not give way.
    /// - Returns: the number of jobs that had begun when the other job ran, including that job.
    private static func jobsBegun(
        _ kind: WorkerPool.Kind, in pool: WorkerPool, before: Int = 0, _ begin: () async throws -> Void
    ) async rethrows -> Int {
        func block() -> (begun: Latch, end: Latch) {
            let (begun, end) = (Latch(), Latch())
            pool.run(kind, for: .server, refused: { _ in }) {
                begun.open()
                end.wait()
            }
            return (begun, end)
        }
        var busy = block()
        busy.begun.wait()
        try await begin()
        await until { pool.group(kind).statistics.waiting > 0 }
        for _ in 0..<before {
            let next = block()
            busy.end.open()
            next.begun.wait()
            await until { pool.group(kind).statistics.waiting > 0 }
            busy = next
        }
        return await withCheckedContinuation { continuation in
            pool.run(kind, for: .server, refused: { _ in continuation.resume(returning: 0) }) {
                continuation.resume(returning: pool.group(kind).statistics.running)
            }
            busy.end.open()
        }
    }

    private static func fill(_ bench: StreamBench, _ count: Int, sizeBytes: Int) async throws {
        let string = Value.string(String(repeating: "x", count: sizeBytes))
        for number in 0..<count {
            try await bench.database.put("c/\(number)", ["n": .integer(Int64(number)), "body": string])
        }
    }

    private static func deletion(_ path: String) -> Write {
        Write(
            document: ResourceName(
                database: StreamBench.name, path: ResourcePath(path.split(separator: "/").map(String.init))),
            operation: .delete, transforms: [], precondition: .none)
    }

    @Test func aWindowOfLargeDocuments() async throws {
        let bench = try Self.bench()
        try await Self.fill(bench, 30, sizeBytes: 100_000)
        let call = await bench.listen()
        await call.ask(StreamBench.add(1, limit: 29))
        await until { call.current == [1] }
        // Documents behind the window replace those that leave it.
        let begun = try await Self.jobsBegun(.short, in: bench.service.pool) {
            try await bench.database.commit([Self.deletion("c/0")])
        }
        #expect(begun == 2)
        await until { call.responses.contains { $0.documentChange?.document?.name.hasSuffix("/c/29") ?? false } }
        await call.leave()
    }

    /// More names than a loop judges: before a transaction takes locks, and for the state that is read.
    @Test(arguments: [true, false]) func aJudgementOfManyDocuments(takesLocks: Bool) async throws {
        let bench = try Self.bench(
            rules: """
                service cloud.firestore { match /databases/{database}/documents {
                  match /c/{id} { allow get: if resource.data.n >= 0; }
                } }
                """)
        try await Self.fill(bench, 300, sizeBytes: 10)
        let names = (0..<300).map { #""\#(StreamBench.root)/documents/c/\#($0)""# }.joined(separator: ",")
        let transaction = takesLocks ? #","newTransaction":{"readWrite":{}}"# : ""
        let request = try BatchGetDocumentsRequest(
            json: Array(#"{"database":"\#(StreamBench.root)","documents":[\#(names)]\#(transaction)}"#.utf8), at: "")
        let call = TestCall(bench.loop, identity: Self.user)
        let begun = await Self.jobsBegun(.long, in: bench.service.pool, before: takesLocks ? 0 : 1) {
            await call.run { bench.service.batchGetDocuments(request, call) }
        }
        #expect(begun == 2)
        await until { call.end != nil }
        #expect(call.end == .ok && call.messages.count >= 300)
    }

    /// The check that may stop a query counts bytes as well as entries.
    @Test func aQueryOfLargeDocuments() async throws {
        let bench = try Self.bench()
        try await Self.fill(bench, 30, sizeBytes: 100_000)
        var checks = 0
        let meter = WorkMeter { () throws(Status) in checks += 1 }
        let query = Query(
            parent: ResourceName(database: StreamBench.name, path: ResourcePath([])), scope: .collection("c"))
        let execution = try QueryExecution(NormalizedQuery(query), view: try bench.database.view(), meter: meter)
        while try execution.next() != nil {}
        // At least at every fourth document, where 256 KiB more have been read.
        #expect(checks >= 7)
    }
}
