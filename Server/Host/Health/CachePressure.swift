import HearthConcurrency
import HearthNetwork
import HearthSQLite
import HearthDocuments
import Synchronization

/// Makes what only serves speed small while clients hold much memory: the caches of pages, what is kept of the latest
/// commits, and what the allocator keeps. For one thread, which is no loop's.
package final class CachePressure: Sendable {
    private let pool: MemoryPool
    private let wasTight = Atomic(false)

    private static let ticksPerRound = 10
    /// From here on it is worth that threads which allocate wait for some milliseconds.
    private static let trimmedResidentBytesMin = 300 << 20

    package init(_ pool: MemoryPool) { self.pool = pool }

    /// To be called every `Upkeep.tickMilliseconds`.
    package func tick(_ count: Int, _ databases: @autoclosure () -> [Database]) {
        let isTight = pool.isTight
        let wasTight = wasTight.exchange(isTight, ordering: .relaxed)
        if isTight != wasTight { PageCaches.setTight(isTight) }
        guard isTight && !wasTight || count % Self.ticksPerRound == 0 else { return }
        for database in databases() { database.fitCaches() }
        if isTight, ProcessFigures.residentBytes ?? 0 > Self.trimmedResidentBytesMin { ProcessMemory.giveBackNow() }
    }
}
