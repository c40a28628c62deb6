import CLinux
import Synchronization

/// The memory of the process as the system sees it.
///
/// The allocator keeps what a burst has used, as it doesn't know that the burst is over. To give it back takes
/// milliseconds and makes the next requests slower, so it is done once, when all has been quiet for a while.
public enum ProcessMemory {
    private static let wantedAt = Atomic<UInt64>(0)
    private static let quietNanoseconds: UInt64 = 2_000_000_000

    /// To be called when much memory has become free.
    public static func giveBackSoon() { wantedAt.store(EventLoop.monotonicNanoseconds(), ordering: .relaxed) }

    /// Called by the loops every so often.
    static func giveBackIfQuiet(now: UInt64) {
        let wanted = wantedAt.load(ordering: .relaxed)
        guard wanted > 0, now > wanted + quietNanoseconds,
            wantedAt.compareExchange(expected: wanted, desired: 0, ordering: .relaxed).exchanged
        else { return }
        linux_malloc_trim()
    }
}
