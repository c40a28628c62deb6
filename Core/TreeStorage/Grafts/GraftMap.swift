import HearthModel
import HearthEngine

/// The location of records in the store of a tree with a graft of ranges.
struct GraftMap: StoredTreeMap, Sendable {
    let graft: TreeGraft
    let boundary: GraftBoundary

    /// A contiguous part of a range.
    struct Segment {
        var isStaged: Bool
        /// In terms of the tree's own keys.
        var range: KeyRange
    }

    /// The first of the ranges that ends behind a key.
    private func first(_ ranges: [KeyRange], endingBehind key: [UInt8]) -> Int {
        var low = 0
        var high = ranges.count
        while low < high {
            let middle = (low + high) / 2
            let isBehind = ranges[middle].upper.map { UTF8Order.compare($0, key) > 0 } ?? true
            if isBehind { high = middle } else { low = middle + 1 }
        }
        return low
    }

    /// The first staged key of the ranges; nil when no key of a keyspace is staged.
    private func start(_ keyspace: Keyspace) -> [UInt8]? {
        if keyspace.rawValue < boundary.keyspace.rawValue { return nil }
        return keyspace == boundary.keyspace ? boundary.key : []
    }

    func isStaged(_ keyspace: Keyspace, _ key: [UInt8]) -> Bool {
        guard let start = start(keyspace), UTF8Order.compare(key, start) >= 0 else { return false }
        let ranges = graft.ranges(keyspace)
        let index = first(ranges, endingBehind: key)
        return index < ranges.count && ranges[index].contains(key)
    }

    func staged(_ key: [UInt8]) -> [UInt8] { graft.prefix + key }

    /// The location of a segment in the store.
    func location(_ segment: Segment) -> KeyRange {
        guard segment.isStaged else { return segment.range }
        return KeyRange(lower: staged(segment.range.lower), upper: segment.range.upper.map { staged($0) })
    }

    /// A range in pieces, in the order of keys, without the staging area itself.
    func segments(_ keyspace: Keyspace, _ range: KeyRange) -> [Segment] {
        if keyspace == .meta || keyspace == .feed { return [Segment(isStaged: false, range: range)] }
        let end = min(range.upper ?? [PathCode.Space.staged])
        var segments: [Segment] = []
        var lower = range.lower
        func add(_ isStaged: Bool, upTo upper: [UInt8]) {
            if UTF8Order.compare(lower, upper) < 0 {
                segments.append(Segment(isStaged: isStaged, range: KeyRange(lower: lower, upper: upper)))
                lower = upper
            }
        }
        if let start = start(keyspace) {
            let ranges = graft.ranges(keyspace)
            var index = first(ranges, endingBehind: Self.max(lower, start))
            while index < ranges.count, UTF8Order.compare(lower, end) < 0 {
                add(false, upTo: min(Self.max(ranges[index].lower, start), end))
                add(true, upTo: min(ranges[index].upper ?? end, end))
                index += 1
            }
        }
        add(false, upTo: end)
        return segments
    }

    private func min(_ key: [UInt8]) -> [UInt8] { min(key, [PathCode.Space.staged]) }

    private func min(_ lhs: [UInt8], _ rhs: [UInt8]) -> [UInt8] { UTF8Order.compare(lhs, rhs) < 0 ? lhs : rhs }

    private static func max(_ lhs: [UInt8], _ rhs: [UInt8]) -> [UInt8] { UTF8Order.compare(lhs, rhs) > 0 ? lhs : rhs }

    // MARK: Reading

    func get(_ snapshot: any Snapshot, _ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? {
        try snapshot.get(keyspace, isStaged(keyspace, key) ? staged(key) : key)
    }

    func count(_ snapshot: any Snapshot, _ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        var count = 0
        for segment in segments(keyspace, range) {
            if count >= limit { break }
            count += try snapshot.count(keyspace, location(segment), limit: limit - count)
        }
        return count
    }

    func scan(
        _ snapshot: any Snapshot, _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) throws(Status) -> any KeyCursor {
        let segments = segments(keyspace, range)
        if segments.count == 1, !segments[0].isStaged {
            return try snapshot.scan(
                keyspace, segments[0].range, reverse: reverse, values: values, dropping: dropping)
        }
        return GraftCursor(self, snapshot, keyspace, segments, reverse: reverse, values: values, dropping: dropping)
    }
}

/// A walk through the pieces of a range, one after the other.
private final class GraftCursor: KeyCursor {
    private let map: GraftMap
    private let snapshot: any Snapshot
    private let keyspace: Keyspace
    private let isReverse: Bool
    private let hasValues: Bool
    private let dropping: Int
    /// The remaining pieces, the next one last.
    private var segments: [GraftMap.Segment]
    private var current: (any KeyCursor)?

    init(
        _ map: GraftMap, _ snapshot: any Snapshot, _ keyspace: Keyspace, _ segments: [GraftMap.Segment],
        reverse: Bool, values: Bool, dropping: Int
    ) {
        self.map = map
        self.snapshot = snapshot
        self.keyspace = keyspace
        self.segments = reverse ? segments : segments.reversed()
        isReverse = reverse
        hasValues = values
        self.dropping = dropping
    }

    var key: [UInt8] { current?.key ?? [] }
    var value: [UInt8] { current?.value ?? [] }

    /// The cursor of the present piece; nil at the end.
    private func open() throws(Status) -> (any KeyCursor)? {
        if let current { return current }
        guard let segment = segments.last else { return nil }
        current = try snapshot.scan(
            keyspace, map.location(segment), reverse: isReverse, values: hasValues,
            dropping: segment.isStaged ? dropping + map.graft.prefix.count : dropping)
        return current
    }

    private func leave() {
        current?.close()
        current = nil
        segments.removeLast()
    }

    func next() throws(Status) -> Bool {
        while let cursor = try open() {
            if try cursor.next() { return true }
            leave()
        }
        return false
    }

    func seek(_ key: [UInt8]) throws(Status) {
        while let segment = segments.last {
            let isPassed =
                isReverse
                ? UTF8Order.compare(segment.range.lower, key) > 0
                : segment.range.upper.map { UTF8Order.compare($0, key) <= 0 } ?? false
            if !isPassed { break }
            leave()
        }
        guard let segment = segments.last, segment.range.contains(key) else { return }
        try open()?.seek(segment.isStaged ? map.staged(key) : key)
    }

    func close() {
        current?.close()
        current = nil
        segments = []
    }
}
