/// The types of rules, by their names for `is` and in messages.
enum RuleType: String, Sendable, CaseIterable {
    case null, bool, int, float, string, bytes, list, map, set, timestamp, duration, latlng, path, vector
    case mapDiff = "map_diff"
    case constraint

    /// The names allowed on the right side of `is`, in the order of Google's message.
    static let testable = [
        "bool", "bytes", "constraint", "duration", "float", "int", "latlng", "list", "vector", "set", "number", "map",
        "string", "timestamp", "path", "map_diff",
    ]
}

/// The right side of `is`.
enum TypeTest: Sendable {
    case type(RuleType)
    /// An int or a float.
    case number

    init?(_ name: String) {
        if name == "number" {
            self = .number
        } else {
            guard let type = RuleType(rawValue: name), type != .null else { return nil }
            self = .type(type)
        }
    }

    func holds(_ type: RuleType) -> Bool {
        switch self {
        case .type(let wanted): type == wanted
        case .number: type == .int || type == .float
        }
    }
}
