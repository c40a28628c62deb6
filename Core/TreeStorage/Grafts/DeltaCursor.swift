import HearthModel
import HearthEngine

/// A walk over the tree that a delta describes: over the delta's records and those of the tree below at once. A hidden
/// range costs one search, whatever its size is.
final class DeltaCursor: KeyCursor {
    /// A walk that is one record ahead.
    private struct Side {
        let cursor: any KeyCursor
        /// The key of its position; nil before its first step.
        var head: [UInt8]?
        var isEnded = false

        mutating func step() throws(Status) {
            if head != nil || isEnded { return }
            if try cursor.next() { head = cursor.key } else { isEnded = true }
        }
    }

    private let map: TreeDeltaMap
    private let snapshot: any Snapshot
    private let keyspace: Keyspace
    private let isReverse: Bool
    private let dropping: Int
    /// The first bytes of the keys that are omitted.
    private let start: [UInt8]

    private var over: Side
    private var under: Side
    /// Hidden ranges in the direction of the walk: the one that was reached last, and the next.
    private var hidden: (any KeyCursor)?
    private var present: (start: [UInt8], end: [UInt8])?
    private var following: (start: [UInt8], end: [UInt8])?

    private(set) var key: [UInt8] = []
    /// Whether the present record is the tree's own; else it is the delta's.
    private(set) var isBelow = false

    init(
        _ map: TreeDeltaMap, _ snapshot: any Snapshot, _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool,
        values: Bool, dropping: Int
    ) throws(Status) {
        self.map = map
        self.snapshot = snapshot
        self.keyspace = keyspace
        self.dropping = dropping
        isReverse = reverse
        start = Array(range.lower.prefix(dropping))
        let (lower, upper) = TreeDelta.clipped(range)
        over = Side(
            cursor: try snapshot.scan(
                keyspace, map.delta.staged(range), reverse: reverse, values: values,
                dropping: map.delta.prefix.count + dropping))
        under = Side(
            cursor: try snapshot.scan(
                keyspace, KeyRange(lower: lower, upper: upper), reverse: reverse, values: values, dropping: dropping))
    }

    var value: [UInt8] { isBelow ? under.cursor.value : over.cursor.value }

    /// The order of two keys in the direction of the walk.
    private func order(_ lhs: [UInt8], _ rhs: [UInt8]) -> Int {
        isReverse ? UTF8Order.compare(rhs, lhs) : UTF8Order.compare(lhs, rhs)
    }

    /// The record at the walk's position has been used.
    private func leave() {
        if !isPositioned { return }
        isPositioned = false
        if let head = over.head, head == key { over.head = nil }
        if let head = under.head, head == key { under.head = nil }
    }

    private var isPositioned = false

    func next() throws(Status) -> Bool {
        leave()
        try over.step()
        try stepBelow()
        switch (over.head, under.head) {
        case (nil, nil): return false
        case (let head?, nil): stand(at: head, isBelow: false)
        case (nil, let head?): stand(at: head, isBelow: true)
        case (let upper?, let lower?):
            let order = order(upper, lower)
            stand(at: order <= 0 ? upper : lower, isBelow: order > 0)
        }
        return true
    }

    private func stand(at key: [UInt8], isBelow: Bool) {
        self.key = key
        self.isBelow = isBelow
        isPositioned = true
    }

    /// Moves to the next record of the tree that isn't hidden.
    private func stepBelow() throws(Status) {
        if under.head != nil { return }
        try under.step()
        guard map.hides[keyspace.rawValue] else { return }
        while let head = under.head {
            let key = start + head
            guard let range = try hiddenRange(at: key) else { return }
            under.head = nil
            if !isReverse {
                try under.cursor.seek(range.end)
            } else if range.start != key {
                try under.cursor.seek(range.start)
            }
            try under.step()
        }
    }

    /// The hidden range that contains a key, for keys in the direction of the walk.
    private func hiddenRange(at key: [UInt8]) throws(Status) -> (start: [UInt8], end: [UInt8])? {
        if hidden == nil {
            if !isReverse {
                let first = try map.delta.hiddenRanges(snapshot, keyspace, from: key, reverse: true)
                defer { first.close() }
                if try first.next() { present = (first.key, first.value) }
            }
            let cursor = try map.delta.hiddenRanges(snapshot, keyspace, from: key, reverse: isReverse)
            hidden = cursor
            following = try cursor.next() ? (cursor.key, cursor.value) : nil
        }
        // The last one that begins at the key or before.
        var steps = 0
        while let next = following, isDue(next.start, at: key) {
            steps += 1
            if steps > Self.stepsMax {
                // The walk has skipped many: one search finds the same.
                forgetHidden()
                return try hiddenRange(at: key)
            }
            present = next
            following = nil
            if let hidden, try hidden.next() { following = (hidden.key, hidden.value) }
        }
        guard let present, UTF8Order.compare(present.start, key) <= 0, UTF8Order.compare(key, present.end) < 0 else {
            return nil
        }
        return present
    }

    private static let stepsMax = 8

    /// Whether the next hidden range applies, and not the present one any more.
    private func isDue(_ next: [UInt8], at key: [UInt8]) -> Bool {
        if !isReverse { return UTF8Order.compare(next, key) <= 0 }
        return present.map { UTF8Order.compare($0.start, key) > 0 } ?? true
    }

    private func forgetHidden() {
        hidden?.close()
        hidden = nil
        present = nil
        following = nil
    }

    func seek(_ key: [UInt8]) throws(Status) {
        leave()
        let short = Array(key.dropFirst(dropping))
        if over.head.map({ order($0, short) < 0 }) ?? true {
            over.head = nil
            try over.cursor.seek(map.delta.staged(key))
        }
        if under.head.map({ order($0, short) < 0 }) ?? true {
            under.head = nil
            try under.cursor.seek(key)
        }
    }

    func close() {
        over.cursor.close()
        under.cursor.close()
        hidden?.close()
        over.head = nil
        under.head = nil
        over.isEnded = true
        under.isEnded = true
        isPositioned = false
    }
}
