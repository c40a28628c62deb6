import HearthConcurrency
import HearthNetwork
import HearthSQLite
import HearthDocuments
import Synchronization

/// Shrinks caches while clients hold much memory: the page caches, the cached latest commits, and the allocator's free
/// memory. For one thread, which must not be a loop's.
package final class CachePressure: Sendable {
    private let pool: MemoryPool
    private let wasTight = Atomic(false)

    private static let ticksPerRound = 10
    /// Above this resident size it is worth that allocating threads wait for some milliseconds.
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
