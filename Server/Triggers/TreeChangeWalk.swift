import HearthEvents
import HearthModel
import HearthTree
import HearthTreeStorage

/// Finds the locations whose values a write changes and that patterns match: above what is written, there, and below it.
///
/// It costs what is written and replaced, and for a location above a change the data of that location, because an event
/// has all of it. One location at a time is in memory.
struct TreeChangeWalk {
    struct Found {
        let path: TreePath
        /// The indexes of the triggers whose patterns match.
        let triggers: [Int]
        let kind: ChangeKind
        let values: Values
    }

    enum Values {
        case nodes(before: Node, after: Node)
        /// The value before is larger than `bytesMax`.
        case tooLarge
        /// A record of it is damaged.
        case unreadable(Status)
    }

    private let patterns: TreePatterns<Int>
    private let view: TreeView
    private let bytesMax: Int
    private let wants: (_ trigger: Int, ChangeKind) -> Bool

    /// How many keys of a location are read at once.
    private static let keysMax = 1000
    /// So many keys that patterns name are looked for, whatever the number of children.
    private static let listedMax = 4

    /// - Parameters:
    ///   - view: the tree before the write.
    ///   - bytesMax: of a value before that an event may have, as `TreeView.node(at:sizeBytesMax:)` counts.
    ///   - wants: whether a trigger wants changes of a kind. What nobody wants isn't read.
    init(
        _ patterns: TreePatterns<Int>, before view: TreeView, bytesMax: Int,
        wants: @escaping (_ trigger: Int, ChangeKind) -> Bool
    ) {
        self.patterns = patterns
        self.view = view
        self.bytesMax = bytesMax
        self.wants = wants
    }

    /// Calls `found` once for each location, in no particular order.
    ///
    /// Two values that are too large to be compared, or can't be read, count as different.
    /// - Throws: what `found` throws, and what the store throws.
    func run(_ changes: [TreeChange], _ found: (Found) throws(Status) -> Void) throws(Status) {
        try visit(ChangeTree(changes), patterns.start, .root, found)
    }

    private func visit(
        _ changes: ChangeTree, _ position: TreePatterns<Int>.Position, _ path: TreePath,
        _ found: (Found) throws(Status) -> Void
    ) throws(Status) {
        if let node = changes.replacement {
            return try replace(by: node, position, path, existed: try view.exists(at: path), found)
        }
        if patterns.hasElements(at: position) { try change(changes, position, path, found) }
        for (key, below) in changes.below {
            let next = patterns.position(after: position, key)
            if !next.isEmpty { try visit(below, next, path.child(key), found) }
        }
    }

    // MARK: Above what is written

    private func change(
        _ changes: ChangeTree, _ position: TreePatterns<Int>.Position, _ path: TreePath,
        _ found: (Found) throws(Status) -> Void
    ) throws(Status) {
        let existed = try view.exists(at: path)
        let exists = try exists(changes, path)
        guard let (kind, triggers) = triggers(at: position, existed, exists) else { return }
        if kind == .updated, try !differs(changes, path) { return }
        let values: Values
        switch try before(path, existed) {
        case .success(let before): values = .nodes(before: before, after: changes.applied(to: before))
        case .failure(let status): values = Self.unknown(status)
        }
        try found(Found(path: path, triggers: triggers, kind: kind, values: values))
    }

    /// Whether a location exists after changes below it.
    private func exists(_ changes: ChangeTree, _ path: TreePath) throws(Status) -> Bool {
        if changes.hasContent { return true }
        return try TreeOverlay(base: TreeBelow(tree: view, path: path), changes: changes).exists(at: .root)
    }

    /// Whether one of the changes at or below a location changes a value.
    private func differs(_ changes: ChangeTree, _ path: TreePath) throws(Status) -> Bool {
        guard let node = changes.replacement else {
            for (key, below) in changes.below where try differs(below, path.child(key)) { return true }
            return false
        }
        let existed = try view.exists(at: path)
        if !existed || node.isEmpty { return existed != !node.isEmpty }
        switch try before(path, existed) {
        case .success(let before): return !TreeEvent.isSame(before, node)
        case .failure: return try !hasSameHash(node, path)
        }
    }

    // MARK: At and below what is written

    private func replace(
        by node: Node, _ position: TreePatterns<Int>.Position, _ path: TreePath, existed: Bool,
        _ found: (Found) throws(Status) -> Void
    ) throws(Status) {
        if !existed, node.isEmpty { return }
        try replaceValue(by: node, position, path, existed, found)
        guard patterns.goesOn(at: position) else { return }
        func child(_ key: TreeKey, _ after: Node, existed: Bool) throws(Status) {
            let next = patterns.position(after: position, key)
            if next.isEmpty { return }
            try replace(by: after, next, path.child(key), existed: existed, found)
        }
        if let keys = try fewKeys(at: position, node, path, existed: existed) {
            for key in keys {
                let childExisted = existed ? try view.exists(at: path.child(key)) : false
                try child(key, node.child(key), existed: childExisted)
            }
            return
        }
        // Both sides are in the order of keys.
        var after = node.children.makeIterator()
        var next = after.next()
        var last: TreeKey?
        var hasMore = existed
        while hasMore {
            let keys = try view.children(of: path, after: last, limit: Self.keysMax)
            for key in keys {
                while let new = next, new.key < key {
                    try child(new.key, new.node, existed: false)
                    next = after.next()
                }
                if let new = next, new.key == key {
                    try child(key, new.node, existed: true)
                    next = after.next()
                } else {
                    try child(key, .empty, existed: true)
                }
            }
            last = keys.last
            hasMore = keys.count == Self.keysMax
        }
        while let new = next {
            try child(new.key, new.node, existed: false)
            next = after.next()
        }
    }

    /// The keys that may follow; nil when that isn't a list, or when the location has fewer children, before the write and
    /// after it. Many patterns may name keys that none of many small locations has.
    private func fewKeys(
        at position: TreePatterns<Int>.Position, _ node: Node, _ path: TreePath, existed: Bool
    ) throws(Status) -> Set<TreeKey>? {
        guard let count = patterns.keyCount(at: position) else { return nil }
        if count > Self.listedMax, node.children.count <= count {
            if !existed { return nil }
            if try view.children(of: path, limit: count + 1).count <= count { return nil }
        }
        return patterns.keys(at: position)
    }

    private func replaceValue(
        by node: Node, _ position: TreePatterns<Int>.Position, _ path: TreePath, _ existed: Bool,
        _ found: (Found) throws(Status) -> Void
    ) throws(Status) {
        guard patterns.hasElements(at: position), let (kind, triggers) = triggers(at: position, existed, !node.isEmpty)
        else { return }
        let values: Values
        switch try before(path, existed) {
        case .success(let before):
            if TreeEvent.isSame(before, node) { return }
            values = .nodes(before: before, after: node)
        case .failure(let status):
            if try hasSameHash(node, path) { return }
            values = Self.unknown(status)
        }
        try found(Found(path: path, triggers: triggers, kind: kind, values: values))
    }

    // MARK: Values

    private func triggers(
        at position: TreePatterns<Int>.Position, _ existed: Bool, _ exists: Bool
    ) -> (ChangeKind, [Int])? {
        let kind: ChangeKind
        switch (existed, exists) {
        case (false, false): return nil
        case (false, true): kind = .created
        case (true, false): kind = .deleted
        case (true, true): kind = .updated
        }
        let wanting = patterns.elements(at: position).filter { wants($0, kind) }
        return wanting.isEmpty ? nil : (kind, wanting)
    }

    /// The value before, or why it can't be had.
    /// - Throws: UNAVAILABLE: nothing can be read now.
    private func before(_ path: TreePath, _ existed: Bool) throws(Status) -> Result<Node, Status> {
        if !existed { return .success(.empty) }
        do throws(Status) {
            return .success(try view.node(at: path, sizeBytesMax: bytesMax))
        } catch {
            if error.code == .unavailable { throw error }
            return .failure(error)
        }
    }

    private static func unknown(_ status: Status) -> Values {
        status.code == .resourceExhausted ? .tooLarge : .unreadable(status)
    }

    /// Whether a value that can't be had here is the same, with its priorities.
    private func hasSameHash(_ node: Node, _ path: TreePath) throws(Status) -> Bool {
        if node.isEmpty { return false }
        do throws(Status) {
            return UTF8Order.equal(try view.hash(at: path), node.hash)
        } catch {
            if error.code == .unavailable { throw error }
            return false
        }
    }
}

/// The part of a tree below a location.
private struct TreeBelow: TreeData {
    let tree: TreeView
    let path: TreePath

    func value(at path: TreePath) throws(Status) -> Scalar? { try tree.value(at: self.path + path) }
    func leaf(at path: TreePath) throws(Status) -> Leaf? { try tree.leaf(at: self.path + path) }
    func priority(at path: TreePath) throws(Status) -> Scalar? { try tree.priority(at: self.path + path) }
    func hasChildren(at path: TreePath) throws(Status) -> Bool { try tree.hasChildren(at: self.path + path) }
    func exists(at path: TreePath) throws(Status) -> Bool { try tree.exists(at: self.path + path) }
    func node(at path: TreePath) throws(Status) -> Node { try tree.node(at: self.path + path) }

    func keys(at path: TreePath, after key: TreeKey?, limit: Int) throws(Status) -> [TreeKey] {
        try tree.keys(at: self.path + path, after: key, limit: limit)
    }
}
