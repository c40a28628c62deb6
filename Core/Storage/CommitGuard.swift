import HearthModel
import HearthWire

/// Decides whether a commit may be made.
///
/// Asked on the writer's thread at the point where the commit is worked out, so that what it is shown is what the commit will
/// change: nothing can come between the decision and the commit. It has to be quick, and must not wait.
public protocol CommitGuard: Sendable {
    /// - Throws: why the commit may not be made.
    func check(_ commit: GuardedCommit) throws(Status)
}

/// A commit that nobody has allowed yet, with the states before and after.
public struct GuardedCommit {
    public let writes: [Write]
    /// What a transform to the server's time writes.
    public let requestTime: Timestamp
    private let snapshot: any Snapshot
    private let staged: StagedCommit

    init(_ writes: [Write], on snapshot: any Snapshot, staged: StagedCommit, requestTime: Timestamp) {
        self.writes = writes
        self.snapshot = snapshot
        self.staged = staged
        self.requestTime = requestTime
    }

    /// A document before the commit.
    public func before(_ path: ResourcePath) throws(Status) -> StoredDocument? {
        try snapshot.document(DocumentKey.encode(path))
    }

    /// The fields of a document after the commit; nil when there is none.
    public func after(_ path: ResourcePath) throws(Status) -> MapValue? {
        let key = DocumentKey.encode(path)
        if let fields = try staged.fields(of: key) { return fields }
        if staged.touches(key) { return nil }
        return try snapshot.document(key).map { document throws(Status) in try FieldsCodec.decode(document.fields) }
    }
}
