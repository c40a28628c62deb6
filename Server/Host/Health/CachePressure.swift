import HearthConcurrency
import HearthEngine
import HearthNetwork
import HearthSQLite
import HearthDocuments
import Synchronization

/// Shrinks the caches (page caches, the cached latest commits) while clients hold much memory or the process is large, and
/// the tables (changes that are not in the databases' files) while clients do; returns the allocator's free memory to the
/// system while the process is large. For one thread, which must not be a loop's.
package final class CachePressure: Sendable {
    private struct State {
        var wasTight = false
        var isLarge = false
        var wereCachesTight = false
        /// The resident size after the last return, and the rounds since then.
        var residentBytes = 0
        var rounds = 0
    }

    private let pool: MemoryPool
    private let residentBytes: @Sendable () -> Int
    private let giveBack: @Sendable () -> Void
    private let state = Mutex(State())

    private static let ticksPerRound = 10
    /// Above this resident size it is worth that allocating threads wait for some milliseconds.
    static let trimmedResidentBytesMin = 300 << 20
    /// Caches are small from the second size on, until the first is reached.
    static let smallCachesResidentBytes = (from: 290 << 20, upTo: 330 << 20)
    /// While the pool is not tight: only when the process has grown by this since the last time, or after this many rounds.
    /// What is in use stays, however often it is tried.
    static let trimmedGrowthBytes = 32 << 20
    static let roundsPerTrim = 10

    /// - Parameters:
    ///   - residentBytes: of the process.
    ///   - giveBack: returns free memory to the system.
    package init(
        _ pool: MemoryPool, residentBytes: @escaping @Sendable () -> Int = { ProcessFigures.residentBytes ?? 0 },
        giveBack: @escaping @Sendable () -> Void = { ProcessMemory.giveBackNow() }
    ) {
        self.pool = pool
        self.residentBytes = residentBytes
        self.giveBack = giveBack
    }

    /// To be called every `Upkeep.tickMilliseconds`.
    package func tick(_ count: Int, _ databases: @autoclosure () -> [Database]) {
        let isTight = pool.isTight
        let resident = residentBytes()
        let (wasTight, isLarge) = state.withLock { state in
            defer { state.wasTight = isTight }
            let bounds = Self.smallCachesResidentBytes
            state.isLarge = resident > (state.isLarge ? bounds.from : bounds.upTo)
            return (state.wasTight, state.isLarge)
        }
        if isTight != wasTight { TableBudget.process.setTight(isTight) }
        pool.setProcessLarge(isLarge)
        TableBudget.process.setProcessLarge(isLarge)
        let areCachesTight = pool.areCachesTight
        let wereCachesTight = state.withLock { state in
            defer { state.wereCachesTight = areCachesTight }
            return state.wereCachesTight
        }
        if areCachesTight != wereCachesTight { PageCaches.setTight(areCachesTight) }
        let isRound = count % Self.ticksPerRound == 0
        if isRound || areCachesTight && !wereCachesTight { for database in databases() { database.fitCaches() } }
        if isRound || isTight && !wasTight { trim(isTight: isTight) }
    }

    private func trim(isTight: Bool) {
        let resident = residentBytes()
        let isDue = state.withLock { state in
            state.rounds += 1
            return resident > Self.trimmedResidentBytesMin
                && (isTight || resident > state.residentBytes + Self.trimmedGrowthBytes
                    || state.rounds >= Self.roundsPerTrim)
        }
        guard isDue else { return }
        giveBack()
        let left = residentBytes()
        state.withLock { state in
            state.residentBytes = left
            state.rounds = 0
        }
    }
}
