internal import Foundation
internal import HearthModel

/// Converts the user's values to the model's values and checks them.
///
/// Throws `INVALID_ARGUMENT` where Apple's API raises an exception. The message names the field.
struct UserDataReader: Sendable {
    let database: DatabaseName

    /// The purpose of the data, which determines the permitted sentinels.
    enum Source: Sendable {
        case set
        case mergeSet
        case update
        /// A value in a query, or an element of an array transform.
        case argument(of: String)
    }

    /// The parsed data of a document.
    struct Parsed: Sendable {
        var fields = MapValue()
        var transforms: [FieldTransform] = []
        /// Leaf paths, for merges only: the fields to set and the fields to delete, without transforms.
        var mask: [ModelFieldPath] = []
    }

    // MARK: Whole documents

    func set(_ data: [String: Any]) throws(Status) -> Parsed {
        var walk = UserDataWalk(reader: self, source: .set)
        walk.parsed.fields = try walk.map(data, at: []) ?? MapValue()
        return walk.parsed
    }

    /// The mask consists of all leaves of the data.
    func merge(_ data: [String: Any]) throws(Status) -> Parsed {
        var walk = UserDataWalk(reader: self, source: .mergeSet)
        walk.parsed.fields = try walk.map(data, at: []) ?? MapValue()
        walk.parsed.mask = Self.unique(walk.parsed.mask)
        return walk.parsed
    }

    /// - Parameter fields: strings and `FieldPath`s; each must occur in the data.
    func merge(_ data: [String: Any], fields: [Any]) throws(Status) -> Parsed {
        var walk = UserDataWalk(reader: self, source: .mergeSet)
        let all = try walk.map(data, at: []) ?? MapValue()
        var named: [ModelFieldPath] = []
        for field in fields { named.append(try FieldPath.parse(any: field, what: "All elements in mergeFields:")) }
        var parsed = Parsed()
        for path in Self.unique(named) {
            let isTransformed = walk.parsed.transforms.contains { $0.path == path }
            let isNamed =
                isTransformed || all[path: path] != nil || walk.parsed.mask.contains { path.isPrefix(of: $0) }
                || walk.parsed.transforms.contains { path.isPrefix(of: $0.path) }
            guard isNamed else {
                throw .invalidArgument(
                    "Field '\(path.string)' is specified in your field mask but missing from your input data.")
            }
            // A field that is only transformed is not in the mask: the transform needs its stored value.
            if !isTransformed { parsed.mask.append(path) }
            if let value = all[path: path] { parsed.fields.set(path, value) }
        }
        parsed.transforms = walk.parsed.transforms.filter { transform in
            named.contains { $0.isPrefix(of: transform.path) }
        }
        return parsed
    }

    /// - Parameter data: the keys are strings with dots or `FieldPath`s.
    func update(_ data: [AnyHashable: Any]) throws(Status) -> Parsed {
        var walk = UserDataWalk(reader: self, source: .update)
        var entries: [(path: ModelFieldPath, value: Any)] = []
        for (key, value) in data {
            entries.append((try FieldPath.parse(any: key.base, what: "Dictionary keys passed to updateData"), value))
        }
        // A dictionary has no order. Sorting by path makes equal updates produce equal requests.
        entries.sort { $0.path < $1.path }
        for (path, value) in entries {
            for name in path.segments { try UserDataWalk.validate(name: name, at: path.segments) }
            if case .delete? = (value as? FieldValue)?.kind {
                walk.parsed.mask.append(path)
                continue
            }
            let transformCount = walk.parsed.transforms.count
            if let parsed = try walk.value(value, at: path.segments) {
                walk.parsed.fields.set(path, parsed)
                walk.parsed.mask.append(path)
            } else if walk.parsed.transforms.dropFirst(transformCount).allSatisfy({ $0.path != path }) {
                // A map that contains only sentinels replaces the stored map.
                walk.parsed.mask.append(path)
            }
        }
        return walk.parsed
    }

    // MARK: Values

    /// A value in a query.
    func queryValue(_ value: Any) throws(Status) -> Value {
        var walk = UserDataWalk(reader: self, source: .argument(of: "queries"))
        // Only sentinels produce no value, and as an argument each of them throws.
        return try walk.value(value, at: []) ?? .null
    }

    /// The elements of an array transform.
    func elements(_ elements: [Any], of method: String) throws(Status) -> [Value] {
        var walk = UserDataWalk(reader: self, source: .argument(of: method))
        var values: [Value] = []
        values.reserveCapacity(elements.count)
        for element in elements {
            values.append(try walk.value(element, at: [], inArray: true) ?? .null)
        }
        return values
    }

    static func unique(_ paths: [ModelFieldPath]) -> [ModelFieldPath] {
        var seen: Set<ModelFieldPath> = []
        return paths.filter { seen.insert($0).inserted }
    }
}
