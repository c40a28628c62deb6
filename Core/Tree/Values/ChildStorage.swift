import Synchronization

/// The storage that copies of `Children` share. Immutable except for the hash, which is stored once it is computed.
final class ChildStorage: Sendable {
    typealias Element = Children.Element

    /// The maximum size of one chunk.
    static let chunkCountMax = 128
    /// The size of new chunks when many are made at once: it leaves capacity for more.
    static let chunkCountFilled = 96
    /// Smaller ones are joined with a neighbour.
    private static let chunkCountMin = 32

    enum Content: Sendable {
        case one([Element])
        /// Two or more chunks, none of them empty, and the position of each one's first element among all.
        case many([[Element]], starts: [Int])
    }

    let content: Content
    let count: Int
    /// Of an inner node with these children and without a priority.
    private let hash = AtomicLazyReference<CachedHash>()

    /// Nil for no elements.
    convenience init?(inOrder elements: [Element]) {
        if elements.isEmpty { return nil }
        if elements.count <= Self.chunkCountMax {
            self.init(.one(elements), count: elements.count)
            return
        }
        let chunks = stride(from: 0, to: elements.count, by: Self.chunkCountFilled).map { start in
            Array(elements[start..<min(start + Self.chunkCountFilled, elements.count)])
        }
        self.init(chunks, count: elements.count)
    }

    /// - Parameter chunks: in order, none of them empty or too large.
    convenience init(chunks: [[Element]]) { self.init(chunks, count: chunks.reduce(0) { $0 + $1.count }) }

    private init(_ content: Content, count: Int) {
        self.content = content
        self.count = count
    }

    private convenience init(_ chunks: [[Element]], count: Int) {
        if chunks.count == 1 {
            self.init(.one(chunks[0]), count: count)
            return
        }
        var starts: [Int] = []
        starts.reserveCapacity(chunks.count)
        var start = 0
        for chunk in chunks {
            starts.append(start)
            start += chunk.count
        }
        self.init(.many(chunks, starts: starts), count: count)
    }

    // MARK: Finding

    /// A chunk with the index at which a key is or would be.
    func find(_ key: TreeKey) -> (chunk: [Element], offset: Int) {
        switch content {
        case .one(let elements): return (elements, Self.offset(of: key, in: elements))
        case .many(let chunks, _):
            let chunk = chunks[Self.chunk(of: key, in: chunks)]
            return (chunk, Self.offset(of: key, in: chunk))
        }
    }

    func position(of key: TreeKey) -> Int {
        switch content {
        case .one(let elements): return Self.offset(of: key, in: elements)
        case .many(let chunks, let starts):
            let chunk = Self.chunk(of: key, in: chunks)
            return starts[chunk] + Self.offset(of: key, in: chunks[chunk])
        }
    }

    func element(at position: Int) -> Element {
        switch content {
        case .one(let elements): return elements[position]
        case .many(let chunks, let starts):
            var low = 0
            var high = starts.count
            while high - low > 1 {
                let middle = (low + high) / 2
                if starts[middle] <= position { low = middle } else { high = middle }
            }
            return chunks[low][position - starts[low]]
        }
    }

    /// The last chunk that doesn't begin behind a key; the first for a key before all.
    private static func chunk(of key: TreeKey, in chunks: [[Element]]) -> Int {
        var low = 0
        var high = chunks.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if chunks[middle][0].key <= key { low = middle } else { high = middle }
        }
        return low
    }

    private static func offset(of key: TreeKey, in elements: [Element]) -> Int {
        var low = 0
        var high = elements.count
        while low < high {
            let middle = (low + high) / 2
            if elements[middle].key < key { low = middle + 1 } else { high = middle }
        }
        return low
    }

    // MARK: Changing

    /// A copy with another child, or without one; nil when no child is left.
    func setting(_ key: TreeKey, to node: Node?) -> ChildStorage? {
        switch content {
        case .one(let elements):
            guard let changed = Self.setting(key, to: node, in: elements) else { return self }
            return ChildStorage(inOrder: changed)
        case .many(var chunks, var starts):
            let index = Self.chunk(of: key, in: chunks)
            let old = chunks[index]
            guard let changed = Self.setting(key, to: node, in: old) else { return self }
            chunks[index] = changed
            if changed.count > Self.chunkCountMax {
                let middle = changed.count / 2
                chunks.replaceSubrange(index...index, with: [Array(changed[..<middle]), Array(changed[middle...])])
            } else if changed.count < Self.chunkCountMin {
                Self.join(index, in: &chunks)
            }
            let more = changed.count - old.count
            guard chunks.count == starts.count else { return ChildStorage(chunks, count: count + more) }
            // Counting again would visit each of the chunks.
            if more != 0 { for later in index + 1..<starts.count { starts[later] += more } }
            return ChildStorage(.many(chunks, starts: starts), count: count + more)
        }
    }

    /// Nil when nothing changes.
    private static func setting(_ key: TreeKey, to node: Node?, in elements: [Element]) -> [Element]? {
        let offset = offset(of: key, in: elements)
        let isThere = offset < elements.count && elements[offset].key == key
        if node == nil, !isThere { return nil }
        var changed: [Element] = []
        changed.reserveCapacity(elements.count + 1)
        changed.append(contentsOf: elements[..<offset])
        if let node { changed.append((isThere ? elements[offset].key : key, node)) }
        changed.append(contentsOf: elements[(isThere ? offset + 1 : offset)...])
        return changed
    }

    /// Joins a small chunk with the one before or behind it where one chunk has capacity for both; an empty one is
    /// always removed.
    private static func join(_ index: Int, in chunks: inout [[Element]]) {
        let first = index > 0 ? index - 1 : index
        let count = chunks[first].count + chunks[first + 1].count
        guard chunks[index].isEmpty || count <= chunkCountFilled else { return }
        let joined = chunks[first] + chunks[first + 1]
        chunks.replaceSubrange(first...first + 1, with: [joined])
    }

    // MARK: The hash

    var cachedHash: CachedHash? { hash.load() }

    func store(_ hash: CachedHash) { _ = self.hash.storeIfNil(hash) }
}

/// A SHA-1 that is stored.
final class CachedHash: Sendable {
    let digest: SHA1Digest

    init(_ digest: SHA1Digest) { self.digest = digest }
}
