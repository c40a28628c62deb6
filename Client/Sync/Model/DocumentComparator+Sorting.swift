import HearthModel

extension DocumentComparator {
    /// A document's position, and what decides most comparisons without a look at the document.
    private struct Entry {
        var weight: UInt64
        var position: Int32
    }

    /// Sorts positions instead of documents: moving documents costs more than comparing them.
    package func sorted(_ documents: [ClientDocument]) -> [ClientDocument] {
        precondition(documents.count <= Int(Int32.max), "a result fits into memory")
        var entries: [Entry] = []
        entries.reserveCapacity(documents.count)
        if isByKey, let prefix = Self.sharedPrefix(documents) {
            for (position, document) in documents.enumerated() {
                entries.append(
                    Entry(weight: Self.weight(document.key, skipping: prefix), position: Int32(position)))
            }
        } else {
            for position in documents.indices { entries.append(Entry(weight: 0, position: Int32(position))) }
        }
        let isReversed = isByKey && keyDirection == -1
        documents.withUnsafeBufferPointer { documents in
            entries.sort { left, right in
                if left.weight != right.weight { return (left.weight < right.weight) != isReversed }
                return compare(documents[Int(left.position)], documents[Int(right.position)]) < 0
            }
        }
        return entries.map { documents[Int($0.position)] }
    }

    /// The number of bytes with which the ids of all documents begin. nil when they are not of one collection, or when ids
    /// are numbers, which have an order of their own.
    private static func sharedPrefix(_ documents: [ClientDocument]) -> Int? {
        guard let first = documents.first?.key.segments, let firstID = first.last else { return nil }
        var shared = firstID.utf8.count
        for document in documents {
            let segments = document.key.segments
            guard segments.count == first.count, let id = segments.last, !ResourcePath.mayBeNumericID(id) else {
                return nil
            }
            for index in 0..<(first.count - 1) where !UTF8Order.equal(segments[index], first[index]) { return nil }
            if shared == 0 { continue }
            shared = withBytes(firstID) { firstID in
                withBytes(id) { id in
                    let limit = min(shared, id.count)
                    var count = 0
                    while count < limit, firstID[count] == id[count] { count += 1 }
                    return count
                }
            }
        }
        return shared
    }

    /// The eight bytes of the id after the shared ones. Where they are equal, the ids decide.
    private static func weight(_ key: ResourcePath, skipping count: Int) -> UInt64 {
        withBytes(key.segments[key.segments.count - 1]) { id in
            var weight: UInt64 = 0
            for index in count..<(count + 8) { weight = weight << 8 | (index < id.count ? UInt64(id[index]) : 0) }
            return weight
        }
    }

    @inline(__always)
    private static func withBytes<Result>(_ string: String, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        if let result = string.utf8.withContiguousStorageIfAvailable(body) { return result }
        return Array(string.utf8).withUnsafeBufferPointer(body)
    }
}
