import HearthConcurrency
import HearthModel

/// What the databases of a process may hold for their clients, together.
package struct DatabaseMemory: Sendable {
    /// What open transactions have read.
    package let readSets: MemoryBudget
    /// Commits that wait for the writers.
    package let commits: MemoryBudget
    /// Documents of the latest commits.
    let recent = RecentChanges.SharedBytes(max: Limits.recentChangesBytesMax)

    package init(
        readSets: MemoryBudget = MemoryBudget(
            bytesMax: Limits.readSetBytesMax, shareBytesMax: Limits.readSetShareBytesMax,
            smallBytesMax: Limits.readSetSmallBytesMax),
        commits: MemoryBudget = MemoryBudget(
            bytesMax: Limits.commitsWaitingBytesMax, clientsBytesMax: Limits.commitsWaitingClientsBytesMax,
            shareBytesMax: Limits.commitsWaitingShareBytesMax, smallBytesMax: Limits.commitsWaitingSmallBytesMax)
    ) {
        self.readSets = readSets
        self.commits = commits
    }
}
