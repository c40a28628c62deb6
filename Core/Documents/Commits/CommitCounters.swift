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
