import HearthTree

/// The keys of children in the order of a query, in chunks: a change costs a binary search and moving a part of one
/// chunk.
struct SortedEntries {
    struct Entry {
        let value: TreeIndexValue
        let key: TreeKey

        static func compare(_ lhs: Entry, _ rhs: Entry) -> Int {
            let order = TreeIndexValue.compare(lhs.value, rhs.value)
            return order != 0 ? order : TreeKey.compare(lhs.key, rhs.key)
        }
    }

    private static let chunkCountMax = 128

    /// No chunk is empty.
    private var chunks: [[Entry]] = []
    private(set) var count = 0

    var first: Entry? { chunks.first?.first }
    var last: Entry? { chunks.last?.last }

    init() {}

    /// - Parameter entries: in order.
    init(inOrder entries: ArraySlice<Entry>) {
        let step = Self.chunkCountMax / 2
        chunks = stride(from: entries.startIndex, to: entries.endIndex, by: step).map {
            Array(entries[$0..<min($0 + step, entries.endIndex)])
        }
        count = entries.count
    }

    mutating func insert(_ entry: Entry) {
        count += 1
        guard !chunks.isEmpty else { return chunks = [[entry]] }
        let (chunk, offset) = position(of: entry)
        chunks[chunk].insert(entry, at: offset)
        if chunks[chunk].count > Self.chunkCountMax {
            let half = Array(chunks[chunk][(Self.chunkCountMax / 2)...])
            chunks[chunk].removeLast(half.count)
            chunks.insert(half, at: chunk + 1)
        }
    }

    mutating func remove(_ entry: Entry) {
        let (chunk, offset) = position(of: entry)
        guard chunk < chunks.count, offset < chunks[chunk].count, Entry.compare(chunks[chunk][offset], entry) == 0
        else { return }
        chunks[chunk].remove(at: offset)
        if chunks[chunk].isEmpty { chunks.remove(at: chunk) }
        count -= 1
    }

    /// The entry before the position of an entry, which need not exist.
    func before(_ entry: Entry) -> Entry? {
        let (chunk, offset) = position(of: entry)
        if offset > 0 { return chunks[chunk][offset - 1] }
        return chunk > 0 ? chunks[chunk - 1].last : nil
    }

    /// The position in the last chunk whose first entry is not after the entry.
    private func position(of entry: Entry) -> (chunk: Int, offset: Int) {
        var low = 0
        var high = chunks.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if Entry.compare(chunks[middle][0], entry) <= 0 { low = middle } else { high = middle }
        }
        guard low < chunks.count else { return (0, 0) }
        let chunk = low
        low = 0
        high = chunks[chunk].count
        while low < high {
            let middle = (low + high) / 2
            if Entry.compare(chunks[chunk][middle], entry) < 0 { low = middle + 1 } else { high = middle }
        }
        return (chunk, low)
    }
}
