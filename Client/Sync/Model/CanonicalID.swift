import HearthModel

/// A string that equal targets share, for lookups. Different targets may share one, too: compare the targets
/// afterwards.
enum CanonicalID {
    static func string(of target: ClientTarget) -> String {
        var string = target.path.string
        if let group = target.collectionGroup { string += "|cg:" + group }
        string += "|f:" + self.string(of: target.filters) + "|ob:"
        for order in target.orders { string += order.field.string + (order.descending ? "desc" : "asc") }
        if let limit = target.limit { string += "|l:\(limit)" }
        if let start = target.start {
            string +=
                "|lb:" + (start.isInclusive ? "b:" : "a:") + start.values.map(Self.string(of:)).joined(separator: ",")
        }
        if let end = target.end {
            string += "|ub:" + (end.isInclusive ? "a:" : "b:") + end.values.map(Self.string(of:)).joined(separator: ",")
        }
        return string
    }

    static func string(of filters: [Filter]) -> String { filters.map(string(of:)).joined() }

    private static func string(of filter: Filter) -> String {
        switch filter {
        case .field(let field, let op, let value): return field.string + symbol(op) + string(of: value)
        case .unary(let field, let op): return field.string + op.name
        case .or(let members): return "or(" + members.map(string(of:)).joined(separator: ",") + ")"
        case .and(let members):
            let isFlat = members.allSatisfy { if case .field = $0 { true } else { false } }
            return isFlat ? string(of: members) : "and(" + members.map(string(of:)).joined(separator: ",") + ")"
        }
    }

    private static func symbol(_ op: Filter.Operator) -> String {
        switch op {
        case .lessThan: "<"
        case .lessThanOrEqual: "<="
        case .equal: "=="
        case .notEqual: "!="
        case .greaterThanOrEqual: ">="
        case .greaterThan: ">"
        case .arrayContains: "array_contains"
        case .arrayContainsAny: "array-contains-any"
        case .in: "in"
        case .notIn: "not-in"
        }
    }

    static func string(of value: Value) -> String {
        switch value {
        case .null: return "null"
        case .boolean(let flag): return flag ? "true" : "false"
        case .integer(let number): return String(number)
        case .double(let number): return number.description
        case .timestamp(let time): return "time(\(time.seconds),\(time.nanoseconds))"
        case .string(let string): return string
        case .bytes(let bytes): return hexadecimal(bytes)
        case .reference: return ResourcePath(reference: value)?.string ?? ""
        case .geoPoint(let point): return "geo(\(point.latitude),\(point.longitude))"
        case .array(let elements): return "[" + elements.map(string(of:)).joined(separator: ",") + "]"
        case .vector(let elements): return "[" + elements.map(\.description).joined(separator: ",") + "]"
        case .map(let map):
            return "{" + map.fields.map { $0.name + ":" + string(of: $0.value) }.joined(separator: ",") + "}"
        }
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var string: [UInt8] = []
        string.reserveCapacity(bytes.count * 2)
        for byte in bytes {
            string.append(digits[Int(byte >> 4)])
            string.append(digits[Int(byte & 15)])
        }
        return String(decoding: string, as: UTF8.self)
    }
}

extension ClientTarget {
    package var canonicalID: String { CanonicalID.string(of: self) }
}

extension ClientQuery {
    package var canonicalID: String {
        let string = target.canonicalID
        return limit == nil ? string : string + (limitType == .first ? "|lt:f" : "|lt:l")
    }
}
