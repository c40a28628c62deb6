import HearthModel

/// Queries in the form of the WebSocket protocol. Source: the public SDKs' persistent connection.
extension TreeQuery {
    /// - Parameter wire: the object under `q`.
    package init(wire: JSONValue) throws(TreeDataError) {
        self.init()
        guard case .object = wire else { throw Self.invalid("has to be an object") }
        if let name = wire["i"] {
            guard case .string(let string) = name else { throw Self.invalid("needs a string as index i") }
            index = try Index(wire: string)
        }
        start = try Self.bound(wire, Self.startNames, index: index)
        end = try Self.bound(wire, Self.endNames, index: index)
        guard let number = wire["l"] else { return }
        guard let limit = number.integer, limit > 0, limit <= Int32.max else {
            throw Self.invalid("needs a positive integer as limit l")
        }
        self.limit = Int(limit)
        switch wire["vf"] {
        case nil, .null?: isLimitedToLast = start == nil
        case "l"?: isLimitedToLast = false
        case "r"?: isLimitedToLast = true
        default: throw Self.invalid("needs \"l\" or \"r\" as side vf")
        }
    }

    /// The form that SDKs for Apple send: `init(wire:)` makes an equal query from it.
    package var wire: JSONValue {
        var members: [(name: String, value: JSONValue)] = []
        if let start { append(start, Self.startNames, to: &members) }
        if let end { append(end, Self.endNames, to: &members) }
        if let limit {
            members.append(("l", .integer(Int64(limit))))
            members.append(("vf", isLimitedToLast ? "r" : "l"))
        }
        if let name = index.wire { members.append(("i", .string(name))) }
        return .object(members)
    }

    private struct BoundNames {
        let value: String
        let key: String
        let isInclusive: String
        /// The key of a bound that names none, when it is inclusive; the other sentinel when it isn't.
        let inclusiveKey: BoundKey

        func key(isInclusive: Bool) -> BoundKey { isInclusive == (inclusiveKey == .min) ? .min : .max }
    }

    private static let startNames = BoundNames(value: "sp", key: "sn", isInclusive: "sin", inclusiveKey: .min)
    private static let endNames = BoundNames(value: "ep", key: "en", isInclusive: "ein", inclusiveKey: .max)

    private static func invalid(_ reason: String) -> TreeDataError { TreeDataError("Invalid query: it \(reason)") }

    private static func bound(_ wire: JSONValue, _ names: BoundNames, index: Index) throws(TreeDataError) -> Bound? {
        guard let value = wire[names.value] else { return nil }
        let isInclusive: Bool
        switch wire[names.isInclusive] {
        case nil: isInclusive = true
        case .bool(let value)?: isInclusive = value
        default: throw invalid("needs a boolean as \(names.isInclusive)")
        }
        if index == .key {
            guard case .string(let string) = value else { throw .keyIndexType }
            return Bound(value: nil, key: BoundKey(wire: string), isInclusive: isInclusive)
        }
        var key = names.key(isInclusive: isInclusive)
        switch wire[names.key] {
        case nil, .null?: break
        case .string(let string)?: key = BoundKey(wire: string)
        default: throw invalid("needs a string as \(names.key)")
        }
        return Bound(value: try leaf(value), key: key, isInclusive: isInclusive)
    }

    /// A value, which may be in export form.
    private static func leaf(_ value: JSONValue) throws(TreeDataError) -> Scalar? {
        switch value {
        case .null: return nil
        case .object:
            if let scalar = value[".value"]?.scalar { return scalar }
            throw .notPrimitive
        case .array: throw .notPrimitive
        default: return value.scalar
        }
    }

    private func append(_ bound: Bound, _ names: BoundNames, to members: inout [(name: String, value: JSONValue)]) {
        if index == .key {
            members.append((names.value, .string(bound.key.wire)))
        } else {
            members.append((names.value, JSONValue(bound.value)))
            if bound.key != names.key(isInclusive: bound.isInclusive) {
                members.append((names.key, .string(bound.key.wire)))
            }
        }
        if !bound.isInclusive { members.append((names.isInclusive, false)) }
    }
}

extension TreeDataError {
    static let keyIndexType = TreeDataError("Provided key index type is invalid, must be string")
    static let notPrimitive = TreeDataError("Constraint index field must be a JSON primitive")
    static let invalidBoundKey = TreeDataError("Constraint key field must be a valid key name")
}

extension TreeQuery.BoundKey {
    /// The names of the sentinels are no valid keys.
    init(wire string: String) {
        switch TreeKey(string) {
        case "[MIN_NAME]": self = .min
        case "[MAX_NAME]": self = .max
        case let key: self = .key(key)
        }
    }

    var wire: String {
        switch self {
        case .min: "[MIN_NAME]"
        case .max: "[MAX_NAME]"
        case .key(let key): key.string
        }
    }
}

extension TreeQuery.Index {
    init(wire string: String) throws(TreeDataError) {
        switch TreeKey(string) {
        case ".priority": self = .priority
        case ".key": self = .key
        case ".value": self = .value
        default:
            let path = try TreeLimits.standard.path(string)
            guard !path.isRoot else { throw .invalidPath }
            self = .child(path)
        }
    }

    /// Nil for the priority, which isn't named.
    package var wire: String? {
        switch self {
        case .priority: nil
        case .key: ".key"
        case .value: ".value"
        case .child(let path): path.string
        }
    }
}
