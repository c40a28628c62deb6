import HearthModel

/// Queries as parameters of REST. Source: the Firebase Database REST API reference, "Query Parameters"; the error
/// messages are those of the service.
extension TreeQuery {
    /// - Parameter parameters: of the request, percent-decoded; others than a query's are ignored. Of equal names the
    ///   last applies.
    /// - Returns: nil when there is no query parameter among them.
    package init?(rest parameters: [(name: String, value: String)]) throws(TreeDataError) {
        let reader = RESTQueryReader(parameters)
        guard reader.hasQuery else { return nil }
        self.init()
        if let string = reader["orderBy"] {
            index = try Index(orderBy: string)
        } else {
            guard reader.isShallow else {
                throw TreeDataError("orderBy must be defined when other query parameters are defined")
            }
            index = .key
        }
        (start, end) = try reader.bounds(index: index)
        (limit, isLimitedToLast) = try reader.limit()
    }
}

extension TreeQuery.Index {
    fileprivate init(orderBy string: String) throws(TreeDataError) {
        let invalid = TreeDataError("orderBy must be a valid JSON encoded path")
        guard case .string(let name)? = try? TreeJSON.value(Array(string.utf8)) else { throw invalid }
        switch TreeKey(name) {
        case "$priority": self = .priority
        case "$key": self = .key
        case "$value": self = .value
        default:
            guard let path = try? TreeLimits.standard.path(name), !path.isRoot else { throw invalid }
            self = .child(path)
        }
    }
}

private struct RESTQueryReader {
    private static let boundNames = ["startAt", "startAfter", "endAt", "endBefore", "equalTo"]
    private static let limitNames = ["limitToFirst", "limitToLast"]

    private var values: [TreeKey: String] = [:]

    init(_ parameters: [(name: String, value: String)]) {
        for (name, value) in parameters { values[TreeKey(name)] = value }
    }

    subscript(name: String) -> String? { values[TreeKey(name)] }

    var isShallow: Bool { TreeKey(self["shallow"] ?? "") == "true" }

    var hasQuery: Bool {
        (["orderBy"] + Self.boundNames + Self.limitNames).contains { self[$0] != nil }
    }

    package typealias Bounds = (start: TreeQuery.Bound?, end: TreeQuery.Bound?)

    func bounds(index: TreeQuery.Index) throws(TreeDataError) -> Bounds {
        if let string = self["equalTo"] {
            guard Self.boundNames.allSatisfy({ $0 == "equalTo" || self[$0] == nil }) else {
                throw TreeDataError(
                    "equalTo cannot be specified in addition to startAfter, startAt, endAt, or endBefore")
            }
            return (
                try bound(string, index: index, isInclusive: true, else: .min),
                try bound(string, index: index, isInclusive: true, else: .max)
            )
        }
        let start = try one("startAt", "startAfter", index: index, inclusive: .min, exclusive: .max)
        let end = try one("endAt", "endBefore", index: index, inclusive: .max, exclusive: .min)
        return (start, end)
    }

    private func one(
        _ inclusiveName: String, _ exclusiveName: String, index: TreeQuery.Index, inclusive: TreeQuery.BoundKey,
        exclusive: TreeQuery.BoundKey
    ) throws(TreeDataError) -> TreeQuery.Bound? {
        switch (self[inclusiveName], self[exclusiveName]) {
        case (nil, nil): return nil
        case (let string?, nil): return try bound(string, index: index, isInclusive: true, else: inclusive)
        case (nil, let string?): return try bound(string, index: index, isInclusive: false, else: exclusive)
        default: throw TreeDataError("Only one of \(inclusiveName) and \(exclusiveName) may be specified")
        }
    }

    /// A value, and optionally a key behind a comma.
    private func bound(
        _ string: String, index: TreeQuery.Index, isInclusive: Bool, else key: TreeQuery.BoundKey
    ) throws(TreeDataError) -> TreeQuery.Bound {
        // As the elements of an array: a comma inside of a string is not a separator.
        let parts = (try? TreeJSON.value(Array("[\(string)]".utf8)))?.array ?? []
        if index == .key {
            if parts.count == 1, case .string(let name) = parts[0] {
                return TreeQuery.Bound(value: nil, key: .key(TreeKey(name)), isInclusive: isInclusive)
            }
            // The key itself: the command-line tools page through large locations in this way.
            if isShallow, self["orderBy"] == nil {
                return TreeQuery.Bound(value: nil, key: .key(TreeKey(string)), isInclusive: isInclusive)
            }
            guard parts.count == 1 else { throw .notPrimitive }
            throw .keyIndexType
        }
        guard let value = parts.first, parts.count <= 2, value.isNull || value.scalar != nil else {
            throw .notPrimitive
        }
        guard parts.count == 2 else {
            return TreeQuery.Bound(value: value.scalar, key: key, isInclusive: isInclusive)
        }
        guard case .string(let name) = parts[1] else { throw .notPrimitive }
        let bound = TreeKey(name)
        // Over a socket `[MIN_NAME]` and `[MAX_NAME]` are the ends of all keys; here the service refuses them, too.
        guard TreeLimits.standard.isValid(bound) else { throw .invalidBoundKey }
        return TreeQuery.Bound(value: value.scalar, key: .key(bound), isInclusive: isInclusive)
    }

    func limit() throws(TreeDataError) -> (Int?, Bool) {
        switch (self["limitToFirst"], self["limitToLast"]) {
        case (nil, nil): return (nil, false)
        case (let string?, nil): return (try limit(string, "limitToFirst"), false)
        case (nil, let string?): return (try limit(string, "limitToLast"), true)
        default: throw TreeDataError("Only one of limitToFirst and limitToLast may be specified")
        }
    }

    private func limit(_ string: String, _ name: String) throws(TreeDataError) -> Int {
        guard case .integer(let limit)? = try? TreeJSON.value(Array(string.utf8)), limit <= Int32.max else {
            throw TreeDataError("\(name) must be an integer")
        }
        guard limit > 0 else { throw TreeDataError("\(name) must be positive") }
        return Int(limit)
    }
}
