import HearthEngine
import HearthModel

/// The documents of a scope that changed between two versions, by their keys. Their earlier contents are read on
/// demand.
struct ScopeChanges {
    /// By key, the version of the first change after the earlier version: its feed record has the state at that
    /// version.
    private(set) var firstVersions: [[UInt8]: Int64] = [:]
    private(set) var sizeBytes = 0

    /// Memory of a key in the table, besides its own bytes.
    private static let entrySizeBytes = 96

    /// Documents of a scope whose keys begin with a prefix.
    struct Scope: Hashable {
        var watched: WatchScope
        var prefix: [UInt8]

        init(_ query: Query) {
            watched = query.watchScope
            if case .collection(let prefix) = watched {
                self.prefix = prefix
            } else {
                prefix = DocumentKey.encodeSegments(query.parent.path)
            }
        }

        /// Everything below a prefix.
        init(below prefix: [UInt8]) {
            watched = .everything
            self.prefix = prefix
        }

        /// The documents of one collection.
        init(collectionPrefix prefix: [UInt8]) {
            watched = .collection(prefix)
            self.prefix = prefix
        }

        func contains(_ key: [UInt8]) -> Bool {
            guard key.starts(with: prefix) else { return false }
            guard case .collectionGroup = watched else { return true }
            return ChangeHub.group(of: key) == watched
        }
    }

    /// - Parameters:
    ///   - earlier: within the retention.
    ///   - last: later changes are ignored.
    ///   - bytesMax: limit on the bytes of keys that are held.
    ///   - snapshotVersion: the version of the last commit that the snapshot shows.
    /// - Throws: RESOURCE_EXHAUSTED beyond the bound, or when the meter has no more memory.
    init(
        in scope: Scope, after earlier: Int64, through last: Int64, _ snapshot: any Snapshot, snapshotVersion: Int64,
        _ index: FeedIndex?, _ meter: WorkMeter, bytesMax: Int
    ) throws(Status) {
        var reader = FeedReader(snapshot, after: earlier, meter)
        defer { reader.close() }
        // From here on the owner of the changes counts their memory.
        defer { meter.release(sizeBytes) }
        var after = earlier
        if let known = index?.versions(in: scope.watched, after: earlier) {
            for version in known.versions where version <= last {
                try note(from: &reader, of: version, in: scope, bytesMax, meter)
            }
            after = max(earlier, known.through)
        }
        // The commits that the index does not cover: none, the last group, or all.
        guard after < last else { return }
        var walk = after == earlier ? index?.walk(after: earlier, snapshotVersion: snapshotVersion) : nil
        let end = max(last, walk?.end ?? 0)
        try reader.move(to: Feed.key(after + 1, []))
        while let (version, key) = reader.current, version <= end {
            walk?.note(key, version)
            if version <= last, scope.contains(key) { try note(key, version, bytesMax, meter) }
            try reader.next()
        }
        if let walk { index?.learn(walk) }
    }

    /// The changes of one commit; those of a collection are adjacent.
    private mutating func note(
        from reader: inout FeedReader, of version: Int64, in scope: Scope, _ bytesMax: Int,
        _ meter: WorkMeter
    ) throws(Status) {
        try reader.move(to: Feed.key(version, scope.prefix))
        while let (found, key) = reader.current, found == version, key.starts(with: scope.prefix) {
            if scope.contains(key) { try note(key, version, bytesMax, meter) }
            try reader.next()
        }
    }

    private mutating func note(
        _ key: [UInt8], _ version: Int64, _ bytesMax: Int, _ meter: WorkMeter
    ) throws(Status) {
        if firstVersions[key] != nil { return }
        firstVersions[key] = version
        sizeBytes += key.count + Self.entrySizeBytes
        try meter.hold(key.count + Self.entrySizeBytes)
        if sizeBytes > bytesMax {
            throw .resourceExhausted(
                "Too many of the documents have changed since the requested version: their keys take more "
                    + "than \(bytesMax) bytes. Read at a later time.")
        }
    }
}

/// Walks over the keys of the feed.
private struct FeedReader {
    private let snapshot: any Snapshot
    private let begin: Int64
    private let meter: WorkMeter
    private var cursor: (any KeyCursor)?
    /// The record at the present position; nil at the end, and before the first move.
    private(set) var current: (version: Int64, key: [UInt8])?

    init(_ snapshot: any Snapshot, after version: Int64, _ meter: WorkMeter) {
        self.snapshot = snapshot
        begin = version
        self.meter = meter
    }

    /// Moves to the first record at or after a key. Targets ascend.
    mutating func move(to target: [UInt8]) throws(Status) {
        if let current, UTF8Order.compare(Feed.key(current.version, current.key), target) >= 0 { return }
        if cursor == nil { cursor = try snapshot.scan(.feed, Feed.range(after: begin), reverse: false, values: false) }
        try cursor?.seek(target)
        try next()
    }

    mutating func next() throws(Status) {
        try meter.chargeEntry()
        guard let cursor, try cursor.next() else {
            current = nil
            return
        }
        let key = cursor.key
        guard key.count > 8 else { throw Status(.dataLoss, "A feed record is too short.") }
        current = (Int64(bitPattern: IndexValue.readBigEndian(key[...])), Array(key[8...]))
    }

    func close() { cursor?.close() }
}

extension ReadView {
    /// The documents in a query's scope that changed after an earlier version.
    /// - Parameters:
    ///   - changesMax: how many documents may have changed.
    ///   - meter: counts the feed records that are read.
    /// - Returns: nil when the history doesn't reach back that far, or more have changed.
    package func changes(
        in live: LiveQuery, since earlier: Int64, changesMax: Int, meter: WorkMeter
    ) throws(Status) -> DocumentChanges? {
        guard try reaches(earlier) else { return nil }
        do throws(Status) {
            let found = try ScopeChanges(
                in: ScopeChanges.Scope(live.query.query), after: earlier, through: version, snapshot,
                snapshotVersion: snapshotVersion, history, meter, bytesMax: Limits.historyKeysBytesMax)
            return found.firstVersions.count > changesMax ? nil : DocumentChanges(found, self)
        } catch {
            if error.code == .resourceExhausted { return nil }
            throw error
        }
    }

    /// A document at a version before the view's; nil also when it did not exist.
    /// - Throws: FAILED_PRECONDITION when the history doesn't reach back that far.
    package func document(key: [UInt8], atVersion earlier: Int64) throws(Status) -> StoredDocument? {
        let current = try snapshot.document(key)
        if let current, current.updateVersion <= earlier { return current }
        return try Feed.document(key: key, current: current, at: earlier, in: snapshot)
    }

    /// Whether a version is one of this history, and all changes after it are still known: there is a commit of exactly
    /// this version, or the history begins with it. A database that was restored from a backup has lost the versions
    /// after it.
    package func knows(_ earlier: Int64) throws(Status) -> Bool {
        let begin = try Feed.forgottenVersion(in: snapshot)
        if earlier <= begin { return earlier == begin }
        return try snapshot.count(.feed, Feed.range(of: earlier), limit: 1) > 0
    }

    /// Whether all changes after a version are still known.
    package func reaches(_ earlier: Int64) throws(Status) -> Bool {
        earlier >= (try Feed.forgottenVersion(in: snapshot))
    }
}
