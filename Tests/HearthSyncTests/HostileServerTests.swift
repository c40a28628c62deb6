import Foundation
import HearthClientFuzzing
import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthSync

/// Begins well, and then sends what cannot be used: a document of another database, and an answer without results.
private final class UnusableServer: Datastore, Sendable {
    /// One for each response that the client has worked on.
    let taken = Gathered<Void>()

    private final class Stream<Request: Sendable>: RequestStream {
        let taken: Gathered<Void>
        let onSend: @Sendable (Request) -> Void
        init(_ taken: Gathered<Void>, _ onSend: @escaping @Sendable (Request) -> Void) {
            self.taken = taken
            self.onSend = onSend
        }
        func send(_ request: Request) { onSend(request) }
        func finish() {}
        func cancel() {}
        func responseTaken() { taken.append(()) }
    }

    func openListen(
        headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<ListenResponse>) -> Void
    ) -> any RequestStream<ListenRequest> {
        onEvent(.opened)
        return Stream(taken) { request in
            let targets = [request.addTarget?.targetId ?? 0]
            onEvent(
                .response(ListenResponse(targetChange: TargetChangeMessage(targetChangeType: .add, targetIds: targets)))
            )
            onEvent(
                .response(
                    ListenResponse(
                        documentChange: DocumentChangeMessage(
                            document: DocumentMessage(name: "projects/x/databases/y/documents/c/d"), targetIds: targets)
                    )))
        }
    }

    func openWrite(
        headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<WriteResponse>) -> Void
    ) -> any RequestStream<WriteRequest> {
        onEvent(.opened)
        return Stream(taken) { request in
            let time = request.writes.isEmpty ? nil : TimestampMessage(seconds: 1)
            onEvent(.response(WriteResponse(streamToken: [1], commitTime: time)))
        }
    }

    func commit(_ request: CommitRequest, headers: RequestHeaders) async throws(Status) -> CommitResponse {
        throw .unimplemented("commit")
    }
    func batchGetDocuments(
        _ request: BatchGetDocumentsRequest, headers: RequestHeaders
    ) async throws(Status) -> [BatchGetDocumentsResponse] { throw .unimplemented("batchGetDocuments") }
    func runAggregationQuery(
        _ request: RunAggregationQueryRequest, headers: RequestHeaders
    ) async throws(Status) -> [RunAggregationQueryResponse] { throw .unimplemented("runAggregationQuery") }
    func observeReachability(_ changed: @escaping @Sendable () -> Void) {}
    func shutDown() {}
}

/// A server that sends anything, to a client that is in use: see `SyncClientFuzzing`.
@Suite("A hostile server", .serialized, .timeLimit(.minutes(Patience.minutes)))
struct HostileServerTests {
    /// Errors that the fuzzer has found stay fixed.
    @Test("Every seed of the fuzz target costs at most its own listeners and writes")
    func seeds() async throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Fuzz/syncclient/seeds")
        let seeds = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        // With a wrong folder this test would pass without reading anything.
        #expect(seeds.count >= 5)
        for seed in seeds where !seed.lastPathComponent.hasPrefix(".") {
            let bytes = [UInt8](try Data(contentsOf: seed))
            // It waits for other threads, which must not be those of the tests.
            try await blocking { SyncClientFuzzing.fuzz(bytes) }
        }
    }

    @Test("Random sessions", arguments: [UInt64(1), 2, 3, 4])
    func random(_ seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<10 {
            let bytes = generator.bytes(300)
            try await blocking { SyncClientFuzzing.fuzz(bytes) }
        }
    }

    /// Otherwise the client would try again as often as the network allows, and send its write each time.
    @Test("Streams that begin well and end with what cannot be used are retried later each time")
    func backoff() throws {
        let clock = StoppedClock()
        let server = UnusableServer()
        let core = SyncCore(
            database: DatabaseName(project: "demo"), persistence: MemoryPersistence(.eager), datastore: server,
            credentials: EmptyCredentials(),
            options: SyncCore.Options(
                clock: clock, firesTimers: false, schedulesMaintenance: false, tokens: { $0(.success(nil)) }))
        core.start()
        core.write([.set("c/a")]) { _ in }
        core.enqueue { engine throws(Status) in
            try engine.eventManager.add(QueryListener(.collection("c"), .init(), onEnd: {}, onEvent: { _ in }))
        }
        core.queue.drain()
        for timer in [WorkerQueue.TimerName.writeStreamBackoff, .listenStreamBackoff] {
            var delays: [Double] = []
            for _ in 0..<5 {
                delays.append(try #require(core.queue.secondsUntil(timer)))
                core.queue.runDelayed(only: timer)
            }
            // At once, then about 1, 1.5, 2.2 and 3.4 seconds, half of it more or less.
            #expect(delays[0] == 0 && delays[1] >= 0.5 && delays[4] >= 1.6, "\(timer): \(delays)")
        }
        // Of each of the six attempts of both: two responses.
        #expect(server.taken.values.count == 24)
        core.terminate {}
        core.queue.drain()
    }
}
