import HearthEngine
import HearthConcurrency
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
    private(set) var suffix: [UInt8] = []

    init(_ source: QueryPlan.Source, reverse: Bool, values: Bool, snapshot: any Snapshot, meter: WorkMeter) {
        self.source = source
        self.reverse = reverse
        self.values = values
        self.snapshot = snapshot
        self.meter = meter
    }

    deinit { cursor?.close() }

    var value: [UInt8] { cursor?.value ?? [] }

    func next() throws(Status) -> Bool {
        while true {
            if let cursor {
                if try cursor.next() {
                    try meter.chargeEntry()
                    suffix = cursor.key
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

/// The suffixes that several sources have in common: each leaps to the farthest of the others.
final class JoinCursor {
    private let cursors: [SuffixCursor]

    init(_ cursors: [SuffixCursor]) {
        self.cursors = cursors
    }

    var suffix: [UInt8] { cursors[0].suffix }
    var value: [UInt8] { cursors[0].value }

    func next() throws(Status) -> Bool {
        guard try cursors[0].next() else { return false }
        if cursors.count == 1 { return true }
        var target = cursors[0].suffix
        var agreeing = 1
        var index = 1
        while agreeing < cursors.count {
            let cursor = cursors[index]
            if cursor.suffix.isEmpty || cursor.isBefore(cursor.suffix, target) {
                guard try cursor.seek(target) else { return false }
            }
            if UTF8Order.compare(cursor.suffix, target) == 0 {
                agreeing += 1
            } else {
                target = cursor.suffix
                agreeing = 1
            }
            index = (index + 1) % cursors.count
        }
        return true
    }
}
