/// Ordered elements, in chunks: a change costs a look-up and a part of a chunk, however many elements exist. No two of
/// them are equal in the order.
@usableFromInline package struct SortedChunks<Element: Sendable>: Sendable {
    @inlinable static var chunkCountMax: Int { 512 }

    @usableFromInline package let precedes: @Sendable (Element, Element) -> Bool
    /// Never empty.
    @usableFromInline var chunks: [[Element]] = []
    @usableFromInline package internal(set) var count = 0
    /// Elements and chunks that were passed or moved, for tests that count work.
    @usableFromInline package internal(set) var steps = 0

    /// - Parameter elements: in order.
    @inlinable package init(_ elements: [Element], precedes: @escaping @Sendable (Element, Element) -> Bool) {
        self.precedes = precedes
        count = elements.count
        let filled = Self.chunkCountMax * 3 / 4
        chunks = stride(from: 0, to: count, by: filled).map { Array(elements[$0..<min($0 + filled, count)]) }
    }

    @inlinable package var isEmpty: Bool { count == 0 }
    @inlinable package var last: Element? { chunks.last?.last }

    /// - Parameter index: less than `count`.
    @inlinable package mutating func at(_ index: Int) -> Element? {
        var found: Element?
        forEach(in: index..<index + 1) { found = $0 }
        return found
    }

    /// Iterates over the elements of some ranks, as far as they exist.
    @inlinable package mutating func forEach(in ranks: Range<Int>, _ body: (Element) -> Void) {
        let end = min(ranks.upperBound, count)
        guard ranks.lowerBound < end else { return }
        var (chunk, first) = (0, 0)
        if ranks.lowerBound <= count / 2 {
            while first + chunks[chunk].count <= ranks.lowerBound {
                first += chunks[chunk].count
                chunk += 1
            }
            steps += chunk
        } else {
            (chunk, first) = (chunks.count - 1, count - chunks[chunks.count - 1].count)
            while first > ranks.lowerBound {
                chunk -= 1
                first -= chunks[chunk].count
            }
            steps += chunks.count - chunk
        }
        var rank = ranks.lowerBound
        while rank < end {
            let inside = (rank - first)..<min(end - first, chunks[chunk].count)
            for element in chunks[chunk][inside] { body(element) }
            rank = first + inside.upperBound
            first += chunks[chunk].count
            chunk += 1
        }
        steps += end - ranks.lowerBound
    }

    @inlinable package func prefix(_ limit: Int) -> [Element] {
        var first: [Element] = []
        first.reserveCapacity(min(limit, count))
        for chunk in chunks where first.count < limit { first += chunk.prefix(limit - first.count) }
        return first
    }

    /// The index of the first element that does not precede `element`; behind the last chunk when there is none.
    @inlinable func index(of element: Element) -> (chunk: Int, offset: Int) {
        var (low, high) = (0, chunks.count)
        while low < high {
            let middle = (low + high) / 2
            if precedes(chunks[middle][chunks[middle].count - 1], element) { low = middle + 1 } else { high = middle }
        }
        guard low < chunks.count else { return (low, 0) }
        let chunk = low
        (low, high) = (0, chunks[chunk].count)
        while low < high {
            let middle = (low + high) / 2
            if precedes(chunks[chunk][middle], element) { low = middle + 1 } else { high = middle }
        }
        return (chunk, low)
    }

    @inlinable func isAt(_ index: (chunk: Int, offset: Int), _ element: Element) -> Bool {
        index.chunk < chunks.count && !precedes(element, chunks[index.chunk][index.offset])
    }

    @inlinable package func contains(_ element: Element) -> Bool { isAt(index(of: element), element) }

    /// The number of elements that precede `element`.
    @inlinable package mutating func rank(of element: Element) -> Int {
        let index = index(of: element)
        steps += min(index.chunk, chunks.count - index.chunk)
        if index.chunk <= chunks.count / 2 { return chunks[..<index.chunk].reduce(index.offset) { $0 + $1.count } }
        return chunks[index.chunk...].reduce(count + index.offset) { $0 - $1.count }
    }

    /// Adds an element if it is not present.
    @inlinable package mutating func insert(_ element: Element) {
        var index = index(of: element)
        if isAt(index, element) { return }
        count += 1
        if index.chunk == chunks.count {
            guard !chunks.isEmpty else {
                chunks.append([element])
                return
            }
            index = (chunks.count - 1, chunks[chunks.count - 1].count)
        }
        steps += chunks[index.chunk].count - index.offset + 1
        chunks[index.chunk].insert(element, at: index.offset)
        guard chunks[index.chunk].count > Self.chunkCountMax else { return }
        let half = chunks[index.chunk].count / 2
        let second = Array(chunks[index.chunk][half...])
        chunks[index.chunk].removeSubrange(half...)
        chunks.insert(second, at: index.chunk + 1)
        steps += second.count + chunks.count - index.chunk
    }

    /// Removes an element if it is present.
    @inlinable package mutating func remove(_ element: Element) {
        let index = index(of: element)
        guard isAt(index, element) else { return }
        count -= 1
        steps += chunks[index.chunk].count - index.offset
        chunks[index.chunk].remove(at: index.offset)
        if chunks[index.chunk].isEmpty {
            chunks.remove(at: index.chunk)
            steps += chunks.count - index.chunk
        } else if index.chunk > 0, chunks[index.chunk].count + chunks[index.chunk - 1].count < Self.chunkCountMax / 2 {
            steps += chunks[index.chunk].count + chunks.count - index.chunk
            chunks[index.chunk - 1] += chunks[index.chunk]
            chunks.remove(at: index.chunk)
        }
    }

    /// Removes all but the first `count` elements.
    @inlinable package mutating func truncate(to count: Int) {
        while self.count > count, let last = chunks.last {
            let more = min(last.count, self.count - count)
            if more == last.count {
                chunks.removeLast()
            } else {
                chunks[chunks.count - 1].removeLast(more)
            }
            self.count -= more
            steps += more
        }
    }
}
