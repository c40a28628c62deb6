import HearthEngine
import HearthModel

/// The change feed: for every commit and every document that it changed, the state before.
///
///     key:   version (8 bytes) · document key
///     value: previous version (8 bytes) · the stored document before (see `StoredDocument`), or nothing
///
/// The previous version is that of the document's change before this one: its update, or, when it did not exist, the
/// deletion that is still known; 0 for none. So the states of one document form a chain that is walked backwards from
/// the present without reading other documents. A deletion leaves a tombstone in `meta`, from which the chain starts:
///
///     key: "t" · document key       value: version of the deletion (8 bytes)
///
/// Records and tombstones are kept for the retention window.
package enum Feed {
    package struct Record {
        var version: Int64
        var documentKey: [UInt8]
        var previousVersion: Int64
        var before: StoredDocument?

        package init(key: [UInt8], value: [UInt8]) throws(Status) {
            guard key.count > 8, value.count >= 8 else { throw Status(.dataLoss, "A feed record is too short.") }
            version = Int64(bitPattern: IndexValue.readBigEndian(key[...]))
            documentKey = Array(key.dropFirst(8))
            previousVersion = Int64(bitPattern: IndexValue.readBigEndian(value[...]))
            before = value.count == 8 ? nil : try StoredDocument(stored: value[8...])
        }

    }

    static func appendValue(previousVersion: Int64, _ before: StoredDocument?, to bytes: inout [UInt8]) {
        IndexValue.appendBigEndian(UInt64(bitPattern: previousVersion), to: &bytes)
        before?.append(to: &bytes)
    }

    static func key(_ version: Int64, _ documentKey: [UInt8]) -> [UInt8] {
        var key: [UInt8] = []
        key.reserveCapacity(8 + documentKey.count)
        appendKey(version, documentKey, to: &key)
        return key
    }

    static func appendKey(_ version: Int64, _ documentKey: [UInt8], to key: inout [UInt8]) {
        IndexValue.appendBigEndian(UInt64(bitPattern: version), to: &key)
        key.append(contentsOf: documentKey)
    }

    /// Positions that clients name may be any numbers, so that none must overflow.
    static func range(of version: Int64) -> KeyRange { KeyRange(prefix: key(version, [])) }

    static func range(after version: Int64) -> KeyRange {
        KeyRange(lower: key(version &+ 1, []), upper: nil)
    }

    static func range(before version: Int64) -> KeyRange {
        KeyRange(lower: [], upper: key(version, []))
    }

    /// The keys of changes from a version on, in the order of commits and of documents' keys.
    /// - Parameter key: a document's; changes of the version up to it are left out.
    package static func changes(
        from version: Int64, behind key: [UInt8], in snapshot: any Snapshot
    ) throws(Status) -> any KeyCursor {
        let lower = Feed.key(version, key) + (key.isEmpty ? [] : [0])
        return try snapshot.scan(.feed, KeyRange(lower: lower, upper: nil), reverse: false, values: false)
    }

    /// What a key of the feed says.
    package static func change(_ key: [UInt8]) -> (version: Int64, key: [UInt8]) {
        (Int64(bitPattern: IndexValue.readBigEndian(key[...])), Array(key.dropFirst(8)))
    }

    /// Changes up to this version are not known any more; 0 when all are.
    package static func forgottenVersion(in snapshot: any Snapshot) throws(Status) -> Int64 {
        try Database.time(at: Database.earliestKey, in: snapshot)
    }

    /// The version of the first change that is known; nil when none is.
    static func firstVersion(in snapshot: any Snapshot) throws(Status) -> Int64? {
        let cursor = try snapshot.scan(.feed, KeyRange(lower: [], upper: nil), reverse: false, values: false)
        defer { cursor.close() }
        return try cursor.next() ? change(cursor.key).version : nil
    }

    /// The version of the first change after a version; nil when there is none.
    static func nextVersion(after version: Int64, in snapshot: any Snapshot) throws(Status) -> Int64? {
        let cursor = try snapshot.scan(.feed, range(after: version), reverse: false, values: false)
        defer { cursor.close() }
        return try cursor.next() ? change(cursor.key).version : nil
    }

    /// The version of the last commit at or before a time; 0 when there was none.
    /// - Parameter time: not before `forgottenVersion`.
    static func lastVersion(at time: Int64, in snapshot: any Snapshot) throws(Status) -> Int64 {
        let cursor = try snapshot.scan(.feed, range(before: time + 1), reverse: true, values: false)
        defer { cursor.close() }
        return try cursor.next() ? change(cursor.key).version : forgottenVersion(in: snapshot)
    }

    static func tombstoneKey(_ documentKey: [UInt8]) -> [UInt8] { [UInt8(ascii: "t")] + documentKey }

    static func tombstone(_ documentKey: [UInt8], in snapshot: any Snapshot) throws(Status) -> Int64? {
        try snapshot.get(.meta, tombstoneKey(documentKey)).map { Int64(bitPattern: IndexValue.readBigEndian($0[...])) }
    }

    /// The version of a document's last change, its deletion included; 0 when none is known.
    package static func lastChange(of key: [UInt8], in snapshot: any Snapshot) throws(Status) -> Int64 {
        if let current = try snapshot.document(key) { return current.updateVersion }
        return try tombstone(key, in: snapshot) ?? 0
    }

    /// A document before one of its changes.
    /// - Throws: FAILED_PRECONDITION when the change is not known any more.
    package static func stateBefore(_ version: Int64, _ key: [UInt8], in snapshot: any Snapshot) throws(Status)
        -> StoredDocument?
    {
        let record = Feed.key(version, key)
        guard let value = try snapshot.get(.feed, record) else {
            throw .failedPrecondition("The requested 'read_time' is too old.")
        }
        return try Record(key: record, value: value).before
    }

    /// The version of the change before one of a document; 0 when there is none or it is not known any more.
    /// - Throws: FAILED_PRECONDITION when the change is not known any more.
    package static func previousVersion(
        _ version: Int64, _ key: [UInt8], in snapshot: any Snapshot
    ) throws(Status) -> Int64 {
        var previous: Int64?
        _ = try snapshot.read(.feed, Feed.key(version, key)) { value throws(Status) in
            if value.count >= 8 { previous = Int64(bigEndian: value.loadUnaligned(as: Int64.self)) }
        }
        guard let previous else { throw .failedPrecondition("The requested 'read_time' is too old.") }
        // Otherwise who follows the chain back would never come to its end.
        guard previous < version else { throw Status(.dataLoss, "The history of a document is damaged.") }
        return previous
    }

    /// Changes of a document that are walked over before its next change is also looked for from the version on.
    private static let stepsAlone = 64
    /// Records that are passed over there for each change that is walked over here, where each is looked up.
    private static let recordsPerStep = 4

    /// A document at a version within the retention.
    ///
    /// Its changes are walked backwards from the present, without reading other documents. When there are many, the feed is
    /// read forwards from the version at the same time: a document that changes all the time has a change soon after it.
    /// - Parameter budget: pays for each change that is walked over.
    static func document(
        key: [UInt8], current: StoredDocument?, at version: Int64, in snapshot: any Snapshot,
        _ budget: FeedBudget? = nil
    ) throws(Status) -> StoredDocument? {
        var change: Int64
        if let current {
            change = current.updateVersion
        } else {
            change = try tombstone(key, in: snapshot) ?? 0
        }
        var next: Int64?
        var steps = 0
        var forward: (any KeyCursor)?
        defer { forward?.close() }
        while change > version {
            try budget?.payStep()
            steps += 1
            if steps == stepsAlone {
                forward = try snapshot.scan(.feed, range(after: version), reverse: false, values: false)
            }
            if let forward, let found = try nextChange(of: key, from: forward) {
                next = found
                break
            }
            next = change
            change = try previousVersion(change, key, in: snapshot)
        }
        guard let next else { return current }
        return try stateBefore(next, key, in: snapshot)
    }

    /// The version of a change of a document among the next records of a walk.
    private static func nextChange(of key: [UInt8], from cursor: any KeyCursor) throws(Status) -> Int64? {
        for _ in 0..<recordsPerStep {
            guard try cursor.next() else { return nil }
            let record = cursor.key
            if record.count == key.count + 8, record[8...].elementsEqual(key) { return change(record).version }
        }
        return nil
    }
}
