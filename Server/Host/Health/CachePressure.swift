import HearthConcurrency
import HearthEngine
import HearthNetwork
import HearthSQLite
import HearthDocuments
import Synchronization

/// Shrinks caches and tables while clients hold much memory (the page caches, the cached latest commits, the changes that are
/// not in the databases' files), and returns the allocator's
/// free memory to the system while the process is large. For one thread, which must not be a loop's.
package final class CachePressure: Sendable {
    private struct State {
        var wasTight = false
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
        let wasTight = state.withLock { state in
            defer { state.wasTight = isTight }
            return state.wasTight
        }
        if isTight != wasTight {
            PageCaches.setTight(isTight)
            TableBudget.process.setTight(isTight)
        }
        guard isTight && !wasTight || count % Self.ticksPerRound == 0 else { return }
        for database in databases() { database.fitCaches() }
        trim(isTight: isTight)
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
