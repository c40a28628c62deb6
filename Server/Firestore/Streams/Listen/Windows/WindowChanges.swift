/// Documents that entered, left or changed in a window, for clients that know an earlier version. Bounded: a client
/// with an older version has its whole window compared.
struct WindowChanges {
    private var changes: [(version: Int64, key: [UInt8])] = []
    private var keyBytes = 0
    /// All changes after this version are known.
    private(set) var from: Int64
    /// The version of the latest change.
    private(set) var latest: Int64

    private static let countMax = 512
    private static let keyBytesMax = 64 << 10
    /// Approximate memory.
    var sizeBytes: Int { keyBytes + 64 * changes.count }

    init(from version: Int64) {
        from = version
        latest = version
    }

    mutating func note(_ keys: [[UInt8]], _ version: Int64) {
        if keys.isEmpty { return }
        latest = max(latest, version)
        for key in keys {
            changes.append((version, key))
            keyBytes += key.count
        }
        guard changes.count > Self.countMax || keyBytes > Self.keyBytesMax else { return }
        var left = max(changes.count / 2, changes.count - Self.countMax)
        var leftBytes = changes[..<left].reduce(0) { $0 + $1.key.count }
        while keyBytes - leftBytes > Self.keyBytesMax {
            leftBytes += changes[left].key.count
            left += 1
        }
        from = changes[left - 1].version
        keyBytes -= leftBytes
        changes.removeFirst(left)
    }

    /// Each key once; nil when the changes are unknown.
    func keys(after version: Int64) -> [[UInt8]]? {
        if version < from { return nil }
        var keys: [[UInt8]] = []
        var taken: Set<[UInt8]> = []
        for change in changes.reversed() {
            if change.version <= version { break }
            if taken.insert(change.key).inserted { keys.append(change.key) }
        }
        return keys
    }
}
