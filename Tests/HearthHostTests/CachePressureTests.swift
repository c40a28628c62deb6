import HearthConcurrency
import Synchronization
import Testing

@testable import HearthHost

@Suite struct CachePressureTests {
    /// A process whose allocator keeps what is free until it is asked for it.
    private final class Process: Sendable {
        let used = Atomic<Int>(0)
        let kept = Atomic<Int>(0)
        let returns = Atomic<Int>(0)

        func pressure(_ pool: MemoryPool) -> CachePressure {
            CachePressure(
                pool,
                residentBytes: { self.used.load(ordering: .relaxed) + self.kept.load(ordering: .relaxed) },
                giveBack: {
                    self.kept.store(0, ordering: .relaxed)
                    self.returns.add(1, ordering: .relaxed)
                })
        }

        /// - Returns: how often memory was returned.
        func run(_ pressure: CachePressure, rounds: Int) -> Int {
            let before = returns.load(ordering: .relaxed)
            for count in 1...rounds * 10 { pressure.tick(count, []) }
            return returns.load(ordering: .relaxed) - before
        }
    }

    private static let megabyte = 1 << 20

    @Test func whatIsFreeIsReturnedAlthoughThePoolIsNotTight() {
        let process = Process()
        let pressure = process.pressure(MemoryPool(bytesMax: 8 * Self.megabyte))
        process.kept.store(800 * Self.megabyte, ordering: .relaxed)
        #expect(process.run(pressure, rounds: 1) == 1)
        #expect(process.kept.load(ordering: .relaxed) == 0)
    }

    @Test func aSmallProcessKeepsItsMemory() {
        let process = Process()
        let pressure = process.pressure(MemoryPool(bytesMax: 8 * Self.megabyte))
        process.kept.store(CachePressure.trimmedResidentBytesMin, ordering: .relaxed)
        #expect(process.run(pressure, rounds: 30) == 0)
    }

    /// Memory in use does not shrink, and each attempt makes threads wait.
    @Test func memoryInUseIsTriedSeldom() {
        let process = Process()
        let pressure = process.pressure(MemoryPool(bytesMax: 8 * Self.megabyte))
        process.used.store(500 * Self.megabyte, ordering: .relaxed)
        #expect(process.run(pressure, rounds: 1) == 1)
        #expect(process.run(pressure, rounds: CachePressure.roundsPerTrim - 1) == 0)
        #expect(process.run(pressure, rounds: 1) == 1)
        // It has grown.
        process.used.store(500 * Self.megabyte + CachePressure.trimmedGrowthBytes + 1, ordering: .relaxed)
        #expect(process.run(pressure, rounds: 1) == 1)
    }

    /// What the process needs may be near both sizes.
    @Test func cachesAreSmallWhileTheProcessIsLarge() {
        let process = Process()
        let pool = MemoryPool(bytesMax: 8 * Self.megabyte)
        let pressure = process.pressure(pool)
        for (megabytes, areSmall) in [(320, false), (335, true), (300, true), (280, false), (320, false)] {
            process.used.store(megabytes * Self.megabyte, ordering: .relaxed)
            pressure.tick(1, [])
            #expect(pool.areCachesTight == areSmall)
            #expect(!pool.isTight)
        }
    }

    @Test func whileThePoolIsTightEveryRoundReturnsMemory() {
        let process = Process()
        let pool = MemoryPool(bytesMax: 8 * Self.megabyte)
        let pressure = process.pressure(pool)
        var loan = MemoryLoan(pool, ownBytes: 0, keptBytes: 0)
        let isCovered = loan.cover(5 * Self.megabyte, isAdministrator: true)
        #expect(isCovered && pool.isTight)
        process.used.store(500 * Self.megabyte, ordering: .relaxed)
        #expect(process.run(pressure, rounds: 5) == 6)
    }
}
