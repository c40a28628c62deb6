#if DEBUG
import HearthConcurrency
import Synchronization
import Testing

@Suite("Interleavings by seed")
struct InterleavingTests {
    /// Two threads increment a number without a lock, with a switch between reading and writing it.
    private func lostUpdates(seed: UInt64) -> Int {
        let number = Atomic(0)
        let body: @Sendable () -> Void = {
            for _ in 0..<3 {
                let read = number.load(ordering: .relaxed)
                Interleaving.point()
                number.store(read + 1, ordering: .relaxed)
            }
        }
        Interleaving.run(seed: seed, [body, body])
        return 6 - number.load(ordering: .relaxed)
    }

    @Test("find a race, and repeat it with the same seed")
    func race() {
        let found = (0..<100 as Range<UInt64>).map { lostUpdates(seed: $0) }
        #expect(found.contains(0) && found.contains { $0 > 0 })
        #expect(found == (0..<100 as Range<UInt64>).map { lostUpdates(seed: $0) })
    }

    @Test("preserve locks, conditions, deadlines and joins", arguments: 0..<100 as Range<UInt64>)
    func monitors(seed: UInt64) {
        let monitor = Monitor()
        let sum = Mutex(0)
        let tokens = Atomic(0)
        let timeouts = Atomic(0)
        let give: @Sendable () -> Void = {
            for _ in 0..<5 {
                monitor.withLock {
                    let read = tokens.load(ordering: .relaxed)
                    Interleaving.point()
                    tokens.store(read + 1, ordering: .relaxed)
                    monitor.signal()
                }
            }
            let thread = NamedThread.start("inner") { sum.withLock { $0 += 1 } }
            thread?.join()
            sum.withLock { $0 *= 10 }
        }
        let take: @Sendable () -> Void = {
            for _ in 0..<5 {
                monitor.withLock {
                    while tokens.load(ordering: .relaxed) == 0 { monitor.wait() }
                    tokens.subtract(1, ordering: .relaxed)
                }
            }
        }
        let sleep: @Sendable () -> Void = {
            let deadline = MonotonicTime.now.advanced(milliseconds: 3_600_000)
            monitor.withLock {
                while MonotonicTime.now < deadline { monitor.wait(until: deadline) }
            }
            timeouts.add(1, ordering: .relaxed)
        }
        Interleaving.run(seed: seed, [give, take, sleep])
        #expect(tokens.load(ordering: .relaxed) == 0 && timeouts.load(ordering: .relaxed) == 1)
        #expect(sum.withLock { $0 } == 10)
    }

    @Test("include the thread of a worker", arguments: 0..<100 as Range<UInt64>)
    func workers(seed: UInt64) {
        let done = Mutex<[Int]>([])
        let body: @Sendable () -> Void = {
            let worker = WorkerThread<Int>(name: "worker") { batch in done.withLock { $0 += batch } }
            for number in 0..<10 { worker.push(number) }
            worker.stop()
        }
        Interleaving.run(seed: seed, [body])
        #expect(done.withLock { $0 } == Array(0..<10))
    }
}
#endif
