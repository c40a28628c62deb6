import HearthModel

/// The state of a database at one version, as one request reads it.
///
/// The version is that of the snapshot beneath, or an earlier one: then the documents that changed since are taken from
/// the feed, which keeps the state before each change.
public final class ReadView {
    public let snapshot: any Snapshot
    /// Commits up to and with this version are seen.
    public let version: Int64
    /// The version of the last commit in the snapshot.
    let snapshotVersion: Int64
    /// The time that an answer gives as its read time; a later read at it sees the same.
    public let readTime: Timestamp
    public let catalog: IndexCatalog
    private var cachedOverlay: PastOverlay?
    private var longRead: LongRead?

    init(snapshot: any Snapshot, version: Int64, snapshotVersion: Int64, readTime: Timestamp, catalog: IndexCatalog) {
        self.snapshot = snapshot
        self.version = version
        self.snapshotVersion = snapshotVersion
        self.readTime = readTime
        self.catalog = catalog
    }

    deinit {
        snapshot.close()
        longRead?.end()
    }

    /// The view is kept for a long read from now on, which ends with the view.
    package func hold(_ read: LongRead) {
        if longRead == nil { snapshot.becomeLong() }
        longRead = read
    }

    public var isPast: Bool { version < snapshotVersion }

    /// The documents that changed after the view's version, nil when it is the present.
    func overlay() throws(Status) -> PastOverlay? {
        guard isPast else { return nil }
        if let cachedOverlay { return cachedOverlay }
        let overlay = try PastOverlay(snapshot: snapshot, after: version)
        cachedOverlay = overlay
        return overlay
    }

    public func document(key: [UInt8]) throws(Status) -> StoredDocument? {
        let current = try snapshot.document(key)
        guard isPast else { return current }
        if let current, current.updateVersion <= version { return current }
        return try Feed.document(key: key, current: current, at: version, in: snapshot)
    }

    public func document(_ path: ResourcePath) throws(Status) -> StoredDocument? {
        try document(key: DocumentKey.encode(path))
    }
}

extension ReadView {
    /// The keys of documents in all collections with an id, or of all documents, in an order of the store's own.
    /// - Parameters:
    ///   - collectionID: nil for all.
    ///   - position: a key that an earlier call gave last.
    public func documentKeys(of collectionID: String?, after position: [UInt8]?, limit: Int) throws(Status) -> [[UInt8]]
    {
        if let collectionID {
            return try IndexBuilder.documentKeys(of: collectionID, after: position, limit: limit, in: snapshot)
        }
        let range = KeyRange(lower: position.map { $0 + [0] } ?? [], upper: nil)
        let cursor = try snapshot.scan(.documents, range, reverse: false, values: false)
        defer { cursor.close() }
        var keys: [[UInt8]] = []
        while keys.count < limit, try cursor.next() { keys.append(cursor.key) }
        return keys
    }
}

/// The documents that differ between a past version and the snapshot, as they were at that version.
struct PastOverlay {
    /// Nil for a document that did not exist then.
    private(set) var documents: [[UInt8]: StoredDocument?] = [:]

    init(snapshot: any Snapshot, after version: Int64) throws(Status) {
        let cursor = try snapshot.scan(.feed, Feed.range(after: version), reverse: false, values: true)
        defer { cursor.close() }
        while try cursor.next() {
            let record = try Feed.Record(key: cursor.key, value: cursor.value)
            // The first change after the version holds the state at it.
            if documents[record.documentKey] == nil { documents[record.documentKey] = .some(record.before) }
        }
    }
}
