import HearthModel
import HearthCache
import HearthTree

/// Trees on disk: one row per leaf and one per priority.
///
/// Several trees are stored side by side in *spaces*: 0 is the server's tree, each other number the window of one
/// query. The path of a row is its keys, each followed by a zero byte, which no key contains; the last key of a
/// priority is `.priority`. The rows below a location are those whose path begins with the location's path. The value
/// is a type letter and its content: nothing for `t` and `f` (Booleans), 8 bytes, most significant first, for `i`
/// (integer) and `d` (the bits of a double), the string for `s`.
struct DiskLeaves {
    let database: CacheDatabase

    static let tree: Int64 = 0

    // MARK: Reading

    func node(at path: TreePath, in space: Int64) throws(Status) -> Node {
        let (low, high) = Self.range(path)
        var rows: [Row] = []
        try database.rows(
            "SELECT path, value FROM leaves WHERE space = ? AND path >= ? AND path < ? ORDER BY path", .integer(space),
            .bytes(low), .bytes(high)
        ) { row throws(Status) in
            rows.append(Row(path: Array(row.raw(0).dropFirst(low.count)), value: try scalar(row.raw(1))))
            return true
        }
        return Self.node(rows[...], depth: 0)
    }

    private struct Row {
        let path: [UInt8]
        let value: Scalar
    }

    /// - Parameter depth: the length in bytes of the paths in the rows.
    private static func node(_ rows: ArraySlice<Row>, depth: Int) -> Node {
        var rows = rows
        if let first = rows.first, first.path.count == depth {
            rows = rows.dropFirst()
            let priority = rows.first { $0.path.dropFirst(depth).elementsEqual(priorityKey) }
            return Node(first.value, priority: priority?.value)
        }
        var children: [(TreeKey, Node)] = []
        var priority: Scalar?
        while let first = rows.first, let end = first.path[depth...].firstIndex(of: 0) {
            let key = first.path[depth...end]
            let next = rows.firstIndex { !$0.path[depth...].starts(with: key) } ?? rows.endIndex
            if key.elementsEqual(priorityKey) {
                priority = first.value
            } else {
                let name = String(decoding: key.dropLast(), as: UTF8.self)
                children.append((TreeKey(name), node(rows[..<next], depth: end + 1)))
            }
            rows = rows[next...]
        }
        return Node(children: children, priority: priority)
    }

    // MARK: Writing

    /// Applies all changes together: first new values, then deletions, then priorities.
    func apply(_ changes: [TreeChange], in space: Int64) throws(Status) {
        for change in changes where !change.isPriority && !change.node.isEmpty { try put(change, in: space) }
        for change in changes where !change.isPriority && change.node.isEmpty { try clear(change.path, in: space) }
        for change in changes where change.isPriority { try setPriority(change, in: space) }
    }

    private func put(_ change: TreeChange, in space: Int64) throws(Status) {
        try removeRange(change.path, in: space)
        var path: [UInt8] = []
        for key in change.path.keys {
            // A leaf above becomes a node with children and keeps its priority.
            try database.run("DELETE FROM leaves WHERE space = ? AND path = ?", .integer(space), .bytes(path))
            Self.append(key, to: &path)
        }
        try insert(change.node, at: path, in: space)
    }

    private func insert(_ node: Node, at path: [UInt8], in space: Int64) throws(Status) {
        if let value = node.value { try insert(value, at: path, in: space) }
        if let priority = node.priority { try insert(priority, at: path + Self.priorityKey, in: space) }
        for (key, child) in node.children {
            var path = path
            Self.append(key, to: &path)
            try insert(child, at: path, in: space)
        }
    }

    private func insert(_ value: Scalar, at path: [UInt8], in space: Int64) throws(Status) {
        try database.run(
            "INSERT OR REPLACE INTO leaves (space, path, value) VALUES (?, ?, ?)", .integer(space), .bytes(path),
            .bytes(Self.bytes(value)))
    }

    private func clear(_ path: TreePath, in space: Int64) throws(Status) {
        try removeRange(path, in: space)
        // A node without children does not exist, and has no priority.
        var location = path
        while let parent = location.parent {
            location = parent
            let key = Self.bytes(location) + Self.priorityKey
            if try hasContent(at: location, in: space) { return }
            try database.run("DELETE FROM leaves WHERE space = ? AND path = ?", .integer(space), .bytes(key))
        }
    }

    /// Whether a location has data other than a priority.
    private func hasContent(at path: TreePath, in space: Int64) throws(Status) -> Bool {
        let (low, high) = Self.range(path)
        return try database.first(
            "SELECT 1 FROM leaves WHERE space = ? AND path >= ? AND path < ? AND path <> ? LIMIT 1", .integer(space),
            .bytes(low), .bytes(high), .bytes(low + Self.priorityKey)
        ) { _ in true } ?? false
    }

    private func setPriority(_ change: TreeChange, in space: Int64) throws(Status) {
        guard try hasContent(at: change.location, in: space) else { return }
        let path = Self.bytes(change.path)
        if let priority = change.node.value {
            try insert(priority, at: path, in: space)
        } else {
            try database.run("DELETE FROM leaves WHERE space = ? AND path = ?", .integer(space), .bytes(path))
        }
    }

    private func removeRange(_ path: TreePath, in space: Int64) throws(Status) {
        let (low, high) = Self.range(path)
        try removeRange(low, high, in: space)
    }

    private func removeRange(_ low: [UInt8], _ high: [UInt8], in space: Int64) throws(Status) {
        try database.run(
            "DELETE FROM leaves WHERE space = ? AND path >= ? AND path < ?", .integer(space), .bytes(low), .bytes(high))
    }

    /// Deletes a part of the server's tree, except the data at and below some locations in it.
    func remove(at path: TreePath, keeping kept: [TreePath]) throws(Status) {
        let (first, high) = Self.range(path)
        var low = first
        for (keptLow, keptHigh) in kept.map(Self.range).sorted(by: { $0.0.lexicographicallyPrecedes($1.0) }) {
            try removeRange(low, keptLow, in: Self.tree)
            low = keptHigh
        }
        if low.lexicographicallyPrecedes(high) { try removeRange(low, high, in: Self.tree) }
    }

    func removeAll(in space: Int64) throws(Status) {
        try database.run("DELETE FROM leaves WHERE space = ?", .integer(space))
    }

    func sizeBytes() throws(Status) -> Int64 {
        try database.first("SELECT coalesce(sum(length(path) + length(value) + 8), 0) FROM leaves") { $0.integer(0) }
            ?? 0
    }

    // MARK: Forms

    private static let priorityKey = Array(".priority".utf8) + [0]

    private static func append(_ key: TreeKey, to path: inout [UInt8]) {
        path.append(contentsOf: key.string.utf8)
        path.append(0)
    }

    static func bytes(_ path: TreePath) -> [UInt8] {
        var bytes: [UInt8] = []
        for key in path.keys { append(key, to: &bytes) }
        return bytes
    }

    /// The key range of the rows at and below a location; the end is exclusive.
    private static func range(_ path: TreePath) -> (low: [UInt8], high: [UInt8]) {
        let low = bytes(path)
        // UTF-8 does not use the byte FF.
        return (low, low.isEmpty ? [0xFF] : low.dropLast() + [1])
    }

    private static func bytes(_ value: Scalar) -> [UInt8] {
        switch value {
        case .bool(let value): [UInt8(ascii: value ? "t" : "f")]
        case .integer(let value): number("i", UInt64(bitPattern: value))
        case .double(let value): number("d", value.bitPattern)
        case .string(let string): [UInt8(ascii: "s")] + string.utf8
        case .deferred: preconditionFailure("Server data has no values that are still to be worked out.")
        }
    }

    private static func number(_ letter: Unicode.Scalar, _ bits: UInt64) -> [UInt8] {
        [UInt8(ascii: letter)] + (0..<8).map { UInt8(truncatingIfNeeded: bits >> (56 - 8 * $0)) }
    }

    /// - Throws: DATA_LOSS when the bytes are not a value.
    private func scalar(_ bytes: UnsafeRawBufferPointer) throws(Status) -> Scalar {
        let rest = bytes.dropFirst()
        switch (bytes.first, rest.count) {
        case (UInt8(ascii: "t"), 0): return true
        case (UInt8(ascii: "f"), 0): return false
        case (UInt8(ascii: "i"), 8): return .integer(Int64(bitPattern: rest.reduce(0) { $0 << 8 | UInt64($1) }))
        case (UInt8(ascii: "d"), 8):
            if let number = Scalar.number(Double(bitPattern: rest.reduce(0) { $0 << 8 | UInt64($1) })) { return number }
        case (UInt8(ascii: "s"), _): return .string(String(decoding: rest, as: UTF8.self))
        default: break
        }
        throw database.damaged("The cache \(database.path) has a value of an unknown form.")
    }
}
