import HearthModel
import HearthEngine

/// The tree that a delta describes.
struct TreeDeltaMap: StoredTreeMap {
    let delta: TreeDelta
    /// Whether anything is hidden, so that readers must check.
    var hides: [Bool]

    init(_ delta: TreeDelta, hides: [Bool] = Array(repeating: false, count: Keyspace.allCases.count)) {
        self.delta = delta
        self.hides = hides
    }

    init(_ delta: TreeDelta, in snapshot: any Snapshot) throws(Status) {
        self.init(delta)
        for keyspace in TreeDelta.keyspaces {
            hides[keyspace.rawValue] = try snapshot.count(keyspace, delta.hidden, limit: 1) > 0
        }
    }

    func isHidden(_ key: [UInt8], _ snapshot: any Snapshot, _ keyspace: Keyspace) throws(Status) -> Bool {
        if !hides[keyspace.rawValue] { return false }
        return try delta.isHidden(key, snapshot, keyspace)
    }

    func get(_ snapshot: any Snapshot, _ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? {
        if TreeDelta.isOfTree(keyspace) {
            if let value = try snapshot.get(keyspace, delta.staged(key)) { return value }
            if try isHidden(key, snapshot, keyspace) { return nil }
        }
        return try snapshot.get(keyspace, key)
    }

    func scan(
        _ snapshot: any Snapshot, _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) throws(Status) -> any KeyCursor {
        if !TreeDelta.isOfTree(keyspace) {
            return try snapshot.scan(keyspace, range, reverse: reverse, values: values, dropping: dropping)
        }
        return try DeltaCursor(
            self, snapshot, keyspace, range, reverse: reverse, values: values, dropping: dropping)
    }

    func count(_ snapshot: any Snapshot, _ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        if !TreeDelta.isOfTree(keyspace) { return try snapshot.count(keyspace, range, limit: limit) }
        if range.isEmpty { return 0 }
        let staged = try snapshot.count(keyspace, delta.staged(range), limit: limit)
        if staged >= limit { return limit }
        if staged == 0, !hides[keyspace.rawValue] {
            let (lower, upper) = TreeDelta.clipped(range)
            return try snapshot.count(keyspace, KeyRange(lower: lower, upper: upper), limit: limit)
        }
        let cursor = try scan(snapshot, keyspace, range, reverse: false, values: false, dropping: 0)
        defer { cursor.close() }
        var count = 0
        while count < limit, try cursor.next() { count += 1 }
        return count
    }
}
