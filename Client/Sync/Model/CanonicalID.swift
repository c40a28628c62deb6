import HearthModel

/// A text that equal targets share, to find them by. Different targets may share one, too: compare them afterwards.
enum CanonicalID {
    static func text(of target: ClientTarget) -> String {
        var text = target.path.text
        if let group = target.collectionGroup { text += "|cg:" + group }
        text += "|f:" + self.text(of: target.filters) + "|ob:"
        for order in target.orders { text += order.field.text + (order.descending ? "desc" : "asc") }
        if let limit = target.limit { text += "|l:\(limit)" }
        if let start = target.start {
            text += "|lb:" + (start.isInclusive ? "b:" : "a:") + start.values.map(Self.text(of:)).joined(separator: ",")
        }
        if let end = target.end {
            text += "|ub:" + (end.isInclusive ? "a:" : "b:") + end.values.map(Self.text(of:)).joined(separator: ",")
        }
        return text
    }

    static func text(of filters: [Filter]) -> String { filters.map(text(of:)).joined() }

    private static func text(of filter: Filter) -> String {
        switch filter {
        case .field(let field, let op, let value): return field.text + symbol(op) + text(of: value)
        case .unary(let field, let op): return field.text + op.name
        case .or(let members): return "or(" + members.map(text(of:)).joined(separator: ",") + ")"
        case .and(let members):
            let isFlat = members.allSatisfy { if case .field = $0 { true } else { false } }
            return isFlat ? text(of: members) : "and(" + members.map(text(of:)).joined(separator: ",") + ")"
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

    static func text(of value: Value) -> String {
        switch value {
        case .null: return "null"
        case .boolean(let flag): return flag ? "true" : "false"
        case .integer(let number): return String(number)
        case .double(let number): return number.description
        case .timestamp(let time): return "time(\(time.seconds),\(time.nanoseconds))"
        case .string(let text): return text
        case .bytes(let bytes): return hexadecimal(bytes)
        case .reference: return ResourcePath(reference: value)?.text ?? ""
        case .geoPoint(let point): return "geo(\(point.latitude),\(point.longitude))"
        case .array(let elements): return "[" + elements.map(text(of:)).joined(separator: ",") + "]"
        case .vector(let elements): return "[" + elements.map(\.description).joined(separator: ",") + "]"
        case .map(let map):
            return "{" + map.fields.map { $0.name + ":" + text(of: $0.value) }.joined(separator: ",") + "}"
        }
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count * 2)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}

extension ClientTarget {
    package var canonicalID: String { CanonicalID.text(of: self) }
}

extension ClientQuery {
    package var canonicalID: String {
        let text = target.canonicalID
        return limit == nil ? text : text + (limitType == .first ? "|lt:f" : "|lt:l")
    }
}
