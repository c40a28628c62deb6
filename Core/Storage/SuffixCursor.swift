import HearthConcurrency
import HearthModel

/// Counts what a query looks at, and stops it when its caller is gone or its time is over.
public final class WorkMeter {
    public private(set) var entriesScanned = 0
    public internal(set) var documentsRead = 0
    /// Asked every few hundred steps; throws to end the query.
    private let check: () throws(Status) -> Void
    private let memory: MemoryReservation?
    private var heldBytes = 0
    /// Whether the query gives way where it would have to sort more than a few documents: it runs on an event loop.
    package var mayPause = false
    /// It has given way: that there was no next result doesn't say that there are no more. It goes on when it is asked again.
    package var isPaused = false

    public init(check: @escaping () throws(Status) -> Void = {}) {
        self.check = check
        memory = nil
    }

    /// - Parameter memory: for what the query holds while it sorts; it belongs to the meter.
    package init(memory: MemoryReservation?, check: @escaping () throws(Status) -> Void) {
        self.check = check
        self.memory = memory
    }

    package func chargeDocument() { documentsRead += 1 }

    /// How much more is taken than is needed at the moment, because each step has to ask what all share.
    private static let heldStepBytes = 256 << 10

    /// Counts what the query holds from now on.
    /// - Throws: RESOURCE_EXHAUSTED when that is more than the query may hold, or than queries together leave it.
    package func hold(_ bytes: Int) throws(Status) {
        heldBytes += bytes
        if heldBytes > Limits.queryMemoryBytesMax {
            throw .resourceExhausted(
                "The query sorts more than \(Limits.queryMemoryBytesMax) bytes of keys in memory. Add an index for its "
                    + "filters and order, or a limit.")
        }
        guard let memory else { return }
        if heldBytes > memory.bytes {
            if heldBytes <= Self.heldStepBytes / 16 || memory.resize(to: heldBytes + Self.heldStepBytes) { return }
            throw .resourceExhausted(
                "Queries that sort in memory hold more than the server has for them. Add an index for the query's filters "
                    + "and order, or a limit, or try again later.")
        }
    }

    /// Counts what the query doesn't hold any more.
    package func release(_ bytes: Int) {
        heldBytes -= bytes
        if let memory, heldBytes + 2 * Self.heldStepBytes < memory.bytes { memory.resize(to: heldBytes) }
    }

    @inline(__always)
    func chargeEntry() throws(Status) {
        entriesScanned += 1
        if entriesScanned & 0xFF == 0 { try check() }
    }
}

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
        // Ranges that end before the target are passed over by `next` itself: their cursors end at once after the seek.
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

/// The suffixes that several sources have in common, by leaping each to the farthest of the others.
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
