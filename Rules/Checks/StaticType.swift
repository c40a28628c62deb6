/// The possible types of an expression, as far as its source determines them.
struct StaticType: OptionSet, Sendable {
    let rawValue: UInt32

    init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    init(_ type: RuleType) {
        rawValue = 1 << UInt32(RuleType.allCases.firstIndex(of: type) ?? 0)
    }

    static let any = StaticType(rawValue: (1 << UInt32(RuleType.allCases.count)) - 1)
    static let bool = StaticType(.bool)
    static let int = StaticType(.int)
    static let float = StaticType(.float)
    static let string = StaticType(.string)
    static let number: StaticType = [int, float]
    static let null = StaticType(.null)
    static let bytes = StaticType(.bytes)
    static let list = StaticType(.list)
    static let set = StaticType(.set)
    static let map = StaticType(.map)
    static let path = StaticType(.path)
    static let timestamp = StaticType(.timestamp)
    static let duration = StaticType(.duration)
    static let constraint = StaticType(.constraint)

    /// The type of a name in a signature.
    init(named name: String) {
        if let type = RuleType(rawValue: name) { self.init(type) } else { self = .any }
    }

    /// The names, in the order of Google's messages.
    var names: String {
        let order: [RuleType] = [
            .null, .bool, .int, .float, .string, .bytes, .duration, .timestamp, .list, .set, .map, .path, .latlng,
            .vector, .mapDiff, .constraint,
        ]
        return order.filter { contains(StaticType($0)) }.map(\.rawValue).joined(separator: ", ")
    }

    /// Whether two values of these types may be equal.
    func isComparable(to other: StaticType) -> Bool {
        let first = isDisjoint(with: .number) ? self : union(.number)
        let second = other.isDisjoint(with: .number) ? other : other.union(.number)
        return !first.isDisjoint(with: second)
    }
}
