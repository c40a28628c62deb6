import HearthModel

/// The bounds of this module, and of those that build upon it. One marked "ours" guards memory or time and is not part of the
/// service's contract.
extension Limits {
    // MARK: The Realtime Database's storage; bounds of ours

    /// Bytes that one read may go through: documented as 256 MB.
    package static let treeReadSizeBytesMax = 256 << 20
    /// Bytes that one write may have: documented as 256 MB for REST.
    package static let treeWriteSizeBytesMax = 256 << 20
    /// Children of a window of which only the keys are looked up first.
    package static let treeWindowKeysMax = 2_000_000
    /// Writes that wait for the writer.
    package static let treeWriteQueueMax = 20_000
    /// Bytes of queued writes.
    package static let treeWriteQueueBytesMax = 512 << 20
    /// Bytes that one session may leave to do at its end.
    package static let treeJournalRecordSizeBytesMax = 16 << 20
    /// Indexes of one database.
    package static let treeIndexesMax = 10_000
    /// Nodes of a write, or of what it replaces, from which on it is made in slices.
    package static let treeReplacementNodesMin = 2_000
    /// Bytes of a write, or of what it replaces, from which on it is made in slices, however few nodes they are.
    package static let treeReplacementBytesMin = 512 << 10
    /// Locations that a large write may have to be made as ranges that are replaced; one with more is made on a shadow of the tree.
    package static let treeReplacementLocationsMax = 512
    /// What one transaction of background work on a tree may write.
    package static let treeSliceRecordsMax = 2_000
    package static let treeSliceBytesMax = 1 << 20
    package static let treeSliceMilliseconds = 15
    /// What one transaction of clients' writes to a tree may take before others have their turn.
    package static let treeGroupMilliseconds = 20
    /// What the writer of a tree takes together at most, in nodes and quarters of a kilobyte.
    package static let treeGroupCostMax = 4_000
    /// Bytes that the writer of a tree reads itself to compare a hash; what has more is read beside it.
    package static let treeCompareBytesMax = 64 << 10
    /// Steps of a guard's decision on the thread of a tree's writer, a third of a microsecond each; what takes more of them is
    /// judged beside it.
    package static let treeJudgeStepsMax = 10_000
    /// Places that are remembered of what a guard has looked at beside the writer.
    package static let treeReadsMax = 10_000
    /// The same for a write that was judged beside the writer in vain, because what its guard looks at is written all the time,
    /// and how many locations it may have.
    package static let treeJudgeAgainStepsMax = 150_000
    package static let treeJudgedAgainChangesMax = 20_000
    /// Hashes of a tree that are worked out, and writes to it that are judged beside its writer, at a time.
    package static let treeComparisonsMax = 2
    /// Times that a write is worked out beside the writer before it is given up because the tree changes too fast.
    package static let treeAttemptsMax = 8
    /// Children that are indexed between two groups of writes.
    package static let treeIndexSliceMax = 500
}
