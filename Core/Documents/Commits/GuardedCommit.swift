import HearthEngine
import HearthModel
import HearthWire

/// A commit that is not allowed yet, with the states before and after.
package struct GuardedCommit {
    package let writes: [Write]
    /// Whether the commit has several writes, also when only the first is shown.
    package let isBatch: Bool
    /// What a transform to the server's time writes.
    package let requestTime: Timestamp
    private let snapshot: any Snapshot
    private let staged: StagedCommit
    private let reads: GuardReads

    init(
        _ writes: [Write], on snapshot: any Snapshot, staged: StagedCommit, requestTime: Timestamp, reads: GuardReads,
        isPartOfBatch: Bool = false
    ) {
        self.writes = writes
        isBatch = isPartOfBatch || writes.count > 1
        self.snapshot = snapshot
        self.staged = staged
        self.requestTime = requestTime
        self.reads = reads
    }

    /// A document before the commit.
    package func before(_ path: ResourcePath) throws(Status) -> StoredDocument? {
        try reads.willRead()
        let key = DocumentKey.encode(path)
        let isStaged = staged.touches(key)
        reads.note(key, isStaged: isStaged)
        // Most documents that are requested are those that the commit writes, and are loaded already.
        return isStaged ? staged.original(of: key) : try read(key)
    }

    private func read(_ key: [UInt8]) throws(Status) -> StoredDocument? {
        let document = try snapshot.document(key)
        try reads.charge(document?.fields.count ?? 0)
        return document
    }

    /// The fields of a document after the commit; nil when there is none.
    package func after(_ path: ResourcePath) throws(Status) -> MapValue? {
        try reads.willRead()
        let key = DocumentKey.encode(path)
        let isStaged = staged.touches(key)
        reads.note(key, isStaged: isStaged)
        reads.noteAfter(path)
        if isStaged { return try staged.fields(of: key) }
        return try read(key).map { document throws(Status) in try FieldsCodec.decode(document.fields) }
    }
}
