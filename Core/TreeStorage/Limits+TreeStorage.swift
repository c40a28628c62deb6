import HearthModel

/// The bounds of this module and of its dependents. A bound marked "ours" protects memory or time and is not part of
/// the service's contract.
extension Limits {
    // MARK: The Realtime Database's storage; our own bounds

    /// The bytes that one read may visit: documented as 256 MB.
    static let treeReadSizeBytesMax = 256 << 20
    /// The bytes of one write: documented as 256 MB for REST.
    static let treeWriteSizeBytesMax = 256 << 20
    /// The children of a window whose keys are read in one batch before their data.
    package static let treeWindowKeysMax = 2_000_000
    /// The writes that wait for the writer.
    package static let treeWriteQueueMax = 20_000
    /// The bytes of queued writes.
    static let treeWriteQueueBytesMax = 512 << 20
    /// The bytes of one session's disconnect writes in the journal.
    package static let treeJournalRecordSizeBytesMax = 16 << 20
    /// The indexes of one database.
    package static let treeIndexesMax = 10_000
    /// The nodes of a write, or of the data that it replaces, from which on it is made in slices.
    static let treeReplacementNodesMin = 2_000
    /// The bytes of a write, or of the data that it replaces, from which on it is made in slices, however few its nodes
    /// are.
    static let treeReplacementBytesMin = 512 << 10
    /// The locations of a large write that is made as replaced ranges; one with more is made on a shadow of the tree.
    static let treeReplacementLocationsMax = 512
    /// The size of one transaction of background work on a tree.
    static let treeSliceRecordsMax = 2_000
    static let treeSliceBytesMax = 1 << 20
    static let treeSliceMilliseconds = 15
    /// The size of one transaction of clients' writes to a tree, after which other jobs run.
    static let treeGroupMilliseconds = 20
    /// The largest group of jobs of a tree's writer, in nodes and quarters of a kilobyte.
    static let treeGroupCostMax = 4_000
    /// The bytes that the writer of a tree reads itself to compare a hash; larger data is read beside it.
    static let treeCompareBytesMax = 64 << 10
    /// The steps of a guard's decision on the thread of a tree's writer, a third of a microsecond each; longer
    /// decisions are evaluated beside it.
    package static let treeJudgeStepsMax = 10_000
    /// The locations that are stored of a guard's reads beside the writer.
    static let treeReadsMax = 10_000
    /// The same for a write that was evaluated beside the writer in vain, because the data that its guard reads is
    /// written all the time; and the maximum number of its locations.
    static let treeJudgeAgainStepsMax = 150_000
    static let treeJudgedAgainChangesMax = 20_000
    /// The concurrent computations of hashes and evaluations of guards beside the writer of a tree.
    static let treeComparisonsMax = 2
    /// The attempts beside the writer after which a write fails because the tree changes too fast.
    package static let treeAttemptsMax = 8
    /// The children that are indexed between two groups of writes.
    static let treeIndexSliceMax = 500
}
