import HearthJSON
import HearthModel

/// The JSON of trees.
///
/// Two forms are written. The export form is complete: a leaf with a priority is `{".value":…,".priority":…}`, an inner
/// node's priority is its member `.priority`, and there are no arrays. The plain form omits priorities, and a node
/// whose keys are mostly the numbers from 0 is an array. Both are read, arrays as nodes with the keys 0, 1, …; in
/// writes `.sv` denotes values that the server computes.
package enum TreeJSON {
    package enum Form: Sendable, Hashable {
        case plain
        case export
    }

    /// The tree of a JSON string, in export or plain form. Keys, depth and strings are checked.
    /// - Parameter range: of the string; all of it when nil. Positions in errors are counted from its start.
    package static func node(
        _ string: [UInt8], in range: Range<Int>? = nil, limits: TreeLimits = .standard
    ) throws(TreeDataError) -> Node {
        try TreeJSONReader.read(string, in: range) { (reader) throws(TreeDataError) in
            try reader.node(depth: 0, limits: limits)
        }
    }

    /// The update of a JSON string: an object whose names are keys or paths below `path`.
    package static func merge(
        _ string: [UInt8], in range: Range<Int>? = nil, at path: TreePath, limits: TreeLimits = .standard
    ) throws(TreeDataError) -> TreeUpdate {
        let members = try TreeJSONReader.read(string, in: range) { (reader) throws(TreeDataError) in
            guard reader.peek() == UInt8(ascii: "{") else {
                _ = try reader.skipPart()
                throw .notAnObject
            }
            return try reader.changes(limits: limits.below(path))
        }
        return try TreeUpdate(at: path, changes: members)
    }

    /// The members of an object as slices of its JSON, which are valid and not parsed yet. For envelopes.
    package static func members(
        _ string: [UInt8], in range: Range<Int>? = nil
    ) throws(TreeDataError) -> [(name: String, value: Range<Int>)] {
        try TreeJSONReader.read(string, in: range) { (reader) throws(TreeDataError) in
            var members: [(name: String, value: Range<Int>)] = []
            try reader.object { (reader, name, _) throws(TreeDataError) in
                members.append((name, try reader.skipPart()))
            }
            return members
        }
    }

    /// The elements of an array as slices of its JSON, which are valid and not parsed yet. For envelopes.
    package static func elements(
        _ string: [UInt8], in range: Range<Int>? = nil
    ) throws(TreeDataError) -> [Range<Int>] {
        try TreeJSONReader.read(string, in: range) { (reader) throws(TreeDataError) in
            var elements: [Range<Int>] = []
            try reader.array { (reader, _) throws(TreeDataError) in elements.append(try reader.skipPart()) }
            return elements
        }
    }

    /// Any JSON value. For small values.
    package static func value(_ string: [UInt8], in range: Range<Int>? = nil) throws(TreeDataError) -> JSONValue {
        try TreeJSONReader.read(string, in: range) { (reader) throws(TreeDataError) in try reader.value() }
    }
}

extension TreeJSONReader {
    /// - Parameter depth: the number of keys above.
    fileprivate mutating func node(depth: Int, limits: TreeLimits) throws(TreeDataError) -> Node {
        switch peek() {
        case UInt8(ascii: "{"): return try inner(depth: depth, limits: limits)
        case UInt8(ascii: "["):
            try checkDepth(depth + 1, limits)
            var children = ChildrenBuilder()
            try array { (reader, index) throws(TreeDataError) in
                children.append(TreeKey(index), try reader.node(depth: depth + 1, limits: limits))
            }
            return Node.inner(children.children(), priority: nil)
        default: return Node(scalar: try leafValue(limits))
        }
    }

    private func checkDepth(_ depth: Int, _ limits: TreeLimits) throws(TreeDataError) {
        guard depth <= limits.depthMax else {
            throw TreeDataError(
                "Invalid data; deeper than \(Limits.treeDepthMax) levels at \(lineAndColumn(of: position)).")
        }
    }

    private mutating func leafValue(_ limits: TreeLimits) throws(TreeDataError) -> Scalar? {
        let value = try scalar()
        if case .string(let string)? = value { try limits.check(string) }
        return value
    }

    /// The content of an object: children, a leaf with a priority, or a deferred value.
    private mutating func inner(depth: Int, limits: TreeLimits) throws(TreeDataError) -> Node {
        let first = position
        var children = ChildrenBuilder()
        var memberCount = 0
        var value: Scalar?
        var hasValue = false
        var priority: Scalar?
        var deferred: ServerValue?
        try object { (reader, name, namePosition) throws(TreeDataError) in
            memberCount += 1
            let key = TreeKey(name)
            if name.utf8.first == UInt8(ascii: ".") {
                switch key {
                case ".priority": priority = try reader.priority(limits)
                case ".value":
                    value = try reader.valueOrDeferred(limits)
                    hasValue = true
                case ".sv": deferred = try reader.deferred()
                default: throw .invalidKey(reader.lineAndColumn(of: namePosition))
                }
                return
            }
            guard limits.isValid(key) else { throw .invalidKey(reader.lineAndColumn(of: namePosition)) }
            try reader.checkDepth(depth + 1, limits)
            children.append(key, try reader.node(depth: depth + 1, limits: limits))
        }
        if let deferred {
            guard memberCount == 1 else {
                throw TreeDataError("Invalid data; .sv at \(lineAndColumn(of: first)) has to stand alone.")
            }
            return Node(.deferred(deferred))
        }
        guard hasValue else { return .inner(children.children(), priority: priority) }
        guard children.isUntouched else {
            throw TreeDataError("Invalid data; beside .value at \(lineAndColumn(of: first)) only .priority can stand.")
        }
        return Node(scalar: value, priority: priority)
    }

    private mutating func valueOrDeferred(_ limits: TreeLimits) throws(TreeDataError) -> Scalar? {
        switch peek() {
        case UInt8(ascii: "{"):
            let first = position
            let value = try value()
            guard case .object(let members) = value, members.count == 1, TreeKey(members[0].name) == ".sv",
                let deferred = ServerValue(json: members[0].value)
            else { throw notAValue(".value", at: first) }
            return .deferred(deferred)
        case UInt8(ascii: "["): throw notAValue(".value", at: position)
        default: return try leafValue(limits)
        }
    }

    /// Null, a number, a string, or a deferred value.
    private mutating func priority(_ limits: TreeLimits) throws(TreeDataError) -> Scalar? {
        let first = position
        let value = try valueOrDeferred(limits)
        if case .bool? = value { throw notAValue(".priority", at: first) }
        return value
    }

    private func notAValue(_ name: String, at position: Int) -> TreeDataError {
        let kinds = name == ".priority" ? "a number or a string" : "a string, a number or a boolean"
        return TreeDataError("Invalid data; \(name) at \(lineAndColumn(of: position)) has to be \(kinds).")
    }

    /// The value of `.sv`.
    private mutating func deferred() throws(TreeDataError) -> ServerValue {
        let first = position
        guard let deferred = ServerValue(json: try value()) else {
            throw TreeDataError(
                "Invalid data; .sv at \(lineAndColumn(of: first)) has to be \"timestamp\" or {\"increment\": <number>}."
            )
        }
        return deferred
    }

    /// The members of an update, at relative paths.
    fileprivate mutating func changes(limits: TreeLimits) throws(TreeDataError) -> [TreeChange] {
        var changes: [TreeChange] = []
        try object { (reader, name, namePosition) throws(TreeDataError) in
            try limits.checkSize(of: name)
            let path = TreePath(name)
            let location = path.last == .priority ? TreePath(keys: path.keys.dropLast()) : path
            guard !path.isRoot, location.keys.allSatisfy(limits.isValid) else {
                throw .invalidKey(reader.lineAndColumn(of: namePosition))
            }
            try reader.checkDepth(location.count, limits)
            if path.last == .priority {
                changes.append(TreeChange(path: path, node: Node(scalar: try reader.priority(limits))))
            } else {
                changes.append(TreeChange(path: path, node: try reader.node(depth: path.count, limits: limits)))
            }
        }
        return changes
    }
}

extension Node {
    /// A leaf, or empty.
    init(scalar: Scalar?, priority: Scalar? = nil) {
        self = if let scalar { Node(scalar, priority: priority) } else { .empty }
    }
}
