/// Firestore's total order over values of all types.
///
/// null < booleans < NaN < numbers < timestamps < strings < bytes < references < geo points < arrays < vectors < maps.
/// Source: "Value type ordering" of the Firestore documentation. Two values that compare as equal are *equivalent*: 3
/// and 3.0, 0 and -0.0, any two NaN.
@usableFromInline package enum ValueOrder {
    /// The classes within which the filters `<`, `<=`, `>`, `>=` compare, in their order.
    @usableFromInline package enum TypeClass: Int, Comparable, Sendable {
        case null, boolean, nan, number, timestamp, string, bytes, reference, geoPoint, array, vector, map

        @inlinable package static func < (lhs: TypeClass, rhs: TypeClass) -> Bool { lhs.rawValue < rhs.rawValue }
    }

    package static func typeClass(of value: Value) -> TypeClass {
        switch value {
        case .null: .null
        case .boolean: .boolean
        case .integer: .number
        case .double(let number): number.isNaN ? .nan : .number
        case .timestamp: .timestamp
        case .string: .string
        case .bytes: .bytes
        case .reference: .reference
        case .geoPoint: .geoPoint
        case .array: .array
        case .vector: .vector
        case .map: .map
        }
    }

    /// Negative, zero or positive, as `lhs` sorts before, equal to or after `rhs`.
    @usableFromInline package static func compare(_ lhs: Value, _ rhs: Value) -> Int {
        let left = typeClass(of: lhs)
        let right = typeClass(of: rhs)
        if left != right { return left.rawValue - right.rawValue }
        switch (lhs, rhs) {
        case (.boolean(let left), .boolean(let right)): return (left ? 1 : 0) - (right ? 1 : 0)
        case (.timestamp(let left), .timestamp(let right)): return sign(left, right)
        case (.string(let left), .string(let right)): return UTF8Order.compare(left, right)
        case (.bytes(let left), .bytes(let right)): return UTF8Order.compare(left, right)
        case (.reference(let left), .reference(let right)): return compareNames(left, right)
        case (.geoPoint(let left), .geoPoint(let right)):
            let order = compareNumbers(.double(left.latitude), .double(right.latitude))
            return order != 0 ? order : compareNumbers(.double(left.longitude), .double(right.longitude))
        case (.array(let left), .array(let right)): return compareArrays(left, right)
        case (.vector(let left), .vector(let right)):
            if left.count != right.count { return left.count - right.count }
            for (x, y) in zip(left, right) {
                let order = compare(.double(x), .double(y))
                if order != 0 { return order }
            }
            return 0
        case (.map(let left), .map(let right)): return compareMaps(left, right)
        default: return left == .null || left == .nan ? 0 : compareNumbers(lhs, rhs)
        }
    }

    @inlinable package static func equivalent(_ lhs: Value, _ rhs: Value) -> Bool { compare(lhs, rhs) == 0 }

    private static func sign<T: Comparable>(_ lhs: T, _ rhs: T) -> Int { lhs < rhs ? -1 : lhs == rhs ? 0 : 1 }

    /// Compares int64 and double by their exact mathematical values; neither may be NaN.
    private static func compareNumbers(_ lhs: Value, _ rhs: Value) -> Int {
        switch (lhs, rhs) {
        case (.integer(let left), .integer(let right)): return sign(left, right)
        case (.double(let left), .double(let right)): return sign(left, right)
        case (.integer(let left), .double(let right)): return compare(left, right)
        case (.double(let left), .integer(let right)): return -compare(right, left)
        default: return 0
        }
    }

    private static func compare(_ integer: Int64, _ double: Double) -> Int {
        if double >= 0x1p63 { return -1 }
        if double < -0x1p63 { return 1 }
        let whole = Int64(double)  // towards zero, exact within the range
        if integer != whole { return integer < whole ? -1 : 1 }
        let fraction = double - Double(whole)
        return fraction > 0 ? -1 : fraction < 0 ? 1 : 0
    }

    private static func compareArrays(_ lhs: [Value], _ rhs: [Value]) -> Int {
        for (x, y) in zip(lhs, rhs) {
            let order = compare(x, y)
            if order != 0 { return order }
        }
        return lhs.count - rhs.count
    }

    private static func compareMaps(_ lhs: MapValue, _ rhs: MapValue) -> Int {
        for (x, y) in zip(lhs.fields, rhs.fields) {
            let names = UTF8Order.compare(x.name, y.name)
            if names != 0 { return names }
            let values = compare(x.value, y.value)
            if values != 0 { return values }
        }
        return lhs.count - rhs.count
    }

    /// Compares two document names segment by segment; numeric ids sort before strings.
    package static func compareNames(_ lhs: String, _ rhs: String) -> Int {
        let left = lhs.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let right = rhs.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        for (x, y) in zip(left, right) {
            let order = compareSegments(String(Substring(x)), String(Substring(y)))
            if order != 0 { return order }
        }
        return left.count - right.count
    }

    package static func compareSegments(_ lhs: String, _ rhs: String) -> Int {
        if !ResourcePath.mayBeNumericID(lhs), !ResourcePath.mayBeNumericID(rhs) { return UTF8Order.compare(lhs, rhs) }
        return switch (ResourcePath.numericID(lhs), ResourcePath.numericID(rhs)) {
        case (let left?, let right?): sign(left, right)
        case (_?, nil): -1
        case (nil, _?): 1
        case (nil, nil): UTF8Order.compare(lhs, rhs)
        }
    }
}
