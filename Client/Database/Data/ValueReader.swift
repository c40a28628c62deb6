import Foundation
import HearthApp
import HearthModel
import HearthTree

/// Converts and validates the user's values to tree nodes.
///
/// Throws INVALID_ARGUMENT where Firebase's API raises an exception; the message names the location.
struct ValueReader {
    /// The prefix of each message, such as `setValue`.
    let call: String

    // MARK: Values

    /// - Parameter path: the target location; its depth counts for the limit.
    func node(_ value: Any?, at path: TreePath) throws(Status) -> Node {
        guard let value else { return .empty }
        switch try content(value, at: path) {
        case .nothing: return .empty
        case .scalar(let scalar): return Node(scalar)
        case .array(let elements):
            return Node(children: try children(elements.enumerated().map { (String($0), $1) }, at: path))
        case .map(let members): return try node(of: members, at: path)
        }
    }

    /// The value, with a priority that overrides the one in the value.
    func node(_ value: Any?, priority: Any?, at path: TreePath) throws(Status) -> Node {
        try node(value, at: path).with(priority: try self.priority(priority, at: path))
    }

    /// The priority; nil for none.
    func priority(_ value: Any?, at path: TreePath) throws(Status) -> Scalar? {
        guard let value else { return nil }
        switch try content(value, at: path) {
        case .nothing: return nil
        case .scalar(let scalar):
            if scalar.bool == nil { return scalar }
        case .map(let members):
            if let scalar = try serverValue(members, at: path) { return scalar }
        case .array: break
        }
        throw invalid("got a priority that is neither null, a number nor a string", path)
    }

    /// The changes of an update, by their absolute paths, none of which is an ancestor of another.
    /// - Parameter values: keys are paths below `path`, and may end in `.priority`.
    func updates(_ values: [AnyHashable: Any], at path: TreePath) throws(Status) -> [TreeChange] {
        var changes: [TreeChange] = []
        for (key, value) in values {
            guard let string = Self.string(key.base) else {
                throw invalid("got a key that is not a string, \(key.base),", path)
            }
            changes.append(try update(string, value, at: path))
        }
        changes.sort { $0.path.keys.lexicographicallyPrecedes($1.path.keys) }
        for (first, second) in zip(changes, changes.dropFirst()) where first.path.contains(second.path) {
            throw .invalidArgument(
                "\(call) got two paths of which one lies in the other: \(first.path) and \(second.path).")
        }
        return changes
    }

    private func update(_ string: String, _ value: Any, at path: TreePath) throws(Status) -> TreeChange {
        var location = TreePath(string)
        let isPriority = location.last == .priority
        if isPriority { location.keys.removeLast() }
        let target = try Paths.path(location.string, below: path, call)
        if isPriority {
            let priority = try self.priority(value, at: target)
            return TreeChange(path: target.child(.priority), node: priority.map { Node($0) } ?? .empty)
        }
        guard !location.isRoot else { throw invalid("got an empty key", path) }
        return TreeChange(path: target, node: try node(value, at: target))
    }

    // MARK: Kinds

    private enum Content {
        case nothing
        case scalar(Scalar)
        case array([Any])
        case map([(name: String, value: Any)])
    }

    private func content(_ value: Any, at path: TreePath) throws(Status) -> Content {
        if let optional = value as? any OptionalValue {
            guard let wrapped = optional.wrappedValue else { return .nothing }
            return try content(wrapped, at: path)
        }
        if value is NSNull { return .nothing }
        if let string = Self.string(value) {
            guard string.utf8.count <= TreeLimits.client.stringSizeBytesMax else {
                throw invalid("got a string of more than \(TreeLimits.client.stringSizeBytesMax) bytes", path)
            }
            return .scalar(.string(string))
        }
        if let number = value as? NSNumber { return .scalar(try scalar(number, at: path)) }
        // On Linux a Swift string is not an `NSString`.
        if let number = value as? CGFloat { return .scalar(try scalar(NSNumber(value: Double(number)), at: path)) }
        if let map = value as? [AnyHashable: Any] {
            var members: [(name: String, value: Any)] = []
            for (key, member) in map {
                guard let name = Self.string(key.base) else {
                    throw invalid("got a dictionary with a key that is not a string, \(key.base),", path)
                }
                members.append((name, member))
            }
            return .map(members)
        }
        if let array = value as? [Any] { return .array(array) }
        throw invalid(
            "got a \(type(of: value)), which can't be stored (only strings, numbers, Booleans, NSNull, arrays and "
                + "dictionaries can)", path)
    }

    static func string(_ value: Any) -> String? {
        if let string = value as? String { return string }
        return (value as? NSString).map { String(describing: $0) }
    }

    private func scalar(_ number: NSNumber, at path: TreePath) throws(Status) -> Scalar {
        if number.holdsBoolean { return .bool(number.boolValue) }
        if number.holdsFloatingPoint || number is NSDecimalNumber {
            // Otherwise it would return as a number that differs from the one in the local events.
            guard let scalar = Scalar.canonical(number.doubleValue) else {
                throw invalid("got \(number), which can't be stored,", path)
            }
            return scalar
        }
        if number.holdsUnsigned64 {
            let value = number.uint64Value
            return Int64(exactly: value).map { .integer($0) } ?? .double(Double(value))
        }
        return .integer(number.int64Value)
    }

    // MARK: Maps

    private func node(of members: [(name: String, value: Any)], at path: TreePath) throws(Status) -> Node {
        if let scalar = try serverValue(members, at: path) { return Node(scalar) }
        var priority: Scalar?
        var value: Any?
        var others: [(String, Any)] = []
        for (name, member) in members {
            switch TreeKey(name) {
            case .priority: priority = try self.priority(member, at: path)
            case ".value": value = member
            default: others.append((name, member))
            }
        }
        guard let value else {
            return Node(children: try children(others, at: path), priority: priority)
        }
        guard others.isEmpty else { throw invalid("got a dictionary with .value and other keys", path) }
        let leaf = try node(value, at: path)
        guard leaf.isLeaf || leaf.isEmpty else { throw invalid("got a .value that is an array or a dictionary", path) }
        return leaf.with(priority: priority)
    }

    private func children(_ members: [(String, Any)], at path: TreePath) throws(Status) -> [(TreeKey, Node)] {
        var children: [(TreeKey, Node)] = []
        children.reserveCapacity(members.count)
        for (name, member) in members {
            let key = try Paths.key(name, call)
            let location = path.child(key)
            try Paths.check(location, call)
            children.append((key, try node(member, at: location)))
        }
        return children
    }

    /// The server value; nil for any other map.
    private func serverValue(_ members: [(name: String, value: Any)], at path: TreePath) throws(Status) -> Scalar? {
        guard let member = members.first(where: { TreeKey($0.name) == ".sv" }) else { return nil }
        guard members.count == 1 else { throw invalid("got a dictionary with .sv and other keys", path) }
        switch try content(member.value, at: path) {
        case .scalar(.string(let name)) where TreeKey(name) == "timestamp": return .deferred(.timestamp)
        case .map(let members) where members.count == 1 && TreeKey(members[0].name) == "increment":
            switch try content(members[0].value, at: path) {
            case .scalar(.integer(let delta)): return .deferred(.increment(delta))
            case .scalar(.double(let delta)): return .deferred(.incrementDouble(delta))
            default: break
            }
        default: break
        }
        throw invalid("got a server value that doesn't exist", path)
    }

    private func invalid(_ what: String, _ path: TreePath) -> Status {
        .invalidArgument("\(call) \(what) at \(path).")
    }
}
