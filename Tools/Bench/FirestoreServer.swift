import HearthToolSupport

/// A Firestore server that the bench uses.
protocol FirestoreServer {
    /// Starts an instance with no data and waits until it answers.
    func start() throws(ToolFailure) -> RunningServer
    /// Whether `start` makes a new instance each time.
    var canStart: Bool { get }
    /// The same program without a disk; nil when it has no disk or does not support this.
    var inMemory: (any FirestoreServer)? { get }
    /// Called before a load is measured.
    var warmUpSeconds: Double { get }
    /// The method of filling a collection: documents of a BatchWrite, at most 500…
    var batchDocuments: Int { get }
    /// …and an even number of concurrent batches.
    var batchesInFlight: Int { get }
}

extension FirestoreServer {
    var canStart: Bool { true }
    var inMemory: (any FirestoreServer)? { nil }
    var warmUpSeconds: Double { 1 }
    var batchDocuments: Int { 500 }
    var batchesInFlight: Int { 4 }
}
