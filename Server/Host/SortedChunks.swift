/// Elements in order, in chunks: a change costs a look-up and a part of a chunk, however many there are. No two of them are
/// equal in the order.
package struct SortedChunks<Element: Sendable>: Sendable {
    @inlinable static var chunkCountMax: Int { 512 }

    @usableFromInline package let precedes: @Sendable (Element, Element) -> Bool
    /// None of them empty.
    @usableFromInline var chunks: [[Element]] = []
    @usableFromInline package internal(set) var count = 0
    /// Elements and chunks that were passed over or moved, for tests that count work.
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

    /// Those of some ranks, as far as there are any.
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

    /// Of the first that doesn't stand before `element`; behind the last chunk when there is none.
    @inlinable func place(of element: Element) -> (chunk: Int, offset: Int) {
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

    @inlinable func isAt(_ place: (chunk: Int, offset: Int), _ element: Element) -> Bool {
        place.chunk < chunks.count && !precedes(element, chunks[place.chunk][place.offset])
    }

    @inlinable package func contains(_ element: Element) -> Bool { isAt(place(of: element), element) }

    /// How many stand before an element.
    @inlinable package mutating func rank(of element: Element) -> Int {
        let place = place(of: element)
        steps += min(place.chunk, chunks.count - place.chunk)
        if place.chunk <= chunks.count / 2 { return chunks[..<place.chunk].reduce(place.offset) { $0 + $1.count } }
        return chunks[place.chunk...].reduce(count + place.offset) { $0 - $1.count }
    }

    /// Adds an element, if it isn't there.
    @inlinable package mutating func insert(_ element: Element) {
        var place = place(of: element)
        if isAt(place, element) { return }
        count += 1
        if place.chunk == chunks.count {
            guard !chunks.isEmpty else {
                chunks.append([element])
                return
            }
            place = (chunks.count - 1, chunks[chunks.count - 1].count)
        }
        steps += chunks[place.chunk].count - place.offset + 1
        chunks[place.chunk].insert(element, at: place.offset)
        guard chunks[place.chunk].count > Self.chunkCountMax else { return }
        let half = chunks[place.chunk].count / 2
        let second = Array(chunks[place.chunk][half...])
        chunks[place.chunk].removeSubrange(half...)
        chunks.insert(second, at: place.chunk + 1)
        steps += second.count + chunks.count - place.chunk
    }

    /// Takes an element out, if it is there.
    @inlinable package mutating func remove(_ element: Element) {
        let place = place(of: element)
        guard isAt(place, element) else { return }
        count -= 1
        steps += chunks[place.chunk].count - place.offset
        chunks[place.chunk].remove(at: place.offset)
        if chunks[place.chunk].isEmpty {
            chunks.remove(at: place.chunk)
            steps += chunks.count - place.chunk
        } else if place.chunk > 0, chunks[place.chunk].count + chunks[place.chunk - 1].count < Self.chunkCountMax / 2 {
            steps += chunks[place.chunk].count + chunks.count - place.chunk
            chunks[place.chunk - 1] += chunks[place.chunk]
            chunks.remove(at: place.chunk)
        }
    }

    /// Takes out all but the first so many.
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
