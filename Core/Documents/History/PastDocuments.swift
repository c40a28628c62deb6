import HearthEngine
import HearthModel

/// All documents of a database as of one version, in steps, each in a snapshot of its own.
///
/// A step reads the documents that follow in the order of keys. Those that changed since the version are looked up in the feed;
/// those that were deleted since are found by their tombstones, which have the same order. So nothing is held between two
/// steps but the last key, however much is written meanwhile.
package struct PastDocuments {
    package let version: Int64
    package let incarnation: Int64
    private let wanted: ChangeFeed.Wanted
    private var last: [UInt8]?

    /// As of the snapshot's version.
    package init(_ wanted: ChangeFeed.Wanted, in snapshot: any Snapshot) throws(Status) {
        try self.init(wanted, at: try Database.version(of: snapshot), in: snapshot)
    }

    /// - Parameter version: that of the snapshot, or one before, in microseconds since 1970.
    package init(_ wanted: ChangeFeed.Wanted, at version: Int64, in snapshot: any Snapshot) throws(Status) {
        self.version = version
        incarnation = try ChangeFeed.incarnation(of: snapshot)
        self.wanted = wanted
    }

    /// The changes that follow.
    package var feed: ChangeFeed { ChangeFeed(after: version, incarnation: incarnation) }

    /// Reads on.
    /// - Parameter body: takes a document; returns false to end the step behind it.
    /// - Returns: whether there are no more.
    /// - Throws: OUT_OF_RANGE when the version is not kept any more; what `body` throws, after which that document comes again.
    package mutating func read(
        in snapshot: any Snapshot, _ budget: FeedBudget,
        _ body: (_ key: [UInt8], _ document: StoredDocument) throws(Status) -> Bool
    ) throws(Status) -> Bool {
        if version < (try ChangeFeed.earliest(in: snapshot)) { throw ChangeFeed.tooOld }
        // Documents that nobody wants are not read.
        let hasValues = wanted.isWanted == nil
        let present = try snapshot.scan(.documents, range([]), reverse: false, values: hasValues)
        defer { present.close() }
        let deleted = try snapshot.scan(
            .meta, range(Feed.tombstoneKey([])), reverse: false, values: true, dropping: Feed.tombstoneKey([]).count)
        defer { deleted.close() }
        var presentKey = try present.next() ? present.key : nil
        var deletedKey = try deleted.next() ? deleted.key : nil
        while true {
            let key: [UInt8]
            var document: StoredDocument?
            try budget.payRecord()
            if let next = presentKey, deletedKey.map({ UTF8Order.compare(next, $0) < 0 }) ?? true {
                key = next
                if try wanted.includes(key) {
                    var value: [UInt8]?
                    if hasValues { value = present.value } else { value = try snapshot.get(.documents, key) }
                    guard let value else { throw Status(.dataLoss, "A document that is listed is not there.") }
                    budget.payBytes(value.count)
                    document = try StoredDocument(stored: value)
                    if let current = document, current.updateVersion > version {
                        document = try Feed.document(key: key, current: current, at: version, in: snapshot, budget)
                    }
                }
                presentKey = try present.next() ? present.key : nil
            } else if let next = deletedKey {
                key = next
                if Database.decode(deleted.value) > version, try wanted.includes(key) {
                    document = try Feed.document(key: key, current: nil, at: version, in: snapshot, budget)
                }
                deletedKey = try deleted.next() ? deleted.key : nil
            } else {
                return true
            }
            let goesOn = try document.map { document throws(Status) in try body(key, document) } ?? true
            last = key
            if !goesOn || budget.isSpent { return presentKey == nil && deletedKey == nil }
        }
    }

    /// The keys that follow, behind a mark.
    private func range(_ mark: [UInt8]) -> KeyRange {
        var range = KeyRange(prefix: mark + wanted.prefix)
        if let last { range.lower = mark + last + [0] }
        return range
    }
}
