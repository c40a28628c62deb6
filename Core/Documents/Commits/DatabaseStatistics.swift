import HearthEngine

/// A view of a database's counters at one moment.
package struct DatabaseStatistics: Sendable {
    /// Commits that passed the writer, successful or failed.
    package var commits = 0
    /// Commits that failed because of the disk.
    package var failures = 0
    /// Durable transactions, each of one or more commits.
    package var groups = 0
    /// How many groups had at most 1, 2, 4, … 1024 commits; each group is in the first bucket that fits it.
    package var groupSizes: [Int] = []
    package var queuedCommits = 0
    package var queuedBytes = 0
    package var openTransactions = 0
    /// Bytes on the disk, or the equivalent of an in-memory store; nil when the store does not know.
    package var sizeBytes: Int?
    package var store = StoreStatistics()

    package init() {}
}
