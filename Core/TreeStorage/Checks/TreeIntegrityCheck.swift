import HearthModel
import HearthEngine
import HearthTree

/// Checks whether all stored data is consistent: for tools, and after crashes. Reads everything once.
package struct TreeIntegrityCheck {
    private let view: TreeView
    private let max: Int
    private var findings: [String] = []

    /// The last leaf and the last priority of an inner node in the walk.
    private var leaf: [UInt8] = []
    private var inner: [UInt8] = []
    private var priorities = 0
    private var strings = 0
    /// By the index's position: the last child, and the number of children.
    private var children: [(last: [UInt8], count: Int)]
    private let indexes: [TreeIndex]

    private init(_ view: TreeView, max: Int) {
        self.view = view
        self.max = max
        indexes = view.indexes.all.filter { $0.state == .ready }
        children = Array(repeating: ([], 0), count: indexes.count)
    }

    /// - Returns: the errors, at most `max` sentences; empty when there are none.
    package static func run(_ view: TreeView, max: Int) throws(Status) -> [String] {
        var check = TreeIntegrityCheck(view, max: max)
        try check.walk()
        if check.findings.count < max { try check.compareCounts() }
        return check.findings
    }

    private mutating func walk() throws(Status) {
        let cursor = try view.snapshot.scan(
            .entries, KeyRange(prefix: [PathCode.Space.records]), reverse: false, values: true)
        defer { cursor.close() }
        while findings.count < max, try cursor.next() {
            let location = cursor.key
            guard let ends = ends(of: location), let record = try? TreeRecord(stored: cursor.value) else {
                find("A record is damaged", location)
                continue
            }
            try check(record, location, ends)
        }
        if !inner.isEmpty { find("A node without children has a priority", inner) }
    }

    /// The ends of a location's keys; nil when the bytes are no location.
    private func ends(of location: [UInt8]) -> [Int]? {
        var ends: [Int] = []
        var position = 1
        while position < location.count {
            guard let end = try? PathCode.end(of: location, from: position) else { return nil }
            ends.append(end)
            position = end
        }
        return ends
    }

    private mutating func check(_ record: TreeRecord, _ location: [UInt8], _ ends: [Int]) throws(Status) {
        if !leaf.isEmpty, location.starts(with: leaf) { find("There is something below a leaf", location) }
        if !inner.isEmpty, !location.starts(with: inner) { find("A node without children has a priority", inner) }
        inner = record.isInner ? location : []
        if !record.isInner { leaf = location }
        try checkString(record, location)
        if record.isInner, !record.hasPriority { find("A record contains neither a value nor a priority", location) }
        if record.hasPriority, let last = ends.last { try checkPriority(record, location, from: last, ends) }
        for (position, index) in indexes.enumerated() where ends.count > index.pattern.count {
            try checkIndex(position, index, location, ends)
        }
    }

    private mutating func checkString(_ record: TreeRecord, _ location: [UInt8]) throws(Status) {
        guard record.isStoredElsewhere else { return }
        strings += 1
        let string = try view.snapshot.get(.documents, location)
        if string?.count != (try record.valueSizeBytes) {
            find("A long string is missing or has another length", location)
        }
    }

    private mutating func checkPriority(
        _ record: TreeRecord, _ location: [UInt8], from last: Int, _ ends: [Int]
    ) throws(Status) {
        priorities += 1
        let start = ends.count > 1 ? ends[ends.count - 2] : 1
        guard let priority = try record.priority else { return }
        let entry = TreeMutation.priorityEntry(
            Array(location[..<start]), priority, PathCode.key(location[start..<last]))
        if try view.snapshot.get(.entries, entry) == nil { find("A priority has no entry", location) }
    }

    /// Is called at the first record of each child that an index has.
    private mutating func checkIndex(
        _ position: Int, _ index: TreeIndex, _ location: [UInt8], _ ends: [Int]
    ) throws(Status) {
        let depth = index.pattern.count
        let child = Array(location[..<ends[depth]])
        if child == children[position].last { return }
        let start = depth > 0 ? ends[depth - 1] : 1
        var from = 1
        for (part, end) in zip(index.pattern, ends) {
            if let part, part != PathCode.key(location[from..<end]) { return }
            from = end
        }
        children[position].last = child
        children[position].count += 1
        guard let value = try view.indexed(child, by: index) else { return }
        let entry = index.entry(Array(location[..<start]), value, PathCode.key(location[start..<ends[depth]]))
        if try view.snapshot.get(.entries, entry) == nil {
            find("A child has no entry in the index \(index.id)", location)
        }
    }

    /// All expected records were found; the numbers show the unexpected ones.
    private mutating func compareCounts() throws(Status) {
        var expected: [(String, Keyspace, KeyRange, Int)] = [
            (
                "entries of priorities", .entries,
                KeyRange(prefix: TreeMutation.priorityPrefix([PathCode.Space.records])), priorities
            ),
            ("long strings", .documents, KeyRange(prefix: [PathCode.Space.records]), strings),
        ]
        for (index, child) in zip(indexes, children) {
            expected.append(
                (
                    "entries in the index \(index.id)", .entries,
                    KeyRange(prefix: index.prefix([PathCode.Space.records])), child.count
                ))
        }
        for (what, keyspace, range, count) in expected {
            let found = try view.snapshot.count(keyspace, range, limit: .max)
            if found != count { findings.append("There are \(found) \(what), there should be \(count).") }
        }
    }

    private mutating func find(_ what: String, _ location: [UInt8]) {
        if findings.count >= max { return }
        var keys: [TreeKey] = []
        var from = 1
        for end in ends(of: location) ?? [] {
            keys.append(PathCode.key(location[from..<end]))
            from = end
        }
        findings.append("\(what): \(TreePath(keys: keys)).")
    }
}
