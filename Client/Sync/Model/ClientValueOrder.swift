import HearthModel

/// Firestore's order of values, with one more type: pending server timestamps sort between timestamps and strings.
package enum ClientValueOrder {
    /// Twice the rank of the type's class, so that another rank fits between two of them.
    private static func rank(_ value: Value) -> Int {
        if case .map(let map) = value, PendingServerTimestamp.isPending(map) { return pendingRank }
        return ValueOrder.typeClass(of: value).rawValue * 2
    }

    private static var pendingRank: Int { ValueOrder.TypeClass.timestamp.rawValue * 2 + 1 }

    /// Whether the filters `<`, `<=`, `>` and `>=` compare these two.
    static func areComparable(_ lhs: Value, _ rhs: Value) -> Bool { rank(lhs) == rank(rhs) }

    /// Negative, zero or positive, as `lhs` sorts before, equal to or after `rhs`.
    package static func compare(_ lhs: Value, _ rhs: Value) -> Int {
        switch (lhs, rhs) {
        case (.array(let left), .array(let right)):
            for (x, y) in zip(left, right) {
                let order = compare(x, y)
                if order != 0 { return order }
            }
            return left.count - right.count
        case (.map(let left), .map(let right)):
            let ranks = rank(lhs) - rank(rhs)
            if ranks != 0 { return ranks }
            if let first = PendingServerTimestamp(lhs), let second = PendingServerTimestamp(rhs) {
                return first.localWriteTime < second.localWriteTime
                    ? -1 : first.localWriteTime == second.localWriteTime ? 0 : 1
            }
            return compareMaps(left, right)
        case (.map, _), (_, .map): return rank(lhs) - rank(rhs)
        default: return ValueOrder.compare(lhs, rhs)
        }
    }

    /// 3 and 3.0 are equivalent. The server uses this equality in `in`, `not-in`, array filters and array transforms.
    package static func equivalent(_ lhs: Value, _ rhs: Value) -> Bool { compare(lhs, rhs) == 0 }

    private static func compareMaps(_ lhs: MapValue, _ rhs: MapValue) -> Int {
        for (x, y) in zip(lhs.fields, rhs.fields) {
            let names = UTF8Order.compare(x.name, y.name)
            if names != 0 { return names }
            let values = compare(x.value, y.value)
            if values != 0 { return values }
        }
        return lhs.count - rhs.count
    }
}
