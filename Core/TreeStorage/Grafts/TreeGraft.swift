import HearthModel
import HearthEngine
import HearthTree

/// Ranges of the tree whose present records are in the staging area, because they are too large to be put to their
/// final keys in one transaction.
///
/// A large replacement has these steps. Its records are put into the staging area in slices, where no reader sees them;
/// after a crash they are garbage that the next start deletes. One small transaction then makes the graft: from then
/// on, each read or write of a key of these ranges uses the staging area (`GraftMap`). The old records are deleted in
/// slices, and the staged records are moved to their final keys in slices. None of these slices changes what a reader
/// sees: keys before the boundary have been moved, keys from it on are staged. At the end the graft is deleted.
///
/// A staged record has its whole key behind `04, ID`, in the same keyspace. Where there would be very many ranges, a
/// delta to the tree is staged instead (`TreeDelta`), and is moved into the tree in the same way.
///
///     graft/ranges   ID in 4 bytes; for each range its keyspace in a byte, the length of its prefix in 4 bytes, the prefix;
///                    or ID and FF for a delta, which programs that know only ranges report as damage
///     graft/moved    the boundary: its keyspace in a byte, its key
///     index/FFFFFFFF 00; while there is a graft. Programs that do not know grafts reject the tree because of it
final class TreeGraft: Sendable {
    struct Range: Sendable {
        var keyspace: Keyspace
        var prefix: [UInt8]
    }

    let id: UInt32
    /// The first bytes of staged keys.
    let prefix: [UInt8]
    /// By the keyspace's number, in the order of keys; they do not overlap.
    private let ranges: [[KeyRange]]
    private let encoded: [UInt8]
    /// The staged data, when it isn't ranges.
    let delta: TreeDelta?

    private static let deltaMark: UInt8 = 0xFF

    init(deltaOf id: UInt32) {
        self.id = id
        prefix = Self.prefix(id)
        ranges = []
        encoded = TreeMeta.encode(id) + [Self.deltaMark]
        delta = TreeDelta(id: id)
    }

    /// - Parameter ranges: none of which is in another.
    init(id: UInt32, ranges: [Range]) {
        self.id = id
        delta = nil
        prefix = Self.prefix(id)
        var sorted = Array(repeating: [KeyRange](), count: Keyspace.allCases.count)
        var encoded = TreeMeta.encode(id)
        for range in ranges {
            sorted[range.keyspace.rawValue].append(KeyRange(prefix: range.prefix))
            encoded.append(UInt8(range.keyspace.rawValue))
            encoded += TreeMeta.encode(UInt32(range.prefix.count)) + range.prefix
        }
        for index in sorted.indices { sorted[index].sort { UTF8Order.compare($0.lower, $1.lower) < 0 } }
        self.ranges = sorted
        self.encoded = encoded
    }

    static func prefix(_ id: UInt32) -> [UInt8] { [PathCode.Space.staged] + TreeMeta.encode(id) }

    func ranges(_ keyspace: Keyspace) -> [KeyRange] { ranges[keyspace.rawValue] }

    // MARK: Stored form

    static let rangesKey = Array("graft/ranges".utf8)
    static let movedKey = Array("graft/moved".utf8)
    static let markKey = TreeMeta.indexPrefix + TreeMeta.encode(UInt32.max)
    private static let damaged = Status(.dataLoss, "The record of a large write to the tree is damaged.")

    /// The graft that a store was closed with.
    static func load(_ snapshot: any Snapshot) throws(Status) -> TreeGraft? {
        guard let bytes = try snapshot.get(.meta, rangesKey) else { return nil }
        guard bytes.count >= 4 else { throw damaged }
        if bytes.count == 5, bytes[4] == deltaMark { return TreeGraft(deltaOf: TreeMeta.id(bytes)) }
        var ranges: [Range] = []
        var position = 4
        while position < bytes.count {
            guard bytes.count >= position + 5, let keyspace = Keyspace(rawValue: Int(bytes[position])) else {
                throw damaged
            }
            let end = position + 5 + Int(TreeMeta.id(bytes[(position + 1)...]))
            guard end <= bytes.count, end > position + 5 else { throw damaged }
            ranges.append(Range(keyspace: keyspace, prefix: Array(bytes[(position + 5)..<end])))
            position = end
        }
        return TreeGraft(id: TreeMeta.id(bytes), ranges: ranges)
    }

    /// The progress of the move; nil when there is no graft.
    static func boundary(_ snapshot: any Snapshot) throws(Status) -> GraftBoundary? {
        guard let bytes = try snapshot.get(.meta, movedKey) else { return nil }
        guard let first = bytes.first, let keyspace = Keyspace(rawValue: Int(first)) else { throw damaged }
        return GraftBoundary(keyspace: keyspace, key: Array(bytes.dropFirst()))
    }

    func begin(_ transaction: any StoreTransaction) throws(Status) -> GraftBoundary {
        try transaction.put(.meta, Self.rangesKey, encoded)
        try transaction.put(.meta, Self.markKey, [0])
        let boundary = GraftBoundary(keyspace: .documents, key: [])
        try Self.set(boundary, transaction)
        return boundary
    }

    static func set(_ boundary: GraftBoundary, _ transaction: any StoreTransaction) throws(Status) {
        try transaction.put(.meta, movedKey, [UInt8(boundary.keyspace.rawValue)] + boundary.key)
    }

    static func end(_ transaction: any StoreTransaction) throws(Status) {
        for key in [rangesKey, movedKey, markKey] { try transaction.delete(.meta, key) }
    }
}

/// The moved part: the keyspaces before this one, and of this one the keys before `key`.
struct GraftBoundary: Sendable {
    var keyspace: Keyspace
    var key: [UInt8]
}

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
