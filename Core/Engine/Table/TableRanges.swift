import HearthModel

/// A tree whose entries are ranges of keys: the key is the first one of the range, the value the first one behind it,
/// or empty when the range has no end. The ranges are disjoint and don't touch each other.
struct TableRanges {
    let root: TableBlock?

    @inline(__always) init(_ root: TableBlock?) { self.root = root }

    @inline(__always) var isEmpty: Bool { root == nil }

    /// The last range that begins at or before a key.
    func last(notBehind key: RawKey) -> TableRange? {
        var walk = TableWalk(root)
        walk.moveDown(to: key)
        return walk.entry.map { TableRange($0) }
    }

    /// The range that has a key.
    @inline(__always)
    func range(with key: RawKey) -> TableRange? {
        if isEmpty { return nil }
        return last(notBehind: key).flatMap { $0.ends(behind: key) ? $0 : nil }
    }

    /// Whether a range has keys in common with another one.
    func meets(_ range: KeyRange) -> Bool {
        if isEmpty { return false }
        return range.lower.withKey { lower in
            if self.range(with: lower) != nil { return true }
            var walk = TableWalk(root)
            walk.moveUp(to: lower)
            guard let next = walk.entry else { return false }
            return range.upper.map { $0.withKey { next.key.compare($0) < 0 } } ?? true
        }
    }

    /// Calls `body` with the parts of a range, upwards, while it returns true: those that are in a range of the tree, and
    /// those between.
    func forEachPart(
        of range: KeyRange, _ body: (_ part: KeyRange, _ isCovered: Bool) throws(Status) -> Bool
    ) throws(Status) {
        var rest = range
        var next = range.lower.withKey { lower in last(notBehind: lower) }
        while !rest.isEmpty {
            if let present = next, rest.lower.withKey({ present.ends(behind: $0) && present.lower.compare($0) <= 0 }) {
                let end = present.upper?.bytes
                let part = KeyRange(lower: rest.lower, upper: Self.least(end, rest.upper))
                guard try body(part, true), let end else { return }
                rest.lower = end
            } else {
                next = rest.lower.withKey { lower in
                    var walk = TableWalk(root)
                    walk.moveUp(to: lower)
                    return walk.entry.map { TableRange($0) }
                }
                let end = next?.lower.bytes
                let part = KeyRange(lower: rest.lower, upper: Self.least(end, rest.upper))
                guard try body(part, false), let end else { return }
                rest.lower = end
            }
        }
    }

    /// The first of two upper bounds.
    private static func least(_ first: [UInt8]?, _ second: [UInt8]?) -> [UInt8]? {
        guard let first, let second else { return first ?? second }
        return UTF8Order.compare(first, second) < 0 ? first : second
    }

    /// Adds a range, and merges it with those that it meets or touches.
    static func add(_ root: inout TableBlock?, _ lower: RawKey, _ upper: RawKey?, _ editor: TableEditor) {
        let new = KeyRange(lower: lower.bytes, upper: upper?.bytes)
        var merged = new
        var replaced: [[UInt8]] = []
        if let before = TableRanges(root).last(notBehind: lower), before.touches(lower) {
            if before.reaches(new.upper) { return }
            merged.lower = before.lower.bytes
            replaced.append(merged.lower)
        }
        var walk = TableWalk(root)
        walk.moveUp(to: lower)
        while let entry = walk.entry, upper.map({ entry.key.compare($0) <= 0 }) ?? true {
            let next = TableRange(entry)
            replaced.append(next.lower.bytes)
            if next.reaches(merged.upper) { merged.upper = next.upper?.bytes }
            walk.next()
        }
        for key in replaced { _ = key.withKey { editor.remove(&root, $0) } }
        merged.lower.withKey { lower in
            (merged.upper ?? []).withUnsafeBytes { editor.put(&root, lower, $0) }
        }
    }
}

/// A range of a `TableRanges`, with the tree's bytes.
struct TableRange {
    private let entry: TableEntry

    @inline(__always) init(_ entry: TableEntry) { self.entry = entry }

    @inline(__always) var lower: RawKey { entry.key }

    /// nil when it has no end.
    @inline(__always)
    var upper: RawKey? {
        let value = entry.value
        return value.isEmpty ? nil : RawKey(value)
    }

    @inline(__always)
    func ends(behind key: RawKey) -> Bool { upper.map { key.compare($0) < 0 } ?? true }

    /// Whether a range that begins at a key, which is not before this one's first, continues this one.
    fileprivate func touches(_ key: RawKey) -> Bool { upper.map { key.compare($0) <= 0 } ?? true }

    /// Whether it ends at another range's end or behind it.
    func reaches(_ end: [UInt8]?) -> Bool {
        guard let upper else { return true }
        return end.map { $0.withKey { $0.compare(upper) <= 0 } } ?? false
    }
}

/// Finds out for the keys of a walk whether they are in a range; fast for keys in the same gap between two.
struct TableRangeWalk {
    private var ranges: TableRanges
    /// No range has a key between these; the first is included.
    private var gap: KeyRange?

    init(_ root: TableBlock?) { ranges = TableRanges(root) }

    @inline(__always) var isEmpty: Bool { ranges.isEmpty }

    /// The range that has a key.
    @inline(__always)
    mutating func range(with key: RawKey) -> TableRange? {
        if isEmpty { return nil }
        if let gap, gap.lower.withKey({ $0.compare(key) <= 0 }),
            gap.upper.map({ $0.withKey { key.compare($0) < 0 } }) ?? true
        {
            return nil
        }
        return find(key)
    }

    private mutating func find(_ key: RawKey) -> TableRange? {
        let before = ranges.last(notBehind: key)
        if let before, before.ends(behind: key) { return before }
        var walk = TableWalk(ranges.root)
        walk.moveUp(to: key)
        gap = KeyRange(lower: before?.upper?.bytes ?? [], upper: walk.entry?.key.bytes)
        return nil
    }
}
