import HearthTree

/// The children of a location that a query contains, updated with each change.
///
/// The known children are those that match the bounds, in the order of the query, from the side of its limit: all of
/// them, or those up to an edge. The window is the first `limit` of the known children. A few more children than the
/// limit are known, so that a child that is removed seldom requires a read of the index. No child beyond the edge can
/// be in the window while at least `limit` children are known.
struct FilteredWindow: Sendable {
    struct Position: Equatable, Sendable {
        let value: TreeIndexValue
        let key: TreeKey

        init(value: TreeIndexValue, key: TreeKey) {
            self.value = Self.comparable(value)
            self.key = key
        }

        /// Numbers are compared as doubles everywhere, whatever their encoding in an index is.
        private static func comparable(_ value: TreeIndexValue) -> TreeIndexValue {
            if case .scalar(.integer(let number)) = value { return .scalar(.double(Double(number))) }
            return value
        }
    }

    /// A child that a change touches, with its values on the index; nil where it doesn't match the bounds or doesn't
    /// exist.
    struct Touched {
        var key: TreeKey
        var before: TreeIndexValue?
        var after: TreeIndexValue?
    }

    /// The effect of a change on the window. Each key is in one of the lists.
    struct Difference: Equatable {
        var entering: [TreeKey] = []
        var leaving: [TreeKey] = []
        /// Were in the window before and after, and have been touched.
        var staying: [TreeKey] = []

        init(entering: [TreeKey] = [], leaving: [TreeKey] = [], staying: [TreeKey] = []) {
            self.entering = entering
            self.leaving = leaving
            self.staying = staying
        }

        /// Of a query whose result contains every child that matches.
        init(withoutLimit touched: [Touched]) {
            for child in touched {
                switch (child.before != nil, child.after != nil) {
                case (true, true): staying.append(child.key)
                case (true, false): leaving.append(child.key)
                case (false, true): entering.append(child.key)
                case (false, false): break
                }
            }
        }
    }

    enum Outcome: Equatable {
        case changed(Difference)
        /// The window must be read again: unknown children may be in it. The keys are those from before; none when the
        /// limit is above `refillMax`.
        case unsound(keysBefore: [TreeKey])
    }

    /// The children that are read beyond a limit.
    static func reserve(for limit: Int) -> Int { min(limit, 100) + 10 }

    /// The same for a window that is found by a scan of very many children.
    static let scannedReserve = 10_000

    /// The greatest limit of a window that may be read again while a commit is applied.
    static let refillMax = 200

    private let limit: Int
    private let reserve: Int
    /// Whether children far behind the limit are kept: finding them again would require a scan of all children.
    let keepsAll: Bool
    private var known: SortedPositions
    /// The last position up to which all children are known; nil when all are known. Positions behind it don't affect
    /// the window.
    private(set) var edge: Position?

    /// - Parameters:
    ///   - positions: of children that match the bounds, in the order of the index.
    ///   - isComplete: whether these are all that match; otherwise they are those next to the limit's side.
    ///   - reserve: the number of children that are kept beyond the limit; nil for the usual one.
    init(_ query: TreeQuery, positions: [Position], isComplete: Bool, keepsAll: Bool, reserve: Int? = nil) {
        limit = query.limit ?? Int.max
        self.reserve = reserve ?? Self.reserve(for: limit)
        self.keepsAll = keepsAll
        bytesEach = Self.bytesEach(positions)
        known = SortedPositions(positions, isReversed: query.limit != nil && query.isLimitedToLast)
        edge = isComplete ? nil : known.last
    }

    /// Whether it is full, or all children are known.
    private var isSound: Bool { edge == nil || known.count >= limit }

    var keys: [TreeKey] { known.prefix(limit).map(\.key) }
    var isEmpty: Bool { known.isEmpty }
    /// The number of children that are kept.
    var count: Int { known.count }

    /// The average memory of a child among those that were read.
    private let bytesEach: Int
    /// The approximate memory of all of them.
    var sizeBytes: Int { known.count * bytesEach }

    /// The memory of a position in addition to its strings: an element of an array with spare capacity.
    static let bytesMin = 96

    private static func bytesEach(_ positions: [Position]) -> Int {
        let strings = positions.reduce(0) { sum, position in
            let value = if case .scalar(.string(let string)) = position.value { string.utf8.count } else { 0 }
            return sum + position.key.string.utf8.count + value
        }
        return bytesMin + strings / max(1, positions.count)
    }

    /// The number of elements that were compared or moved.
    var steps: Int { known.steps }

    /// Applies the present positions of some children.
    /// - Parameter touched: each child at most once.
    mutating func apply(_ touched: [Touched]) -> Outcome {
        let reach = touched.count
        let mayBecomeUnsound = edge != nil && known.count - reach < limit
        let keysBefore = mayBecomeUnsound && limit <= Self.refillMax ? keys : []
        let edgeBefore = membership(around: reach)
        let lastBefore = lastMember
        let wereMembers = touched.map { contains($0.key, $0.before, upTo: lastBefore) }
        for child in touched { move(child) }
        guard isSound else { return .unsound(keysBefore: keysBefore) }
        var difference = Difference()
        let lastAfter = lastMember
        for (child, wasMember) in zip(touched, wereMembers) {
            switch (wasMember, contains(child.key, child.after, upTo: lastAfter)) {
            case (true, true): difference.staying.append(child.key)
            case (true, false): difference.leaving.append(child.key)
            case (false, true): difference.entering.append(child.key)
            case (false, false): break
            }
        }
        // Other children cross the limit by no more positions than the number of touched children.
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

    /// The changes that a new read of the window has found.
    func difference(from keysBefore: [TreeKey], touched: Set<TreeKey>) -> Difference {
        let before = Set(keysBefore)
        let now = keys
        let members = Set(now)
        return Difference(
            entering: now.filter { !before.contains($0) }, leaving: keysBefore.filter { !members.contains($0) },
            staying: now.filter { before.contains($0) && touched.contains($0) })
    }

    // MARK: The known children

    /// The last child within the limit, when there are others behind it.
    private var lastMember: Position? {
        mutating get { known.count > limit ? known.at(limit - 1) : nil }
    }

    private func contains(_ key: TreeKey, _ value: TreeIndexValue?, upTo last: Position?) -> Bool {
        guard let value else { return false }
        let position = Position(value: value, key: key)
        if let last, known.precedes(last, position) { return false }
        return known.contains(position)
    }

    /// The children near the limit, and whether each is in the window; empty without a limit.
    private mutating func membership(around reach: Int) -> [TreeKey: Bool] {
        guard limit != Int.max, limit < known.count + 1 + reach else { return [:] }
        let limit = limit
        var near: [TreeKey: Bool] = [:]
        var index = max(0, limit - 2 * reach)
        known.forEach(in: index..<limit + 2 * reach) {
            near[$0.key] = index < limit
            index += 1
        }
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
        guard !keepsAll, limit != Int.max, known.count > limit + 2 * reserve else { return }
        known.truncate(to: limit + reserve)
        edge = known.last
    }
}
