import Synchronization

/// State that the threads of a store share without a lock.
final class StoreCounters: Sendable {
    /// Commits that are visible; raised after the commit and before `write` returns.
    let commits = Atomic<UInt64>(0)
    /// Commits that were written to the WAL.
    let appendings = Atomic<UInt64>(0)
    /// Read transactions that were begun.
    let reads = Atomic<UInt64>(0)
    /// Pages in the WAL after the last commit; 0 when a checkpoint made it reusable.
    let walPages = Atomic<Int>(0)
    /// How many of them the last checkpoint has copied, when nothing blocked it. A hint: a commit may have restarted
    /// the WAL since. `LogIndex` is authoritative.
    let copiedPages = Atomic<Int>(0)
    /// Commits arrive faster than the disk copies their pages to the database.
    let isWriterTooFast = Atomic(false)

    // For monitoring.
    let checkpoints = Atomic<Int>(0)
    let failedCheckpoints = Atomic<Int>(0)
    let failedCommits = Atomic<Int>(0)
    /// See `writerMustWait`.
    let writerWaits = Atomic<Int>(0)
    let revokedSnapshots = Atomic<Int>(0)
    /// See `StoreStatistics`.
    let unsafeCheckpoints = Atomic<Int>(0)

    func noteCheckpoint(copied pages: Int) {
        checkpoints.add(1, ordering: .relaxed)
        copiedPages.store(pages, ordering: .relaxed)
    }
}
