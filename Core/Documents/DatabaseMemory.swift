import HearthConcurrency
import HearthModel

/// The memory that the databases of a process may hold for their clients, together.
package struct DatabaseMemory: Sendable {
    /// What open transactions have read.
    package let readSets: MemoryBudget
    /// Commits that wait for the writers.
    package let commits: MemoryBudget
    /// Documents of the latest commits.
    let recent: SharedCacheBytes
    /// The feed indexes: which commits changed which collections.
    let feed: SharedCacheBytes

    package init(
        readSets: MemoryBudget = Self.readSets(loan: nil), commits: MemoryBudget = Self.commits(loan: nil),
        pool: MemoryPool? = nil
    ) {
        self.readSets = readSets
        self.commits = commits
        recent = SharedCacheBytes(max: Limits.recentChangesBytesMax, pool: pool)
        feed = SharedCacheBytes(max: Limits.feedIndexBytesMax, pool: pool)
    }

    /// The budgets have parts of their own and also draw on a shared pool. While the pool is tight, less is kept of the
    /// latest commits.
    package init(pool: MemoryPool) {
        self.init(
            readSets: Self.readSets(loan: MemoryLoan(pool, ownBytes: Limits.readSetOwnBytes)),
            commits: Self.commits(loan: MemoryLoan(pool, ownBytes: Limits.commitsWaitingOwnBytes)), pool: pool)
    }

    package static func readSets(loan: MemoryLoan?) -> MemoryBudget {
        MemoryBudget(
            bytesMax: Limits.readSetBytesMax, shareBytesMax: Limits.readSetShareBytesMax,
            smallBytesMax: Limits.readSetSmallBytesMax, loan: loan)
    }

    package static func commits(loan: MemoryLoan?) -> MemoryBudget {
        MemoryBudget(
            bytesMax: Limits.commitsWaitingBytesMax, clientsBytesMax: Limits.commitsWaitingClientsBytesMax,
            shareBytesMax: Limits.commitsWaitingShareBytesMax, smallBytesMax: Limits.commitsWaitingSmallBytesMax,
            loan: loan)
    }
}
