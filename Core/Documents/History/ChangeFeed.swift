import HearthEngine
import HearthModel

/// What a commit did to one document.
package struct FeedChange: Sendable {
    package let version: Int64
    package let key: [UInt8]
    package let before: StoredDocument?
    package let after: StoredDocument?
    /// Whether it's the last of its commit that the reader wants.
    package let isLast: Bool
    /// The position from which a reader that has only come so far reads whole commits: this commit when it's over, else the one
    /// before.
    package let position: Int64
}

/// A reader of the change feed that goes forwards, in steps, each in a snapshot of its own.
///
/// Commits come in their order, and the documents of a commit in the order of their names. A step may end within a commit; the
/// next one goes on there. `version` is a version of the history at any time: that of a commit, or the one with which the
/// history begins. So it can be given out as a position (see `init(after:incarnation:in:oldest:)`).
package struct ChangeFeed {
    /// Which documents a reader wants.
    package struct Wanted {
        /// What the keys of all of them begin with.
        package private(set) var prefix: [UInt8]
        /// Nil for all with the prefix.
        var isWanted: ((ResourcePath) -> Bool)?

        package static var everything: Wanted { Wanted(prefix: [], isWanted: nil) }

        init(prefix: [UInt8], isWanted: ((ResourcePath) -> Bool)?) {
            self.prefix = prefix
            self.isWanted = isWanted
        }

        /// - Parameter segments: with which the paths of all begin.
        package init(below segments: [String], where isWanted: @escaping (ResourcePath) -> Bool) {
            // The key of a document has a mark before its last segment, so that only collections are prefixes.
            let count = segments.count % 2 == 0 ? max(0, segments.count - 1) : segments.count
            prefix = DocumentKey.encodeSegments(ResourcePath(Array(segments.prefix(count))))
            self.isWanted = isWanted
        }

        func includes(_ key: [UInt8]) throws(Status) -> Bool {
            guard key.starts(with: prefix) else { return false }
            guard let isWanted else { return true }
            guard let path = DocumentKey.decode(key) else {
                throw Status(.dataLoss, "A record of the change feed has no document.")
            }
            return isWanted(path)
        }
    }

    /// Positions that the feed does not reach any more, or that are of another history.
    package static let tooOld = Status(
        .outOfRange,
        "The changes after this position are no longer kept. Take a snapshot (snapshot=true) and go on from there.")
    package static let otherHistory = Status(
        .outOfRange,
        "The position is of another history of the database: it was cleared, deleted or restored since. "
            + "Take a snapshot (snapshot=true) and go on from there.")

    /// All commits up to it have been read.
    package private(set) var version: Int64
    /// That of the history; 0 as long as it has no commit.
    package private(set) var incarnation: Int64
    /// The commits before it are left out.
    private let first: Int64
    private var open: OpenCommit?
    private var chains = DocumentChains()

    /// A commit of which a part has been read.
    private struct OpenCommit {
        var version: Int64
        var keys: [[UInt8]]
    }

    /// A record of the commit that is being read.
    private struct Row {
        var key: [UInt8]
        /// Nil when it is to be read again: large commits are not held.
        var value: [UInt8]?
    }

    /// Bytes of the records of a commit that are held.
    private static let heldBytesMax = 256 << 10

    // MARK: Beginning

    /// Behind the newest commit.
    package init(in snapshot: any Snapshot) throws(Status) {
        version = try Database.version(of: snapshot)
        incarnation = try Self.incarnation(of: snapshot)
        first = 0
    }

    /// Behind a version of a snapshot, which was taken before.
    init(after version: Int64, incarnation: Int64) {
        self.version = version
        self.incarnation = incarnation
        first = 0
    }

    /// Behind a position that was given out.
    /// - Parameter oldest: commits before this version are out of the retention.
    /// - Throws: OUT_OF_RANGE when the feed does not have all commits behind it, or it's of another history.
    package init(
        after version: Int64, incarnation: Int64, in snapshot: any Snapshot, oldest: Int64
    ) throws(Status) {
        self.init(after: version, incarnation: try Self.incarnation(of: snapshot))
        let begin = try Self.earliest(in: snapshot)
        if incarnation != self.incarnation {
            // Before the first commit a history has no number.
            guard incarnation == 0, version == begin else { throw Self.otherHistory }
        }
        if version < begin { throw Self.tooOld }
        if version > (try Database.version(of: snapshot)) { throw Self.otherHistory }
        if version > begin, try snapshot.count(.feed, Feed.range(of: version), limit: 1) == 0 {
            throw Self.otherHistory
        }
        try check(in: snapshot, oldest: oldest)
    }

    /// From a time on.
    /// - Parameter oldest: commits before this version are out of the retention.
    /// - Throws: OUT_OF_RANGE when the time is out of the retention.
    package init(since time: Timestamp, in snapshot: any Snapshot, oldest: Int64) throws(Status) {
        let begin = try Self.earliest(in: snapshot)
        guard time.microseconds >= oldest, time.microseconds > begin else { throw Self.tooOld }
        let cursor = try snapshot.scan(.feed, Feed.range(before: time.microseconds), reverse: true, values: false)
        defer { cursor.close() }
        version = try cursor.next() ? Int64(bitPattern: IndexValue.readBigEndian(cursor.key[...])) : begin
        incarnation = try Self.incarnation(of: snapshot)
        first = time.microseconds
    }

    /// The number of a snapshot's history; 0 as long as it has no commit.
    package static func incarnation(of snapshot: any Snapshot) throws(Status) -> Int64 {
        try snapshot.get(.meta, Incarnation.key).map(Database.decode) ?? 0
    }

    /// The first version that a snapshot's history still has, in microseconds since 1970; 0 when it has all.
    package static func earliest(in snapshot: any Snapshot) throws(Status) -> Int64 {
        try Feed.forgottenVersion(in: snapshot)
    }

    /// Fails when the next commit is out of the retention.
    private func check(in snapshot: any Snapshot, oldest: Int64) throws(Status) {
        let cursor = try snapshot.scan(.feed, Feed.range(after: version), reverse: false, values: false)
        defer { cursor.close() }
        if try cursor.next(), Int64(bitPattern: IndexValue.readBigEndian(cursor.key[...])) < oldest {
            throw Self.tooOld
        }
    }

    /// Whether a commit has been read in part.
    package var isWithinCommit: Bool { open != nil }

    // MARK: Reading

    /// Reads on, to the end of the snapshot, of the budget, or until `body` returns false.
    /// - Parameters:
    ///   - oldest: commits before this version are out of the retention.
    ///   - body: takes a change; returns false to end the step behind it.
    /// - Returns: whether all commits of the snapshot have been read.
    /// - Throws: OUT_OF_RANGE when commits behind the position are gone; `WorkMeter.isHeavier` when it takes longer than the budget
    ///   allows; what `body` throws. After it the reader can go on behind the changes that `body` has taken.
    package mutating func read(
        in snapshot: any Snapshot, _ wanted: Wanted, oldest: Int64, _ budget: FeedBudget,
        _ body: (FeedChange) throws(Status) -> Bool
    ) throws(Status) -> Bool {
        if version < (try Self.earliest(in: snapshot)) { throw Self.tooOld }
        if incarnation == 0 { incarnation = try Self.incarnation(of: snapshot) }
        if let commit = open {
            if commit.version < oldest { throw Self.tooOld }
            let rows = commit.keys.map { Row(key: $0, value: nil) }
            if try !deliver(rows, of: commit.version, in: snapshot, budget, body) { return false }
        }
        // States that nobody wants are not read.
        var hasValues = wanted.isWanted == nil
        var cursor = try snapshot.scan(.feed, Feed.range(after: version), reverse: false, values: hasValues)
        defer { cursor.close() }
        var hasRow = try cursor.next()
        if hasRow, Self.version(of: cursor) < oldest { throw Self.tooOld }
        while hasRow {
            if budget.isSpent { return false }
            let commit = Self.version(of: cursor)
            var rows: [Row] = []
            var heldBytes = 0
            repeat {
                try budget.payRecord()
                let key = Array(cursor.key.dropFirst(8))
                if commit >= first, try wanted.includes(key) {
                    rows.append(Row(key: key, value: hasValues ? cursor.value : nil))
                    heldBytes += hasValues ? cursor.value.count : 0
                }
                if hasValues, heldBytes >= Self.heldBytesMax {
                    // From here on each state is read when its change is passed on.
                    hasValues = false
                    cursor.close()
                    let rest = KeyRange(lower: Feed.key(commit, key) + [0], upper: nil)
                    cursor = try snapshot.scan(.feed, rest, reverse: false, values: false)
                }
                hasRow = try cursor.next()
            } while hasRow && Self.version(of: cursor) == commit
            if try !deliver(Self.ordered(rows), of: commit, in: snapshot, budget, body) { return false }
        }
        chains = DocumentChains()
        return true
    }

    private static func version(of cursor: any KeyCursor) -> Int64 {
        Int64(bitPattern: IndexValue.readBigEndian(cursor.key[...]))
    }

    /// By name. The documents of a collection are in that order already.
    private static func ordered(_ rows: [Row]) -> [Row] {
        guard rows.count > 1, let first = rows.first, let last = rows.last else { return rows }
        if DocumentKey.collectionPrefix(of: first.key) == DocumentKey.collectionPrefix(of: last.key) { return rows }
        return rows.map { (path: DocumentKey.toPathKey($0.key) ?? $0.key, row: $0) }
            .sorted { UTF8Order.compare($0.path, $1.path) < 0 }.map(\.row)
    }

    /// Passes on the changes of a commit.
    /// - Returns: false when `body` wants no more; the rest of the commit is noted.
    private mutating func deliver(
        _ rows: [Row], of commit: Int64, in snapshot: any Snapshot, _ budget: FeedBudget,
        _ body: (FeedChange) throws(Status) -> Bool
    ) throws(Status) -> Bool {
        // The last one is known as such only when none comes after it.
        var held: (index: Int, change: FeedChange)?
        var index = 0
        var isFull = false
        do throws(Status) {
            // Two rows at least: the first is passed on, or the second has no change. So each step comes further.
            while index < rows.count, !isFull, index < 2 || !budget.isSpent {
                if let change = try change(rows[index], commit, in: snapshot, budget) {
                    if let held { isFull = try !body(held.change) }
                    held = (index, change)
                }
                index += 1
            }
        } catch {
            note(rows, held?.index, from: index, of: commit)
            throw error
        }
        if index < rows.count {
            note(rows, held?.index, from: index, of: commit)
            return false
        }
        if let held {
            if isFull {
                note(rows, held.index, from: index, of: commit)
                return false
            }
            let last = held.change
            do throws(Status) {
                isFull = try !body(
                    FeedChange(
                        version: commit, key: last.key, before: last.before, after: last.after, isLast: true,
                        position: commit))
            } catch {
                note(rows, held.index, from: index, of: commit)
                throw error
            }
        }
        open = nil
        version = commit
        return !isFull
    }

    /// - Parameters:
    ///   - held: the row whose change is not passed on yet. Those between that and `index` have none, and are not read again.
    ///   - index: the first row that was not read.
    private mutating func note(_ rows: [Row], _ held: Int?, from index: Int, of commit: Int64) {
        open = OpenCommit(version: commit, keys: (held.map { [rows[$0].key] } ?? []) + rows[index...].map(\.key))
    }

    /// - Returns: nil when the document is as it was.
    private mutating func change(
        _ row: Row, _ version: Int64, in snapshot: any Snapshot, _ budget: FeedBudget
    ) throws(Status) -> FeedChange? {
        let recordKey = Feed.key(version, row.key)
        var value = row.value
        if value == nil { value = try snapshot.get(.feed, recordKey) }
        guard let value else { throw Self.tooOld }
        let before = try Feed.Record(key: recordKey, value: value).before
        let after = try state(after: version, row.key, in: snapshot, budget)
        budget.payBytes(value.count + (after?.fields.count ?? 0))
        if before == nil, after == nil { return nil }
        return FeedChange(
            version: version, key: row.key, before: before, after: after, isLast: false, position: self.version)
    }

    private mutating func state(
        after version: Int64, _ key: [UInt8], in snapshot: any Snapshot, _ budget: FeedBudget
    ) throws(Status) -> StoredDocument? {
        let current = try snapshot.document(key)
        if let current {
            if current.updateVersion == version { return current }
        } else if try Feed.tombstone(key, in: snapshot) == version {
            return nil
        }
        return try Feed.stateBefore(chains.next(after: version, key, in: snapshot, budget), key, in: snapshot)
    }
}
