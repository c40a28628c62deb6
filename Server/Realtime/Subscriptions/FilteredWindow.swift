import HearthTree

/// Which children of a place a query shows, kept up to date from what changes.
///
/// Known are the children that match the bounds, in the order of the query, from the side that the limit counts from: all of
/// them, or those up to an edge; the window is the first so many of the known. A few more than the limit are known, so that
/// a child that leaves seldom means to ask the index for another. Nothing beyond the edge can be in the window while as many
/// as the limit are known.
struct FilteredWindow: Sendable {
    struct Position: Equatable, Sendable {
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
        /// Has to be read anew: children of whom nothing is known may be in it. The keys are those from before; none when
        /// the limit is beyond `refillMax`.
        case unsound(keysBefore: [TreeKey])
    }

    /// Children that are read beyond a limit.
    static func reserve(for limit: Int) -> Int { min(limit, 100) + 10 }

    /// The greatest limit of a window that may be read anew where a commit is taken in.
    static let refillMax = 200

    private let limit: Int
    /// Whether children far behind the limit are kept: to find them again would mean a look at all.
    let keepsAll: Bool
    private var known: SortedPositions
    /// The last place up to which all is known; nil when everything is. What stands behind it doesn't concern the window.
    private(set) var edge: Position?

    /// - Parameters:
    ///   - positions: of children that match the bounds, in the order of the index.
    ///   - isComplete: whether these are all that match; otherwise they are those next to the limit's side.
    init(_ query: TreeQuery, positions: [Position], isComplete: Bool, keepsAll: Bool) {
        limit = query.limit ?? Int.max
        self.keepsAll = keepsAll
        bytesEach = Self.bytesEach(positions)
        known = SortedPositions(positions, isReversed: query.limit != nil && query.isLimitedToLast)
        edge = isComplete ? nil : known.last
    }

    /// Whether it is full, or everything is known.
    private var isSound: Bool { edge == nil || known.count >= limit }

    var keys: [TreeKey] { known.prefix(limit).map(\.key) }
    var isEmpty: Bool { known.isEmpty }
    /// Children that are kept.
    var count: Int { known.count }

    /// What a child that is kept takes, on the average of those that were read.
    private let bytesEach: Int
    /// What all of them take, roughly.
    var sizeBytes: Int { known.count * bytesEach }

    /// What a position takes beside its texts: a place in an array that has room to grow.
    static let bytesMin = 96

    private static func bytesEach(_ positions: [Position]) -> Int {
        let strings = positions.reduce(0) { sum, position in
            let value = if case .scalar(.string(let string)) = position.value { string.utf8.count } else { 0 }
            return sum + position.key.string.utf8.count + value
        }
        return bytesMin + strings / max(1, positions.count)
    }

    /// Elements of the order that were looked at or moved.
    var steps: Int { known.steps }

    /// Takes in where some children are now.
    /// - Parameter touched: each once.
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
        guard !keepsAll, limit != Int.max, known.count > limit + 2 * Self.reserve(for: limit) else { return }
        known.truncate(to: limit + Self.reserve(for: limit))
        edge = known.last
    }
}
