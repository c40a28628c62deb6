import HearthTree

/// Which children of a place a query shows, kept up to date from what changes.
///
/// Known are the children that match the bounds, in the order of the query, from the side that the limit counts from: all of
/// them, or those up to an edge; the window is the first so many of the known. A few more than the limit are known, so that
/// a child that leaves seldom means to ask the index for another. Nothing beyond the edge can be in the window while as many
/// as the limit are known.
struct FilteredWindow: Sendable {
    struct Position: Sendable {
        let value: TreeIndexValue
        let key: TreeKey

        init(value: TreeIndexValue, key: TreeKey) {
            self.value = Self.comparable(value)
            self.key = key
        }

        /// Numbers are compared as doubles everywhere, whatever an index has made of them.
        private static func comparable(_ value: TreeIndexValue) -> TreeIndexValue {
            if case .scalar(.integer(let number)) = value { return .scalar(.double(Double(number))) }
            return value
        }
    }

    /// A child that a change touches, with its values on the index; nil where it doesn't match the bounds or isn't there.
    struct Touched {
        var key: TreeKey
        var before: TreeIndexValue?
        var after: TreeIndexValue?
    }

    /// What a change has done to the window. Each key is in one of them.
    struct Difference: Equatable {
        var entering: [TreeKey] = []
        var leaving: [TreeKey] = []
        /// Were and are in the window, and have been touched.
        var staying: [TreeKey] = []
    }

    enum Outcome: Equatable {
        case changed(Difference)
        /// Has to be read anew: children of whom nothing is known may be in it. The keys are those from before.
        case unsound(keysBefore: [TreeKey])
    }

    /// Children that are read beyond a limit.
    static func reserve(for limit: Int) -> Int { min(limit, 100) + 10 }

    private let limit: Int
    private var known: SortedPositions
    /// The last place up to which all is known; nil when everything is.
    private var edge: Position?

    /// - Parameters:
    ///   - positions: of children that match the bounds, in the order of the index.
    ///   - isComplete: whether these are all that match; otherwise they are those next to the limit's side.
    init(_ query: TreeQuery, positions: [Position], isComplete: Bool) {
        limit = query.limit ?? Int.max
        known = SortedPositions(positions, isReversed: query.limit != nil && query.isLimitedToLast)
        edge = isComplete ? nil : known.last
    }

    /// Whether it is full, or everything is known.
    private var isSound: Bool { edge == nil || known.count >= limit }

    var keys: [TreeKey] { known.prefix(limit).map(\.key) }
    var isEmpty: Bool { known.isEmpty }
    /// Children that are kept.
    var count: Int { known.count }

    private func contains(_ key: TreeKey, _ value: TreeIndexValue?) -> Bool {
        guard let value, let rank = known.rank(of: Position(value: value, key: key)) else { return false }
        return rank < limit
    }

    /// Where some of the known children stand. Looks at all of them.
    func values(of keys: Set<TreeKey>) -> [TreeKey: TreeIndexValue] {
        var found: [TreeKey: TreeIndexValue] = [:]
        if !keys.isEmpty { known.forEach { if keys.contains($0.key) { found[$0.key] = $0.value } } }
        return found
    }

    /// Takes in where some children are now.
    /// - Parameter touched: each once.
    mutating func apply(_ touched: [Touched]) -> Outcome {
        let reach = touched.count
        let mayBecomeUnsound = edge != nil && known.count - reach < limit
        let keysBefore = mayBecomeUnsound ? keys : []
        let edgeBefore = membership(around: reach)
        let wereMembers = touched.map { contains($0.key, $0.before) }
        for child in touched { move(child) }
        guard isSound else { return .unsound(keysBefore: keysBefore) }
        var difference = Difference()
        for (child, wasMember) in zip(touched, wereMembers) {
            switch (wasMember, contains(child.key, child.after)) {
            case (true, true): difference.staying.append(child.key)
            case (true, false): difference.leaving.append(child.key)
            case (false, true): difference.entering.append(child.key)
            case (false, false): break
            }
        }
        // Others are pushed over the limit, or move up into the window, by no more places than children were touched.
        if !edgeBefore.isEmpty {
            let touchedKeys = Set(touched.map(\.key))
            for (key, isMember) in membership(around: reach) where !touchedKeys.contains(key) {
                guard let wasMember = edgeBefore[key], wasMember != isMember else { continue }
                if isMember { difference.entering.append(key) } else { difference.leaving.append(key) }
            }
        }
        trim()
        return .changed(difference)
    }

    /// What reading the window anew has changed.
    func difference(from keysBefore: [TreeKey], touched: Set<TreeKey>) -> Difference {
        let before = Set(keysBefore)
        let now = keys
        let members = Set(now)
        return Difference(
            entering: now.filter { !before.contains($0) }, leaving: keysBefore.filter { !members.contains($0) },
            staying: now.filter { before.contains($0) && touched.contains($0) })
    }

    // MARK: The known

    /// The children near the limit, and whether each is in the window; empty without a limit.
    private func membership(around reach: Int) -> [TreeKey: Bool] {
        guard limit < known.count + 1 + reach, limit != Int.max else { return [:] }
        var near: [TreeKey: Bool] = [:]
        let first = max(0, limit - 2 * reach)
        for index in first..<max(first, min(known.count, limit + 2 * reach)) { near[known[index].key] = index < limit }
        return near
    }

    private mutating func move(_ child: Touched) {
        if let before = child.before { known.remove(Position(value: before, key: child.key)) }
        guard let after = child.after else { return }
        let position = Position(value: after, key: child.key)
        if let edge, known.precedes(edge, position) { return }
        known.insert(position)
    }

    private mutating func trim() {
        guard edge != nil, limit != Int.max, known.count > limit + 2 * Self.reserve(for: limit) else { return }
        known.removeAll(from: limit + Self.reserve(for: limit))
        edge = known.last
    }
}

/// Positions in order, in chunks: a change costs a look-up, a chunk and a step for each chunk, however many there are.
struct SortedPositions: Sendable {
    typealias Position = FilteredWindow.Position

    private static let chunkCountMax = 512

    private let isReversed: Bool
    /// None of them empty.
    private var chunks: [[Position]] = []
    private(set) var count = 0

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

    subscript(index: Int) -> Position {
        var rest = index
        for chunk in chunks {
            if rest < chunk.count { return chunk[rest] }
            rest -= chunk.count
        }
        preconditionFailure("no position at \(index)")
    }

    func forEach(_ body: (Position) -> Void) {
        for chunk in chunks { for position in chunk { body(position) } }
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

    /// Of the first that doesn't stand before `position`; behind the last of a chunk at the very end only.
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

    /// How many stand before a position; nil when it isn't there.
    func rank(of position: Position) -> Int? {
        let place = place(of: position)
        guard isAt(place, position) else { return nil }
        return chunks[..<place.chunk].reduce(place.offset) { $0 + $1.count }
    }

    /// Adds a position that isn't there.
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
        chunks[place.chunk].insert(position, at: place.offset)
        guard chunks[place.chunk].count > Self.chunkCountMax else { return }
        let half = chunks[place.chunk].count / 2
        let second = Array(chunks[place.chunk][half...])
        chunks[place.chunk].removeSubrange(half...)
        chunks.insert(second, at: place.chunk + 1)
    }

    /// Takes a position out, if it is there.
    mutating func remove(_ position: Position) {
        let place = place(of: position)
        guard isAt(place, position) else { return }
        count -= 1
        chunks[place.chunk].remove(at: place.offset)
        if chunks[place.chunk].isEmpty {
            chunks.remove(at: place.chunk)
        } else if place.chunk > 0, chunks[place.chunk].count + chunks[place.chunk - 1].count < Self.chunkCountMax / 2 {
            chunks[place.chunk - 1] += chunks[place.chunk]
            chunks.remove(at: place.chunk)
        }
    }

    mutating func removeAll(from index: Int) {
        guard index < count else { return }
        var rest = index
        for (number, chunk) in chunks.enumerated() {
            if rest < chunk.count {
                chunks[number].removeSubrange(rest...)
                chunks.removeSubrange((rest > 0 ? number + 1 : number)...)
                break
            }
            rest -= chunk.count
        }
        count = index
    }
}
