import HearthTree

/// Positions in order, in chunks: a change costs a look-up and a part of a chunk, however many there are.
struct SortedPositions: Sendable {
    typealias Position = FilteredWindow.Position

    private static let chunkCountMax = 512

    private let isReversed: Bool
    /// None of them empty.
    private var chunks: [[Position]] = []
    private(set) var count = 0
    /// Positions and chunks that were passed over or moved, for tests that count work.
    private(set) var steps = 0

    /// - Parameter positions: in the order of the index, whichever direction is wanted.
    init(_ positions: [Position], isReversed: Bool) {
        self.isReversed = isReversed
        count = positions.count
        let ordered = isReversed ? positions.reversed() : positions
        let filled = Self.chunkCountMax * 3 / 4
        chunks = stride(from: 0, to: count, by: filled).map { Array(ordered[$0..<min($0 + filled, count)]) }
    }

    var isEmpty: Bool { count == 0 }
    var last: Position? { chunks.last?.last }

    /// - Parameter index: less than `count`.
    mutating func at(_ index: Int) -> Position? {
        var found: Position?
        forEach(in: index..<index + 1) { found = $0 }
        return found
    }

    /// Those of some ranks, as far as there are any.
    mutating func forEach(in ranks: Range<Int>, _ body: (Position) -> Void) {
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
            for position in chunks[chunk][inside] { body(position) }
            rank = first + inside.upperBound
            first += chunks[chunk].count
            chunk += 1
        }
        steps += end - ranks.lowerBound
    }

    func prefix(_ limit: Int) -> [Position] {
        var first: [Position] = []
        first.reserveCapacity(min(limit, count))
        for chunk in chunks where first.count < limit { first += chunk.prefix(limit - first.count) }
        return first
    }

    func precedes(_ lhs: Position, _ rhs: Position) -> Bool {
        let (left, right) = isReversed ? (rhs, lhs) : (lhs, rhs)
        let order = TreeIndexValue.compare(left.value, right.value)
        return order != 0 ? order < 0 : left.key < right.key
    }

    /// Of the first that doesn't stand before `position`; behind the last chunk when there is none.
    private func place(of position: Position) -> (chunk: Int, offset: Int) {
        var (low, high) = (0, chunks.count)
        while low < high {
            let middle = (low + high) / 2
            if precedes(chunks[middle][chunks[middle].count - 1], position) { low = middle + 1 } else { high = middle }
        }
        guard low < chunks.count else { return (low, 0) }
        let chunk = low
        (low, high) = (0, chunks[chunk].count)
        while low < high {
            let middle = (low + high) / 2
            if precedes(chunks[chunk][middle], position) { low = middle + 1 } else { high = middle }
        }
        return (chunk, low)
    }

    private func isAt(_ place: (chunk: Int, offset: Int), _ position: Position) -> Bool {
        place.chunk < chunks.count && !precedes(position, chunks[place.chunk][place.offset])
    }

    func contains(_ position: Position) -> Bool { isAt(place(of: position), position) }

    /// Adds a position, if it isn't there.
    mutating func insert(_ position: Position) {
        var place = place(of: position)
        if isAt(place, position) { return }
        count += 1
        if place.chunk == chunks.count {
            guard !chunks.isEmpty else {
                chunks.append([position])
                return
            }
            place = (chunks.count - 1, chunks[chunks.count - 1].count)
        }
        steps += chunks[place.chunk].count - place.offset + 1
        chunks[place.chunk].insert(position, at: place.offset)
        guard chunks[place.chunk].count > Self.chunkCountMax else { return }
        let half = chunks[place.chunk].count / 2
        let second = Array(chunks[place.chunk][half...])
        chunks[place.chunk].removeSubrange(half...)
        chunks.insert(second, at: place.chunk + 1)
        steps += second.count + chunks.count - place.chunk
    }

    /// Takes a position out, if it is there.
    mutating func remove(_ position: Position) {
        let place = place(of: position)
        guard isAt(place, position) else { return }
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
    mutating func truncate(to count: Int) {
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
