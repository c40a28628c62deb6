/// A value of a document's field. Source: google.firestore.v1.Value.
///
/// A vector is a separate case, although its wire form is a map with `__type__` = `__vector__`: it sorts and filters as
/// its own class.
@usableFromInline package enum Value: Sendable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case double(Double)
    case timestamp(Timestamp)
    case string(String)
    case bytes([UInt8])
    /// The full name of a document: `projects/P/databases/D/documents/…`.
    case reference(String)
    case geoPoint(GeoPoint)
    case array([Value])
    case vector([Double])
    case map(MapValue)
}

extension Value: Equatable {
    /// Identity: the same type and the same bits; `3` and `3.0` differ. `ValueOrder.compare` finds values that only
    /// *compare* as equal.
    @usableFromInline package static func == (lhs: Value, rhs: Value) -> Bool {
        switch (lhs, rhs) {
        case (.null, .null): true
        case (.boolean(let left), .boolean(let right)): left == right
        case (.integer(let left), .integer(let right)): left == right
        case (.double(let left), .double(let right)): left.bitPattern == right.bitPattern
        case (.timestamp(let left), .timestamp(let right)): left == right
        case (.string(let left), .string(let right)): UTF8Order.equal(left, right)
        case (.bytes(let left), .bytes(let right)): left == right
        case (.reference(let left), .reference(let right)): UTF8Order.equal(left, right)
        case (.geoPoint(let left), .geoPoint(let right)):
            left.latitude.bitPattern == right.latitude.bitPattern
                && left.longitude.bitPattern == right.longitude.bitPattern
        case (.array(let left), .array(let right)): left == right
        case (.vector(let left), .vector(let right)):
            left.count == right.count && zip(left, right).allSatisfy { $0.bitPattern == $1.bitPattern }
        case (.map(let left), .map(let right)): left == right
        default: false
        }
    }
}
