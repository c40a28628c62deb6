import HearthModel

/// The documents of a view in its query's order, with lookup by key.
///
/// A small change of a large set is cheap, also while the old set is still referenced. Documents are in sorted chunks
/// and in buckets by key, and only the changed ones are copied.
package struct DocumentSet: Sendable {
    private static var chunkCountMax: Int { 128 }
    private static var bucketLoadMax: Int { 32 }

    package let comparator: DocumentComparator
    /// No chunk is empty.
    private var chunks: [[ClientDocument]] = []
    /// By the hash of the key; the number of buckets is a power of two.
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
        var bucketCount = 1
        while bucketCount * Self.bucketLoadMax < count { bucketCount *= 2 }
        buckets = Array(repeating: [:], count: bucketCount)
        for document in documents { buckets[bucket(of: document.key)][document.key] = document }
    }

    package init(_ documents: some Sequence<ClientDocument>, comparator: DocumentComparator) {
        let documents = Array(documents)
        // Sorts positions instead of documents: moving documents costs more than comparing them.
        let order = documents.withUnsafeBufferPointer { documents in
            (0..<Int32(documents.count)).sorted { comparator.compare(documents[Int($0)], documents[Int($1)]) < 0 }
        }
        self.init(sorted: order.map { documents[Int($0)] }, comparator: comparator)
    }

    package subscript(key: ResourcePath) -> ClientDocument? { buckets[bucket(of: key)][key] }

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
        buckets[bucket(of: document.key)][document.key] = document
        count += 1
        if count > buckets.count * Self.bucketLoadMax * 2 { growBuckets() }
    }

    @discardableResult
    package mutating func remove(_ key: ResourcePath) -> ClientDocument? {
        guard let document = buckets[bucket(of: key)].removeValue(forKey: key) else { return nil }
        let (chunk, position, found) = slot(of: document)
        precondition(found, "the document is at the position of its order")
        chunks[chunk].remove(at: position)
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
    private func slot(of document: ClientDocument) -> (chunk: Int, position: Int, found: Bool) {
        if chunks.isEmpty { return (0, 0, false) }
        // The last chunk whose first document does not sort after the document.
        var low = 0
        var high = chunks.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if comparator.compare(chunks[middle][0], document) <= 0 { low = middle } else { high = middle }
        }
        let chunk = low
        low = 0
        high = chunks[chunk].count
        while low < high {
            let middle = (low + high) / 2
            let order = comparator.compare(chunks[chunk][middle], document)
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
