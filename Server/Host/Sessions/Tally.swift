/// A count for each key, and the key with the highest count. Every change takes constant time.
struct Tally {
    private var positions: [UInt64: (count: Int, index: Int)] = [:]
    /// At index `n`, the keys whose count is `n + 1`. The last bucket is never empty.
    private var buckets: [[UInt64]] = []

    var isEmpty: Bool { positions.isEmpty }

    /// One of the keys with the highest count.
    var largest: UInt64? { buckets.last?.first }

    func count(of key: UInt64) -> Int { positions[key]?.count ?? 0 }

    mutating func add(_ key: UInt64) { move(key, by: 1) }

    /// - Parameter key: a key whose count is not zero.
    mutating func remove(_ key: UInt64) { move(key, by: -1) }

    private mutating func move(_ key: UInt64, by change: Int) {
        var count = 0
        if let position = positions[key] {
            count = position.count
            takeOut(position.index, ofBucket: count - 1)
        }
        count += change
        if count > 0 {
            if buckets.count < count { buckets.append([]) }
            positions[key] = (count, buckets[count - 1].count)
            buckets[count - 1].append(key)
        } else {
            positions[key] = nil
        }
        while let last = buckets.last, last.isEmpty { buckets.removeLast() }
    }

    /// The last key of the bucket takes its position.
    private mutating func takeOut(_ index: Int, ofBucket bucket: Int) {
        let last = buckets[bucket].removeLast()
        guard index < buckets[bucket].count else { return }
        buckets[bucket][index] = last
        positions[last]?.index = index
    }
}
