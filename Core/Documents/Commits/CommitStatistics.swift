import HearthEngine
import Synchronization

/// Counters of a database's writer. The writer counts; any thread may read.
final class CommitCounters: Sendable {
    static let bucketCount = 11

    let commits = Atomic<Int>(0)
    let failures = Atomic<Int>(0)
    let groups = Atomic<Int>(0)
    /// Large commits that the writer itself computed, because there was no snapshot or after the last attempt.
    let largeOnWriter = Atomic<Int>(0)
    /// Commits that the writer moved to the preparer because they rest on large documents.
    let leftToPreparer = Atomic<Int>(0)
    private let histogram = Mutex([Int](repeating: 0, count: bucketCount))

    /// - Parameter size: the commits of one durable transaction.
    func count(group size: Int, failed: Bool) {
        groups.add(1, ordering: .relaxed)
        if failed { failures.add(size, ordering: .relaxed) } else { commits.add(size, ordering: .relaxed) }
        // Bucket n holds the groups of at most 2^n.
        let bucket = min(Self.bucketCount - 1, Int.bitWidth - (size - 1).leadingZeroBitCount)
        histogram.withLock { $0[size <= 1 ? 0 : bucket] += 1 }
    }

    var groupSizes: [Int] { histogram.withLock { $0 } }
}

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
