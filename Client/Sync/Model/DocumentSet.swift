import HearthModel

/// The documents of a view in its query's order, with lookup by key.
///
/// A small change of a large set is cheap, also while the old set is still referenced. Documents are in sorted chunks
/// and, unless they are sorted by key, in buckets by key; only the changed ones are copied.
package struct DocumentSet: Sendable {
    private static var chunkCountMax: Int { 128 }
    private static var bucketLoadMax: Int { 32 }
    private typealias Slot = (chunk: Int, position: Int, found: Bool)

    package let comparator: DocumentComparator
    /// No chunk is empty.
    private var chunks: [[ClientDocument]] = []
    /// By the hash of the key; the number of buckets is a power of two. Unused in an order by key.
    private var buckets: [[ResourcePath: ClientDocument]] = [[:]]
    package private(set) var count = 0

    /// - Parameter documents: in the comparator's order.
    package init(sorted documents: [ClientDocument] = [], comparator: DocumentComparator = .byKey) {
        self.comparator = comparator
        count = documents.count
        var start = 0
        while start < documents.count {
            // Half full, so that the first insertions do not split every chunk.
            let end = Swift.min(start + Self.chunkCountMax / 2, documents.count)
            chunks.append(Array(documents[start..<end]))
            start = end
        }
        if comparator.isByKey { return }
        var bucketCount = 1
        while bucketCount * Self.bucketLoadMax < count { bucketCount *= 2 }
        buckets = Array(repeating: [:], count: bucketCount)
        for document in documents { buckets[bucket(of: document.key)][document.key] = document }
    }

    package init(_ documents: some Sequence<ClientDocument>, comparator: DocumentComparator) {
        self.init(sorted: comparator.sorted(Array(documents)), comparator: comparator)
    }

    package subscript(key: ResourcePath) -> ClientDocument? {
        if !comparator.isByKey { return buckets[bucket(of: key)][key] }
        let (chunk, position, found) = slot { comparator.compare($0, toKey: key) }
        return found ? chunks[chunk][position] : nil
    }

    package func contains(_ key: ResourcePath) -> Bool { self[key] != nil }

    /// All documents in order. Each call makes a new array.
    package var documents: [ClientDocument] { Array(chunks.joined()) }

    /// The position of a document in the order; nil when the set does not contain it.
    package func index(of key: ResourcePath) -> Int? {
        guard let document = self[key] else { return nil }
        let (chunk, position, found) = slot(of: document)
        precondition(found, "the document is at the position of its order")
        return chunks[..<chunk].reduce(0) { $0 + $1.count } + position
    }

    // MARK: Changing

    /// Adds a document, or replaces the one with its key.
    package mutating func insert(_ document: ClientDocument) {
        remove(document.key)
        let (chunk, position, _) = slot(of: document)
        if chunks.isEmpty {
            chunks.append([document])
        } else {
            chunks[chunk].insert(document, at: position)
            if chunks[chunk].count > Self.chunkCountMax { split(chunk) }
        }
        count += 1
        if comparator.isByKey { return }
        buckets[bucket(of: document.key)][document.key] = document
        if count > buckets.count * Self.bucketLoadMax * 2 { growBuckets() }
    }

    @discardableResult
    package mutating func remove(_ key: ResourcePath) -> ClientDocument? {
        let slot: Slot
        if comparator.isByKey {
            slot = self.slot { comparator.compare($0, toKey: key) }
            guard slot.found else { return nil }
        } else {
            guard let document = buckets[bucket(of: key)].removeValue(forKey: key) else { return nil }
            slot = self.slot(of: document)
            precondition(slot.found, "the document is at the position of its order")
        }
        let chunk = slot.chunk
        let document = chunks[chunk].remove(at: slot.position)
        if chunks[chunk].isEmpty { chunks.remove(at: chunk) }
        count -= 1
        return document
    }

    private mutating func split(_ chunk: Int) {
        let middle = chunks[chunk].count / 2
        let upper = Array(chunks[chunk][middle...])
        chunks[chunk].removeSubrange(middle...)
        chunks.insert(upper, at: chunk + 1)
    }

    private mutating func growBuckets() {
        let old = buckets
        buckets = Array(repeating: [:], count: old.count * 2)
        for (key, document) in old.joined() { buckets[bucket(of: key)][key] = document }
    }

    private func bucket(of key: ResourcePath) -> Int {
        buckets.count == 1 ? 0 : (key.hashValue >> 32) & (buckets.count - 1)
    }

    /// The position at which a document is or would be inserted.
    private func slot(of document: ClientDocument) -> Slot { slot { comparator.compare($0, document) } }

    /// - Parameter compare: negative, zero or positive, as a document of the set is before, at or after the position.
    private func slot(_ compare: (ClientDocument) -> Int) -> Slot {
        if chunks.isEmpty { return (0, 0, false) }
        // The last chunk whose first document does not sort after the document.
        var low = 0
        var high = chunks.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if compare(chunks[middle][0]) <= 0 { low = middle } else { high = middle }
        }
        let chunk = low
        low = 0
        high = chunks[chunk].count
        while low < high {
            let middle = (low + high) / 2
            let order = compare(chunks[chunk][middle])
            if order == 0 { return (chunk, middle, true) }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return (chunk, low, false)
    }
}

extension DocumentSet: RandomAccessCollection {
    package var startIndex: Int { 0 }
    package var endIndex: Int { count }

    /// Traverses the chunks. Iterate instead when you need all documents.
    package subscript(position: Int) -> ClientDocument {
        precondition(position >= 0 && position < count, "the position must be in the set")
        var rest = position
        for chunk in chunks {
            if rest < chunk.count { return chunk[rest] }
            rest -= chunk.count
        }
        preconditionFailure("the chunks contain all documents of the set")
    }

    package func makeIterator() -> FlattenSequence<[[ClientDocument]]>.Iterator { chunks.joined().makeIterator() }

    package var first: ClientDocument? { chunks.first?.first }
    package var last: ClientDocument? { chunks.last?.last }
}

extension DocumentSet: Equatable {
    package static func == (lhs: DocumentSet, rhs: DocumentSet) -> Bool {
        lhs.count == rhs.count && lhs.elementsEqual(rhs)
    }
}
