import CLinux
import Synchronization

/// The memory of the process as the system sees it.
///
/// The allocator keeps what a burst has used, as it doesn't know that the burst is over. To give it back takes
/// milliseconds and makes the next requests slower, so it is done once, when all has been quiet for a while.
package enum ProcessMemory {
    private static let wantedAt = Atomic<UInt64>(0)
    private static let quietNanoseconds: UInt64 = 2_000_000_000

    /// From this size on a block has pages of its own, which the system has back as soon as it is free.
    ///
    /// The largest documents and their records are smaller: new pages for each copy of one took more than half of the
    /// writer's time. A commit that changes 15 documents of 900 KB took 190 ms with 256 KiB, and takes 60 ms.
    private static let ownPagesBytes: Int32 = 1152 << 10
    /// What the allocator keeps at the end of each of its heaps.
    private static let keptBytes: Int32 = 2 << 20

    /// To be called once, when the process begins: large blocks are given back at once.
    ///
    /// Behind eight answers of 64 MB the process held 194 MB without it and 55 MB with it.
    package static func giveBackLargeBlocks() { linux_malloc_own_pages(ownPagesBytes, keptBytes) }

    /// To be called when much memory has become free.
    package static func giveBackSoon() { wantedAt.store(EventLoop.monotonicNanoseconds(), ordering: .relaxed) }

    /// To be called seldom: threads that allocate wait for some milliseconds.
    package static func giveBackNow() { linux_malloc_trim() }

    /// Called by the loops every so often.
    static func giveBackIfQuiet(now: UInt64) {
        let wanted = wantedAt.load(ordering: .relaxed)
        guard wanted > 0, now > wanted + quietNanoseconds,
            wantedAt.compareExchange(expected: wanted, desired: 0, ordering: .relaxed).exchanged
        else { return }
        linux_malloc_trim()
    }
}
