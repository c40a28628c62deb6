import HearthEngine
import HearthModel
import HearthWire

/// Finds, among many queries over the same documents, those whose result a change of a document can concern.
///
/// Every alternative of a query is filed under one condition: a value of a field, an element of an array, a range of a
/// field's values or of names. A document concerns only the queries that are filed under its own properties. So a
/// commit costs as much as its own fields and the queries that it may touch, however many other queries there are and
/// whatever fields they name. Queries without such a condition are always checked.
package struct QueryIndex<Element: AnyObject> {
    private typealias Elements = [ObjectIdentifier: Element]

    private struct FieldAnchors {
        /// By the encoded value.
        var values = ByteTable<Elements>()
        /// By the encoded element of an array.
        var members = ByteTable<Elements>()
        var ranges = IntervalIndex<Element>()

        var isEmpty: Bool { values.isEmpty && members.isEmpty && ranges.count == 0 }
    }

    /// The field paths that queries are filed under, segment by segment, so that a document's fields can be looked up.
    /// Names are compared by their bytes, as everywhere.
    private struct PathTree {
        var children: [[UInt8]: PathTree] = [:]
        /// The whole path, where one ends.
        var path: FieldPath?

        mutating func insert(_ path: FieldPath, _ depth: Int = 0) {
            if depth == path.segments.count {
                self.path = path
            } else {
                children[Array(path.segments[depth].utf8), default: PathTree()].insert(path, depth + 1)
            }
        }

        mutating func remove(_ path: FieldPath, _ depth: Int = 0) {
            if depth == path.segments.count {
                self.path = nil
                return
            }
            let name = Array(path.segments[depth].utf8)
            children[name]?.remove(path, depth + 1)
            if let child = children[name], child.path == nil, child.children.isEmpty { children[name] = nil }
        }
    }

    /// Up to this many paths are searched in a document one by one.
    private static var searchedPathsMax: Int { 4 }

    private var fields: [FieldPath: FieldAnchors] = [:]
    private var paths = PathTree()
    private var names = IntervalIndex<Element>()
    private var always: Elements = [:]
    /// The keys under which each element is filed.
    private var anchors: [ObjectIdentifier: QueryAnchors] = [:]

    package var count: Int { anchors.count }

    package init() {}

    package var isEmpty: Bool { count == 0 }

    package mutating func insert(_ element: Element, for live: LiveQuery) {
        insert(element, for: live.query, withinCursors: true)
    }

    /// - Parameter withinCursors: false when changes outside of the query's cursors concern it as well.
    mutating func insert(_ element: Element, for query: NormalizedQuery, withinCursors: Bool) {
        let id = ObjectIdentifier(element)
        // Of several values that a query requires, the one that the fewest others require.
        let anchors = QueryAnchors(query, withinCursors: withinCursors) { path, key in
            fields[path]?.values[key]?.count ?? 0
        }
        self.anchors[id] = anchors
        if anchors.isAlways {
            always[id] = element
            return
        }
        for (path, key) in anchors.values { anchor(at: path) { $0.values[key, default: [:]][id] = element } }
        for (path, key) in anchors.members { anchor(at: path) { $0.members[key, default: [:]][id] = element } }
        for (path, range) in anchors.ranges { anchor(at: path) { $0.ranges.insert(element, range) } }
        if let range = anchors.names { names.insert(element, range) }
    }

    private mutating func anchor(at path: FieldPath, _ file: (inout FieldAnchors) -> Void) {
        if fields[path] == nil { paths.insert(path) }
        file(&fields[path, default: FieldAnchors()])
    }

    package mutating func remove(_ element: Element) {
        let id = ObjectIdentifier(element)
        guard let anchors = anchors.removeValue(forKey: id) else { return }
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
        if anchors.names != nil { names.remove(element) }
        for path in Set(anchors.values.map(\.path) + anchors.members.map(\.path) + anchors.ranges.keys)
        where fields[path]?.isEmpty == true {
            fields[path] = nil
            paths.remove(path)
        }
    }

    // MARK: Changes

    /// Those that may match the document before or after the change.
    package func candidates(for change: Change) throws(Status) -> [Element] {
        var found = always
        _ = try forEachAnchor(at: change) { value, anchors in
            Self.find(value, in: anchors, &found)
            return false
        }
        if names.count > 0, let key = DocumentKey.toPathKey(change.key) {
            names.forEach(containing: key) { found[ObjectIdentifier($0)] = $0 }
        }
        return Array(found.values)
    }

    /// Whether there are candidates: stops at the first one.
    package func hasCandidates(for change: Change) throws(Status) -> Bool {
        if !always.isEmpty { return true }
        if names.count > 0, let key = DocumentKey.toPathKey(change.key), names.holds(key) { return true }
        return try forEachAnchor(at: change) { value, anchors in Self.isAnchored(value, in: anchors) }
    }

    /// One side of a change in a map: its reader and the map's entries.
    private typealias Side = (reader: FieldsReader, entries: [FieldsReader.Entry])

    /// Calls `body` with the values that the document has, before or after, where queries are filed, until it returns
    /// true.
    private func forEachAnchor(
        at change: Change, _ body: (Value, FieldAnchors) -> Bool
    ) throws(Status) -> Bool {
        if fields.isEmpty { return false }
        let readers = [change.before, change.after].compactMap { $0.map { FieldsReader($0.fields) } }
        if fields.count <= Self.searchedPathsMax {
            for (path, anchors) in fields {
                var ranges: [(FieldsReader, Range<Int>)] = []
                for reader in readers { if let range = try reader.locate(path) { ranges.append((reader, range)) } }
                if try forEachAnchor(at: ranges, anchors, body) { return true }
            }
            return false
        }
        var sides: [Side] = []
        for reader in readers { sides.append((reader, try reader.entries())) }
        return try forEachAnchor(at: sides, paths, body)
    }

    /// Walks over the fields of a document, or of a map in it, and follows those that queries name.
    private func forEachAnchor(
        at sides: [Side], _ tree: PathTree, _ body: (Value, FieldAnchors) -> Bool
    ) throws(Status) -> Bool {
        var values: [[UInt8]: [(FieldsReader, Range<Int>)]] = [:]
        for side in sides {
            for entry in side.entries {
                let name = Array(side.reader.bytes[entry.name])
                if tree.children[name] != nil { values[name, default: []].append((side.reader, entry.value)) }
            }
        }
        for (name, ranges) in values {
            guard let child = tree.children[name] else { continue }
            if let path = child.path, let anchors = fields[path], try forEachAnchor(at: ranges, anchors, body) {
                return true
            }
            if child.children.isEmpty { continue }
            var below: [Side] = []
            for (reader, range) in Self.areEqual(ranges) ? ranges.prefix(1) : ranges[...] {
                below.append((reader, try reader.entries(ofMap: range)))
            }
            if try forEachAnchor(at: below, child, body) { return true }
        }
        return false
    }

    /// Most changes leave most fields unchanged: equal values are examined once.
    private func forEachAnchor(
        at ranges: [(FieldsReader, Range<Int>)], _ anchors: FieldAnchors, _ body: (Value, FieldAnchors) -> Bool
    ) throws(Status) -> Bool {
        for (reader, range) in Self.areEqual(ranges) ? ranges.prefix(1) : ranges[...] {
            if body(try reader.value(range), anchors) { return true }
        }
        return false
    }

    private static func areEqual(_ ranges: [(FieldsReader, Range<Int>)]) -> Bool {
        guard ranges.count == 2 else { return false }
        return ranges[0].0.bytes[ranges[0].1] == ranges[1].0.bytes[ranges[1].1]
    }

    private static func find(_ value: Value, in anchors: FieldAnchors, _ found: inout Elements) {
        let key = IndexValue.encode(value)
        if let elements = anchors.values[key] { found.merge(elements) { $1 } }
        anchors.ranges.forEach(containing: key) { found[ObjectIdentifier($0)] = $0 }
        guard !anchors.members.isEmpty, case .array(let members) = value else { return }
        for member in members {
            if let elements = anchors.members[IndexValue.encode(member)] { found.merge(elements) { $1 } }
        }
    }

    private static func isAnchored(_ value: Value, in anchors: FieldAnchors) -> Bool {
        let key = IndexValue.encode(value)
        if anchors.values[key] != nil || anchors.ranges.holds(key) { return true }
        guard !anchors.members.isEmpty, case .array(let members) = value else { return false }
        return members.contains { anchors.members[IndexValue.encode($0)] != nil }
    }
}
