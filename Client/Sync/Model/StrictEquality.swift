import HearthModel

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
