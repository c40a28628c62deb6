import HearthModel
import HearthEngine
import HearthTree

/// A walk over the entries of one location's children in an index, within a query's bounds, in the direction of its
/// limit.
struct EntryWalk {
    /// The first bytes of all entries; the value follows, then the child's key.
    let prefix: [UInt8]
    let query: TreeQuery
    let snapshot: any Snapshot
    /// Reads the order value of a child from the tree: for entries that only contain its beginning.
    let lookUp: (TreeKey) throws(Status) -> TreeIndexValue
    /// The number of entries that may be read.
    let reads: WindowReads

    typealias Found = (key: TreeKey, value: TreeIndexValue)

    /// The first `limit` of them, from the side of the limit.
    func take(_ limit: Int) throws(Status) -> [Found] {
        let range = query.entries(behind: prefix)
        if range.isEmpty { return [] }
        let cursor = try snapshot.scan(
            .entries, range, reverse: query.isLimitedToLast, values: false, dropping: prefix.count)
        defer { cursor.close() }
        var found: [Found] = []
        // Entries with the same beginning of a long string, which have no order among themselves.
        var run: [Found] = []
        var runValue: ArraySlice<UInt8> = []
        func finishRun() {
            run.sort {
                let order = TreeIndexValue.compare($0.value, $1.value)
                return order != 0 ? order < 0 : $0.key < $1.key
            }
            found += query.isLimitedToLast ? run.reversed() : run
            run = []
        }
        while found.count < limit, try cursor.next() {
            try reads.count()
            let bytes = cursor.key
            let (end, isCut) = try IndexCode.end(of: bytes, from: 0)
            if !run.isEmpty, bytes[..<end] != runValue {
                finishRun()
                if found.count >= limit { break }
            }
            let key = try PathCode.lastKey(of: bytes, from: end)
            let value = isCut ? try lookUp(key) : try IndexCode.value(bytes[..<end])
            guard query.contains(key, value: value) else { continue }
            if found.count + run.count >= reads.keysMax { throw SubtreeWalk.tooLarge }
            if isCut {
                runValue = bytes[..<end]
                run.append((key, value))
            } else {
                found.append((key, value))
            }
        }
        finishRun()
        return found.count > limit ? Array(found.prefix(limit)) : found
    }
}
