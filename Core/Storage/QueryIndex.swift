import HearthModel
import HearthWire

/// Finds, among many queries that look at the same documents, those whose result a change of a document can concern.
///
/// Every alternative of a query is filed under one thing that it demands: a value of a field, an element of an array, or a
/// range of a field's values. A document concerns only those that are filed under what it has, so a commit costs what the
/// queries that it may touch cost, however many others there are. Queries that demand nothing of the kind are always looked at.
public struct QueryIndex<Element: AnyObject> {
    private typealias Elements = [ObjectIdentifier: Element]

    private struct FieldAnchors {
        /// By the encoded value.
        var values: [[UInt8]: Elements] = [:]
        /// By the encoded element of an array.
        var members: [[UInt8]: Elements] = [:]
        var ranges = IntervalIndex<Element>()

        var isEmpty: Bool { values.isEmpty && members.isEmpty && ranges.count == 0 }
    }

    /// What a query is filed under.
    private struct Anchors {
        var values: [(path: FieldPath, key: [UInt8])] = []
        var members: [(path: FieldPath, key: [UInt8])] = []
        var ranges: [FieldPath: KeyRange] = [:]
        var isAlways = false

        init(_ query: NormalizedQuery) {
            for conjunction in query.disjunction {
                // One that contradicts itself has no results.
                guard let constraints = Constraints(conjunction, query: query) else { continue }
                add(constraints)
            }
        }

        private mutating func add(_ constraints: Constraints) {
            for field in constraints.fields {
                guard let point = field.ranges.point else { continue }
                return values.append((field.path, point))
            }
            if let membership = constraints.memberships.first {
                return members.append((membership.path, IndexValue.encode(membership.value)))
            }
            guard let field = constraints.fields.first, let first = field.ranges.ranges.first,
                let last = field.ranges.ranges.last
            else {
                isAlways = true
                return
            }
            var hull = KeyRange(lower: first.lower, upper: last.upper)
            if let known = ranges[field.path] {
                if UTF8Order.compare(known.lower, hull.lower) < 0 { hull.lower = known.lower }
                hull.upper = ValueRanges.greater(known.upper, hull.upper)
            }
            ranges[field.path] = hull
        }
    }

    private var fields: [FieldPath: FieldAnchors] = [:]
    private var always: Elements = [:]
    public private(set) var count = 0

    public init() {}

    public var isEmpty: Bool { count == 0 }

    public mutating func insert(_ element: Element, for live: LiveQuery) {
        let id = ObjectIdentifier(element)
        let anchors = Anchors(live.query)
        count += 1
        if anchors.isAlways {
            always[id] = element
            return
        }
        for (path, key) in anchors.values {
            fields[path, default: FieldAnchors()].values[key, default: [:]][id] = element
        }
        for (path, key) in anchors.members {
            fields[path, default: FieldAnchors()].members[key, default: [:]][id] = element
        }
        for (path, range) in anchors.ranges { fields[path, default: FieldAnchors()].ranges.insert(element, range) }
    }

    /// - Parameter live: the query that the element was inserted for.
    public mutating func remove(_ element: Element, for live: LiveQuery) {
        let id = ObjectIdentifier(element)
        let anchors = Anchors(live.query)
        count -= 1
        if anchors.isAlways {
            always[id] = nil
            return
        }
        for (path, key) in anchors.values {
            fields[path]?.values[key]?[id] = nil
            if fields[path]?.values[key]?.isEmpty == true { fields[path]?.values[key] = nil }
        }
        for (path, key) in anchors.members {
            fields[path]?.members[key]?[id] = nil
            if fields[path]?.members[key]?.isEmpty == true { fields[path]?.members[key] = nil }
        }
        for path in anchors.ranges.keys { fields[path]?.ranges.remove(element) }
        for path in Set(anchors.values.map(\.path) + anchors.members.map(\.path) + anchors.ranges.keys)
        where fields[path]?.isEmpty == true {
            fields[path] = nil
        }
    }

    /// Those that may match the document before or after the change.
    public func candidates(for change: Change) throws(Status) -> [Element] {
        if fields.isEmpty { return Array(always.values) }
        var found = always
        for (path, anchors) in fields {
            var before: Value?
            for (place, state) in [change.before, change.after].enumerated() {
                guard let state, let value = try FieldsReader(state.fields).value(at: path) else { continue }
                // Most changes leave most fields as they are.
                if place == 0 { before = value } else if before == value { continue }
                Self.look(up: value, in: anchors, &found)
            }
        }
        return Array(found.values)
    }

    private static func look(up value: Value, in anchors: FieldAnchors, _ found: inout Elements) {
        let key = IndexValue.encode(value)
        if let elements = anchors.values[key] { found.merge(elements) { $1 } }
        anchors.ranges.forEach(containing: key) { found[ObjectIdentifier($0)] = $0 }
        guard !anchors.members.isEmpty, case .array(let members) = value else { return }
        for member in members {
            if let elements = anchors.members[IndexValue.encode(member)] { found.merge(elements) { $1 } }
        }
    }
}
