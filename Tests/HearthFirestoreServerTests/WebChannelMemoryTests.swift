import HearthTestSupport
import HearthConcurrency
import HearthModel
import HearthNetwork
import Synchronization
import Testing

@testable import HearthHost
@testable import HearthFirestoreServer

@Suite("Unacknowledged output of WebChannel clients")
struct WebChannelMemoryTests {
    private final class Bench {
        let loop: EventLoop
        let memory: ServerMemory
        private let observer = RequestObserver(metrics: RequestMetrics(loopCount: 1))
        /// The connections whose streams were notified.
        let cancelled = Mutex<[UInt64]>([])

        init(bytesMax: Int, shareBytesMax: Int) throws {
            loop = try EventLoop(index: 0)
            try loop.start()
            memory = ServerMemory(
                unacknowledged: MemoryBudget(bytesMax: bytesMax, shareBytesMax: shareBytesMax))
        }

        /// Runs on the loop and waits.
        func run<Value: Sendable>(_ body: @escaping @Sendable (Bench) throws -> Value) async throws -> Value {
            let box = Box(self)
            return try await withCheckedThrowingContinuation { continuation in
                loop.execute { continuation.resume(with: Result { try body(box.bench) }) }
            }
        }

        func call(account: UInt64, connection: UInt64) -> WebChannelCall {
            let call = WebChannelCall(
                id: "s\(account)-\(connection)", .nobody,
                Requester(account: account, connection: connection, isAdministrator: false), headers: [], loop: loop,
                observation: observer.begin(.listen, .webChannel, remote: ""), memory: memory, rank: { _ in },
                forget: {})
            call.onCancel = { [self] in cancelled.withLock { $0.append(connection) } }
            return call
        }
    }

    private final class Box: @unchecked Sendable {
        let bench: Bench
        init(_ bench: Bench) { self.bench = bench }
    }

    /// What the sessions are like after they have sent.
    private struct Found {
        let usedBytes: Int
        let ended: Set<UInt64>
        let cancelled: Set<UInt64>
        let notified: [UInt64]
        let isOtherEnded: Bool
    }

    private static let message = Array("\"\(String(repeating: "x", count: 60_000))\"".utf8)

    @Test("is limited for each account: sessions beyond it end, and others continue", arguments: [10, 100, 400])
    func bounded(sessions: Int) async throws {
        let bench = try Bench(bytesMax: 8 << 20, shareBytesMax: 4 << 20)
        // In one job of the loop: no session is idle for too long meanwhile, however busy the machine is.
        let (calls, other, found) = try await bench.run { bench in
            let calls = (0..<sessions).map { bench.call(account: 1, connection: UInt64($0)) }
            for call in calls { for _ in 0..<4 where !call.isFinished { _ = call.send(Self.message) } }
            let usedBytes = bench.memory.unacknowledged.usedBytes
            let other = bench.call(account: 2, connection: 1_000)
            for _ in 0..<4 { _ = other.send(Self.message) }
            let found = Found(
                usedBytes: usedBytes, ended: Set(calls.filter(\.isFinished).map(\.requester.connection)),
                cancelled: Set(calls.filter(\.cancellation.isCancelled).map(\.requester.connection)),
                notified: bench.cancelled.withLock { $0 }, isOtherEnded: other.isFinished)
            return (calls, other, found)
        }
        #expect(found.usedBytes <= 4 << 20)
        #expect(found.ended.count >= sessions - (4 << 20) / 240_000 - 1)
        #expect(found.ended.count < sessions)
        #expect(found.ended == found.cancelled && !found.isOtherEnded)
        // Their streams are notified, after they have finished sending.
        #expect(found.notified.isEmpty)
        await until { found.ended.isSubset(of: bench.cancelled.withLock { $0 }) }
        // Acknowledging frees memory.
        try await bench.run { _ in
            for call in calls {
                try call.receive(ForwardBody(), acknowledging: 1_000) { _ in }
                call.abandon()
            }
            other.abandon()
        }
        await until { bench.cancelled.withLock { $0 }.count == sessions + 1 }
        bench.loop.stopAndJoin()
    }

    @Test("must be acknowledged early while memory is scarce")
    func scarce() {
        for isScarce in [false, true] {
            var session = WebChannelSession(id: "s")
            session.isScarce = isScarce
            session.attach(polls: false)
            for _ in 0..<3 { session.append(Self.message) }
            var ends = false
            while let output = session.takeOutput() { ends = output.endsBackChannel }
            #expect(ends == isScarce)
        }
    }

    @Test("is dropped if it was never written, and later output takes its numbers")
    func dropped() {
        var session = WebChannelSession(id: "s")
        session.attach(polls: true)
        session.append(Array("1".utf8))
        #expect(session.takeOutput() != nil)
        session.append(Array("2".utf8))
        session.append(Array("3".utf8))
        let bytes = session.queuedBytes
        session.dropUnwritten()
        #expect(session.queuedBytes < bytes)
        session.append(Array("4".utf8))
        session.acknowledge(1)
        session.attach(polls: true)
        #expect(session.takeOutput()?.bytes == Array("7\n[[2,4]]".utf8))
    }
}
