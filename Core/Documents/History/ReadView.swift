import HearthEngine
import HearthModel

/// The state of a database at one version, as one request reads it.
///
/// The version is that of the snapshot, or an earlier one. For an earlier version, documents that changed since are
/// read from the feed, which stores the state before each change.
package final class ReadView {
    package let snapshot: any Snapshot
    /// Commits up to and including this version are visible.
    package let version: Int64
    /// The version of the last commit in the snapshot.
    let snapshotVersion: Int64
    /// The read time in answers; a later read at this time sees the same state.
    package let readTime: Timestamp
    package let catalog: IndexCatalog
    /// Which collections recent commits changed; without it only the feed is used.
    let history: FeedIndex?
    private var cachedOverlay: (scope: ScopeChanges.Scope, overlay: PastOverlay)?
    private var longRead: LongRead?
    /// Pays for the changes that `document` walks over in the past; nil for any number.
    package var budget: FeedBudget?
    /// Keeps the database open while it is read.
    private let owner: AnyObject

    init(
        snapshot: any Snapshot, version: Int64, snapshotVersion: Int64, readTime: Timestamp, catalog: IndexCatalog,
        owner: AnyObject, history: FeedIndex? = nil
    ) {
        self.owner = owner
        self.snapshot = snapshot
        self.version = version
        self.snapshotVersion = snapshotVersion
        self.readTime = readTime
        self.catalog = catalog
        self.history = history
    }

    deinit {
        snapshot.close()
        longRead?.end()
    }

    /// From here on the view is used for a long read, which ends with the view.
    package func hold(_ read: LongRead) {
        if longRead == nil { snapshot.becomeLong() }
        longRead = read
    }

    package var isPast: Bool { version < snapshotVersion }

    /// The latest time at which this is the state. A client that has been shown this version was given any time from the version
    /// to the next change, and must not be given an earlier one later.
    package func latestReadTime() throws(Status) -> Timestamp {
        guard isPast else { return readTime }
        let next = try Feed.nextVersion(after: version, in: snapshot)
        return max(readTime, Timestamp(microseconds: next.map { $0 - 1 } ?? snapshotVersion))
    }

    /// The documents of a scope that changed after the view's version, nil when the view shows the present.
    /// - Throws: RESOURCE_EXHAUSTED when they are too many.
    func overlay(of scope: ScopeChanges.Scope, _ meter: WorkMeter = WorkMeter()) throws(Status) -> PastOverlay? {
        guard isPast else { return nil }
        if let cachedOverlay, cachedOverlay.scope == scope { return cachedOverlay.overlay }
        let changes = try ScopeChanges(
            in: scope, after: version, through: snapshotVersion, snapshot, snapshotVersion: snapshotVersion, history,
            meter, bytesMax: Limits.historyKeysBytesMax)
        let overlay = PastOverlay(changes, snapshot)
        cachedOverlay = (scope, overlay)
        return overlay
    }

    package func document(key: [UInt8]) throws(Status) -> StoredDocument? {
        let current = try snapshot.document(key)
        guard isPast else { return current }
        if let current, current.updateVersion <= version { return current }
        return try Feed.document(key: key, current: current, at: version, in: snapshot, budget)
    }

    package func document(_ path: ResourcePath) throws(Status) -> StoredDocument? {
        try document(key: DocumentKey.encode(path))
    }
}

extension ReadView {
    /// The keys of documents in all collections with an id, or of all documents, in the store's order.
    /// - Parameters:
    ///   - collectionID: nil for all.
    ///   - position: the last key of an earlier call.
    package func documentKeys(of collectionID: String?, after position: [UInt8]?, limit: Int) throws(Status)
        -> [[UInt8]]
    {
        if let collectionID {
            return try IndexBuilder.documentKeys(of: collectionID, after: position, limit: limit, in: snapshot)
        }
        return try documentKeys(in: KeyRange(lower: [], upper: nil), after: position, limit: limit)
    }

    /// The keys of documents below a document, or in a collection and below its documents, in the store's order.
    /// - Parameter position: the last key of an earlier call.
    package func documentKeys(below path: ResourcePath, after position: [UInt8]?, limit: Int) throws(Status)
        -> [[UInt8]]
    {
        try documentKeys(in: KeyRange(prefix: DocumentKey.encodeSegments(path)), after: position, limit: limit)
    }

    private func documentKeys(in range: KeyRange, after position: [UInt8]?, limit: Int) throws(Status) -> [[UInt8]] {
        var range = range
        if let position { range.lower = position + [0] }
        let cursor = try snapshot.scan(.documents, range, reverse: false, values: false)
        defer { cursor.close() }
        var keys: [[UInt8]] = []
        while keys.count < limit, try cursor.next() { keys.append(cursor.key) }
        return keys
    }
}
