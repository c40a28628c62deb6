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

/// Whether a value changed: an integer never equals a double, 0.0 is not -0.0, all NaN are equal.
package enum StrictEquality {
    package static func equal(_ lhs: Value, _ rhs: Value) -> Bool {
        switch (lhs, rhs) {
        case (.double(let left), .double(let right)): equal(left, right)
        case (.geoPoint(let left), .geoPoint(let right)):
            equal(left.latitude, right.latitude) && equal(left.longitude, right.longitude)
        case (.array(let left), .array(let right)):
            left.count == right.count && zip(left, right).allSatisfy { equal($0, $1) }
        case (.vector(let left), .vector(let right)):
            left.count == right.count && zip(left, right).allSatisfy { equal($0, $1) }
        case (.map(let left), .map(let right)): equal(left, right)
        default: lhs == rhs
        }
    }

    package static func equal(_ lhs: MapValue, _ rhs: MapValue) -> Bool {
        lhs.count == rhs.count
            && zip(lhs.fields, rhs.fields).allSatisfy { UTF8Order.equal($0.name, $1.name) && equal($0.value, $1.value) }
    }

    private static func equal(_ lhs: Double, _ rhs: Double) -> Bool {
        lhs.bitPattern == rhs.bitPattern || lhs.isNaN && rhs.isNaN
    }
}
