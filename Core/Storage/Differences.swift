import HearthModel

/// What became of a document between two versions.
public struct DocumentDifference: Sendable {
    public var key: [UInt8]
    public var before: StoredDocument?
    public var after: StoredDocument?
}

extension ReadView {
    /// The documents that changed after an earlier version, each once, in the order of their keys.
    /// - Parameter changesMax: how many changes may be looked at.
    /// - Returns: nil when the history doesn't go back so far, or holds more changes.
    public func differences(since earlier: Int64, changesMax: Int) throws(Status) -> [DocumentDifference]? {
        guard try reaches(earlier) else { return nil }
        var before: [[UInt8]: StoredDocument?] = [:]
        var changes = 0
        let cursor = try snapshot.scan(.feed, Feed.range(after: earlier), reverse: false, values: true)
        defer { cursor.close() }
        while try cursor.next() {
            let record = try Feed.Record(key: cursor.key, value: cursor.value)
            if record.version > version { break }
            changes += 1
            if changes > changesMax { return nil }
            // The first change after the version holds the state at it.
            if before[record.documentKey] == nil { before[record.documentKey] = .some(record.before) }
        }
        return try before.keys.sorted { UTF8Order.compare($0, $1) < 0 }.map { key throws(Status) in
            DocumentDifference(key: key, before: before[key] ?? nil, after: try document(key: key))
        }
    }

    /// A document as it was at a version before the view's; nil also when there was none.
    /// - Throws: FAILED_PRECONDITION when the history doesn't go back so far.
    public func document(key: [UInt8], atVersion earlier: Int64) throws(Status) -> StoredDocument? {
        let current = try snapshot.document(key)
        if let current, current.updateVersion <= earlier { return current }
        return try Feed.document(key: key, current: current, at: earlier, in: snapshot)
    }

    /// Whether all changes after a version are still known.
    public func reaches(_ earlier: Int64) throws(Status) -> Bool {
        earlier >= (try snapshot.get(.meta, Database.earliestKey).map(Database.decode) ?? 0)
    }
}
