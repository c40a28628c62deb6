import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthTree
import Synchronization
import HearthTestSupport
import Testing

@testable import HearthRealtimeServer

/// The events of a namespace on a loop that needs many ticks to notify all listeners.
@Suite struct LoopOrderTests {
    /// A slow listener that records its events.
    private final class Slow: ListenReceiver, @unchecked Sendable {
        // Belongs to the loop.
        private(set) var received: [[UInt8]] = []
        var handle: RealtimeSubscription! = nil
        let note: () -> Void
        static let milliseconds = 1

        init(_ note: @escaping () -> Void) { self.note = note }

        func listen(_ listen: RealtimeSubscription, changed push: RealtimePush) {
            let end = MonotonicTime.now.advanced(milliseconds: Self.milliseconds)
            while MonotonicTime.now < end {}
            received.append(push.message)
            note()
        }

        func listenIsStale(_ listen: RealtimeSubscription) {}
        func listen(_ listen: RealtimeSubscription, failed status: Status) {}
    }

    private static let count = 100
    private static let target = RealtimeTarget(path: "a", query: nil)

    private final class Rounds: @unchecked Sendable {
        // Belongs to the loop: the number of listeners that were notified before each of its ticks.
        var notified = 0
        var ticks: [Int] = []
        var isOver = false

        func tick(_ loop: EventLoop) {
            loop.execute { [self] in
                ticks.append(notified)
                if !isOver { tick(loop) }
            }
        }
    }

    /// Live listeners at one location.
    private func listeners(_ bench: Bench, _ rounds: Rounds) -> [Slow] {
        let loop = bench.loops[0]
        let slow = (0..<Self.count).map { _ in Slow { rounds.notified += 1 } }
        for one in slow {
            loop.execute { [hub = bench.hub] in
                one.handle = hub.listen(to: Self.target, on: loop, one)
                one.handle.load(.brief, for: .server, { _ throws(Status) in 0 }, { _ in })
            }
        }
        while !bench.on(loop, { slow.allSatisfy { $0.handle.isLive } }) {}
        return slow
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func theLoopRunsOtherJobsWhileManyListenersAreNotified() throws {
        let bench = try Bench(loops: 1)
        defer { bench.close() }
        let rounds = Rounds()
        let slow = listeners(bench, rounds)
        rounds.tick(bench.loops[0])
        bench.write([TreeChange(path: "a", node: Node(.integer(1)))])
        let latch = Latch()
        // Jobs behind a commit run when all listeners have received it.
        bench.hub.execute(on: bench.loops[0]) {
            #expect(rounds.notified == Self.count)
            rounds.isOver = true
            latch.open()
        }
        latch.wait()
        bench.settle()
        let counts = bench.on(bench.loops[0]) { rounds.ticks }
        // At most some ten milliseconds of listeners in one tick.
        #expect(zip(counts, counts.dropFirst()).allSatisfy { $1 - $0 <= 32 })
        #expect(bench.on(bench.loops[0]) { slow.allSatisfy { $0.received.count == 1 } })
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func listenersAddedOrCancelledMeanwhileReceiveTheirEvents() throws {
        let bench = try Bench(loops: 1)
        defer { bench.close() }
        let loop = bench.loops[0]
        let rounds = Rounds()
        let slow = listeners(bench, rounds)
        let late = Mirror(Self.target)
        let isLate = Atomic(false)
        let hub = bench.hub
        @Sendable func watch() {
            loop.execute {
                guard rounds.notified > 0 else { return watch() }
                // Some have received it: every second one is cancelled, and one more is added.
                for one in slow.enumerated() where one.offset % 2 == 1 { one.element.handle.cancel() }
                late.begin(hub, on: loop)
                isLate.store(true, ordering: .releasing)
            }
        }
        watch()
        bench.write([TreeChange(path: "a", node: Node(.integer(1)))])
        bench.write([TreeChange(path: "a", node: Node(.integer(2)))])
        while !isLate.load(ordering: .acquiring) {}
        while !bench.on(loop, { late.isLoaded }) {}
        bench.settle()
        bench.write([TreeChange(path: "a", node: Node(.integer(3)))])
        bench.settle()
        let received = bench.on(loop) { slow.map(\.received.count) }
        for (number, count) in received.enumerated() { #expect(number % 2 == 0 ? count == 3 : count <= 2) }
        #expect(received.enumerated().contains { $0.offset % 2 == 1 && $0.element == 0 })
        #expect(bench.on(loop) { late.node } == Node(.integer(3)) && bench.on(loop) { late.faults }.isEmpty)
    }
}
