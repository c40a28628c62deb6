import CLinux
import Synchronization

/// The memory of the process as the system counts it.
///
/// After a burst the allocator does not return its memory, because it does not know that the burst is over. Returning
/// it takes milliseconds and makes the next requests slower, so it is done once, after a quiet period.
package enum ProcessMemory {
    private static let wantedAt = Atomic<UInt64>(0)
    private static let quietNanoseconds: UInt64 = 2_000_000_000

    /// From this size on a block has pages of its own, which return to the system as soon as it is freed.
    ///
    /// The largest documents and their records are smaller: new pages for each copy took more than half of the writer's
    /// time. A commit that changes 15 documents of 900 KB took 190 ms with 256 KiB, and takes 60 ms.
    private static let ownPagesBytes: Int32 = 1152 << 10
    /// The free memory that the allocator keeps at the end of each heap.
    private static let keptBytes: Int32 = 2 << 20

    /// Call it once, at the start of the process: large blocks return to the system immediately.
    ///
    /// After eight responses of 64 MB the process used 194 MB without it and 55 MB with it.
    package static func giveBackLargeBlocks() { linux_malloc_own_pages(ownPagesBytes, keptBytes) }

    /// Call it after much memory was freed.
    package static func giveBackSoon() {
        wantedAt.store(EventLoop.monotonicNanoseconds(), ordering: .relaxed)
    }

    /// Call it rarely: allocating threads wait for some milliseconds.
    package static func giveBackNow() { linux_malloc_trim() }

    /// Called by the loops at intervals.
    static func giveBackIfQuiet(now: UInt64) {
        let wanted = wantedAt.load(ordering: .relaxed)
        guard wanted > 0, now > wanted + quietNanoseconds,
            wantedAt.compareExchange(expected: wanted, desired: 0, ordering: .relaxed).exchanged
        else { return }
        linux_malloc_trim()
    }
}
