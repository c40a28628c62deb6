import HearthEngine
import HearthModel

/// Walks over the suffixes of one source: the keys of its ranges, without the prefix.
final class SuffixCursor {
    private let source: QueryPlan.Source
    private let reverse: Bool
    private let snapshot: any Snapshot
    private let meter: WorkMeter
    private let values: Bool
    private var rangeIndex = 0
    private var cursor: (any KeyCursor)?
    /// Memory that each suffix uses again.
    private(set) var suffix: [UInt8] = []

    init(_ source: QueryPlan.Source, reverse: Bool, values: Bool, snapshot: any Snapshot, meter: WorkMeter) {
        self.source = source
        self.reverse = reverse
        self.values = values
        self.snapshot = snapshot
        self.meter = meter
    }

    deinit { cursor?.close() }

    /// The document at the present suffix.
    func document() throws(Status) -> StoredDocument? {
        var document: StoredDocument?
        try cursor?.withRow { _, value throws(Status) in document = try StoredDocument(stored: value) }
        return document
    }

    func next() throws(Status) -> Bool {
        while true {
            if let cursor {
                if try cursor.next() {
                    try meter.chargeEntry()
                    suffix.removeAll(keepingCapacity: true)
                    try cursor.withRow { key, _ in suffix.append(contentsOf: key) }
                    return true
                }
                cursor.close()
                self.cursor = nil
            }
            guard rangeIndex < source.ranges.count else { return false }
            let range = source.ranges[reverse ? source.ranges.count - 1 - rangeIndex : rangeIndex]
            rangeIndex += 1
            cursor = try snapshot.scan(
                source.keyspace, Planner.absolute(range, prefix: source.prefix), reverse: reverse, values: values,
                dropping: source.prefix.count)
        }
    }

    /// Moves to the first suffix that is not before `target` in the walk's direction.
    func seek(_ target: [UInt8]) throws(Status) -> Bool {
        // `next` itself skips ranges that end before the target: their cursors end at once after the seek.
        while true {
            if let cursor { try cursor.seek(source.prefix + target) }
            let rangeBefore = rangeIndex
            guard try next() else { return false }
            if rangeIndex == rangeBefore || !isBefore(suffix, target) { return true }
        }
    }

    func isBefore(_ lhs: [UInt8], _ rhs: [UInt8]) -> Bool {
        let order = UTF8Order.compare(lhs, rhs)
        return reverse ? order > 0 : order < 0
    }
}
