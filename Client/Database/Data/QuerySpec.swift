import HearthApp
import HearthModel
import HearthTree

/// A query that is being built: its parameters so far, and the rules for combining them. The checks are those of
/// the SDKs.
struct QuerySpec: Equatable {
    private(set) var query = TreeQuery()
    private var isOrdered = false

    enum Limit: String { case first = "queryLimited(toFirst:)", last = "queryLimited(toLast:)" }

    /// The kind of a bound, named after the calls.
    enum BoundKind: String {
        case startingAt = "queryStarting(atValue:)"
        case startingAfter = "queryStarting(afterValue:)"
        case endingAt = "queryEnding(atValue:)"
        case endingBefore = "queryEnding(beforeValue:)"
        case equal = "queryEqual(toValue:)"
    }

    func limited(_ limit: Limit, to count: UInt) throws(Status) -> QuerySpec {
        guard query.limit == nil else {
            throw .invalidArgument("\(limit.rawValue) can't be called on a query that has a limit already.")
        }
        guard count >= 1, count <= UInt(Int32.max) else {
            throw .invalidArgument("\(limit.rawValue) needs a limit from 1 to \(Int32.max), but got \(count).")
        }
        var spec = self
        spec.query.limit = Int(count)
        spec.query.isLimitedToLast = limit == .last
        return spec
    }

    func ordered(by index: TreeQuery.Index, _ call: String) throws(Status) -> QuerySpec {
        guard !isOrdered else {
            throw .invalidArgument("\(call) can't be called on a query that has an order already.")
        }
        var spec = self
        spec.isOrdered = true
        spec.query.index = index
        // Bounds that were given before the order are checked against the order now.
        spec.query.start = try spec.query.start.map { (bound) throws(Status) in try spec.reordered(bound, call) }
        spec.query.end = try spec.query.end.map { (bound) throws(Status) in try spec.reordered(bound, call) }
        return spec
    }

    func ordered(byChild path: String) throws(Status) -> QuerySpec {
        let call = "queryOrdered(byChild:)"
        for (name, instead) in [("key", "Key"), ("priority", "Priority"), ("value", "Value")]
        where path == "$" + name || path == "." + name {
            throw .invalidArgument("\(call) can't order by \(path): use queryOrderedBy\(instead)().")
        }
        return try ordered(by: .child(try Paths.descendant(path, of: .root, call)), call)
    }

    /// - Parameter childKey: distinguishes children with the same value.
    func bounded(_ kind: BoundKind, _ value: Any?, childKey: String?) throws(Status) -> QuerySpec {
        let call = kind.rawValue
        let scalar = try self.value(value, call)
        var key: TreeKey?
        if let childKey {
            if query.index == .key {
                throw .invalidArgument("\(call) takes no child key when ordering by key: the value is the key.")
            }
            key = try Paths.key(childKey, call)
        }
        var spec = self
        if kind != .endingAt, kind != .endingBefore {
            guard spec.query.start == nil else { throw Self.repeated(call, "start") }
            spec.query.start = bound(
                scalar, key, isStart: true, isInclusive: kind != .startingAfter)
        }
        if kind != .startingAt, kind != .startingAfter {
            guard spec.query.end == nil else { throw Self.repeated(call, "end") }
            spec.query.end = bound(scalar, key, isStart: false, isInclusive: kind != .endingBefore)
        }
        return spec
    }

    private static func repeated(_ call: String, _ end: String) -> Status {
        .invalidArgument("\(call) can't be called on a query whose \(end) is set already.")
    }

    private func bound(_ value: Scalar?, _ key: TreeKey?, isStart: Bool, isInclusive: Bool) -> TreeQuery.Bound {
        if query.index == .key, let name = value?.string {
            return TreeQuery.Bound(value: nil, key: .key(TreeKey(name)), isInclusive: isInclusive)
        }
        if let key { return TreeQuery.Bound(value: value, key: .key(key), isInclusive: isInclusive) }
        // Without a key either all children with the value are included or all are excluded.
        return TreeQuery.Bound(value: value, key: isStart == isInclusive ? .min : .max, isInclusive: isInclusive)
    }

    /// A bound that was given while the order was by priority.
    private func reordered(_ bound: TreeQuery.Bound, _ call: String) throws(Status) -> TreeQuery.Bound {
        guard query.index == .key else {
            try check(bound.value, call)
            return bound
        }
        guard let name = bound.value?.string, bound.key == .min || bound.key == .max else {
            throw .invalidArgument("\(call) needs bounds that are strings, without a child key.")
        }
        return TreeQuery.Bound(value: nil, key: .key(TreeKey(name)), isInclusive: bound.isInclusive)
    }

    /// A bound's value, which must fit the order.
    private func value(_ value: Any?, _ call: String) throws(Status) -> Scalar? {
        let node = try ValueReader(call: call).node(value, at: .root)
        guard node.isEmpty || node.isLeaf, node.priority == nil, node.value?.isDeferred != true else {
            throw .invalidArgument("\(call) needs nil, a string, a number or a Boolean.")
        }
        try check(node.value, call)
        return node.value
    }

    private func check(_ value: Scalar?, _ call: String) throws(Status) {
        switch query.index {
        case .key:
            guard value?.string != nil else {
                throw .invalidArgument("\(call) needs a string when ordering by key.")
            }
        case .priority:
            guard value?.bool == nil else {
                throw .invalidArgument("\(call) needs nil, a string or a number when ordering by priority.")
            }
        case .value, .child: break
        }
    }
}
