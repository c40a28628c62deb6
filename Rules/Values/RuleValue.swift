import HearthModel

/// A value of an evaluation, or the error that replaces it. Stored lists and maps are not converted: each member is
/// converted when a rule reads it.
enum RuleValue {
    case null
    case bool(Bool)
    case int(Int64)
    case float(Double)
    case string(String)
    case bytes([UInt8])
    case list(RuleList)
    case map(RuleMap)
    case set(RuleValueSet)
    case timestamp(RuleTime)
    case duration(RuleTime)
    case latlng(RuleGeoPoint)
    case path(RulePath)
    case vector([Double])
    case mapDiff(RuleMapDiff)
    case constraint(RuleConstraint)
    case error(RuleFailure)

    /// The form of a stored value in rules.
    init(_ value: Value) {
        switch value {
        case .null: self = .null
        case .boolean(let value): self = .bool(value)
        case .integer(let value): self = .int(value)
        case .double(let value): self = .float(value)
        case .timestamp(let value): self = .timestamp(RuleTime(value))
        case .string(let value): self = .string(value)
        case .bytes(let value): self = .bytes(value)
        case .reference(let name): self = .path(RulePath(reference: name))
        case .geoPoint(let value): self = .latlng(RuleGeoPoint(value))
        case .array(let values): self = .list(.stored(values))
        case .vector(let values): self = .vector(values)
        case .map(let map): self = .map(.stored(map))
        }
    }

    var isError: Bool {
        if case .error = self { true } else { false }
    }

    /// The type; an error has none.
    var type: RuleType? {
        switch self {
        case .null: .null
        case .bool: .bool
        case .int: .int
        case .float: .float
        case .string: .string
        case .bytes: .bytes
        case .list: .list
        case .map: .map
        case .set: .set
        case .timestamp: .timestamp
        case .duration: .duration
        case .latlng: .latlng
        case .path: .path
        case .vector: .vector
        case .mapDiff: .mapDiff
        case .constraint: .constraint
        case .error: nil
        }
    }

    var typeName: String { type?.rawValue ?? "error" }
}

/// A list: stored, or built by rules.
enum RuleList {
    case stored([Value])
    case built([RuleValue])

    var count: Int {
        switch self {
        case .stored(let values): values.count
        case .built(let values): values.count
        }
    }

    subscript(index: Int) -> RuleValue {
        switch self {
        case .stored(let values): RuleValue(values[index])
        case .built(let values): values[index]
        }
    }

    /// - Parameter range: within the list.
    func slice(_ range: Range<Int>) -> RuleList {
        switch self {
        case .stored(let values): .stored(Array(values[range]))
        case .built(let values): .built(Array(values[range]))
        }
    }

    var elements: [RuleValue] {
        switch self {
        case .stored(let values): values.map { RuleValue($0) }
        case .built(let values): values
        }
    }
}

/// A geographical point. It is an object so that values stay small.
final class RuleGeoPoint: Sendable {
    let point: GeoPoint

    init(_ point: GeoPoint) {
        self.point = point
    }
}

/// The result of `map.diff(map)`: names of members, sorted.
final class RuleMapDiff {
    let added: [String]
    let removed: [String]
    let changed: [String]
    let unchanged: [String]

    init(added: [String], removed: [String], changed: [String], unchanged: [String]) {
        self.added = added
        self.removed = removed
        self.changed = changed
        self.unchanged = unchanged
    }
}
