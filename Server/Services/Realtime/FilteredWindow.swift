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

    private let isReversed: Bool
    private let limit: Int
    private var known: [Position]
    private var values: [TreeKey: TreeIndexValue]
    /// The last place up to which all is known; nil when everything is.
    private var edge: Position?

    /// - Parameters:
    ///   - positions: of children that match the bounds, in the order of the index.
    ///   - isComplete: whether these are all that match; otherwise they are those next to the limit's side.
    init(_ query: TreeQuery, positions: [Position], isComplete: Bool) {
        isReversed = query.limit != nil && query.isLimitedToLast
        limit = query.limit ?? Int.max
        known = isReversed ? positions.reversed() : positions
        values = Dictionary(minimumCapacity: positions.count)
        for position in known { values[position.key] = position.value }
        edge = isComplete ? nil : known.last
    }

    /// Whether it is full, or everything is known.
    private var isSound: Bool { edge == nil || known.count >= limit }

    var keys: [TreeKey] { known.prefix(limit).map(\.key) }
    var isEmpty: Bool { known.isEmpty }

    func contains(_ key: TreeKey) -> Bool {
        guard let value = values[key] else { return false }
        return limit == Int.max || place(of: Position(value: value, key: key)) < limit
    }

    /// Takes in where some children are now.
    /// - Parameter touched: each once, with its value on the index; nil when it doesn't match the bounds or is gone.
    mutating func apply(_ touched: [(key: TreeKey, value: TreeIndexValue?)]) -> Outcome {
        let reach = touched.count
        let mayBecomeUnsound = edge != nil && known.count - reach < limit
        let keysBefore = mayBecomeUnsound ? keys : []
        let edgeBefore = membership(around: reach)
        var wereMembers = Set<TreeKey>()
        for (key, _) in touched where contains(key) { wereMembers.insert(key) }
        for (key, value) in touched { move(key, to: value) }
        guard isSound else { return .unsound(keysBefore: keysBefore) }
        var difference = Difference()
        for (key, _) in touched {
            switch (wereMembers.contains(key), contains(key)) {
            case (true, true): difference.staying.append(key)
            case (true, false): difference.leaving.append(key)
            case (false, true): difference.entering.append(key)
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

    private mutating func move(_ key: TreeKey, to value: TreeIndexValue?) {
        if let old = values.removeValue(forKey: key) { known.remove(at: place(of: Position(value: old, key: key))) }
        guard let value else { return }
        let position = Position(value: value, key: key)
        if let edge, precedes(edge, position) { return }
        known.insert(position, at: place(of: position))
        values[key] = position.value
    }

    private mutating func trim() {
        guard edge != nil, limit != Int.max, known.count > limit + 2 * Self.reserve(for: limit) else { return }
        for position in known[(limit + Self.reserve(for: limit))...] { values[position.key] = nil }
        known.removeSubrange((limit + Self.reserve(for: limit))...)
        edge = known.last
    }

    /// Of the first that doesn't stand before `position`.
    private func place(of position: Position) -> Int {
        var low = 0
        var high = known.count
        while low < high {
            let middle = (low + high) / 2
            if precedes(known[middle], position) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private func precedes(_ lhs: Position, _ rhs: Position) -> Bool {
        let (left, right) = isReversed ? (rhs, lhs) : (lhs, rhs)
        let order = TreeIndexValue.compare(left.value, right.value)
        return order != 0 ? order < 0 : left.key < right.key
    }
}
