import HearthModel
import HearthTree

/// The reads of a tree and their results. They show later whether another tree would give the same results.
///
/// Filled by one thread, and then passed to another.
final class TreeReads: @unchecked Sendable {
    private final class Entry {
        var children: [TreeKey: Entry] = [:]
        // Nil for properties that were not read.
        var value: Scalar??
        var priority: Scalar??
        var hasChildren: Bool?
        var exists: Bool?
        /// Whether the whole subtree counts as read.
        var isWhole = false

        var count: Int { children.values.reduce(1) { $0 + $1.count } }
    }

    private let root = Entry()
    /// The number of locations that are stored; above it only their parents are stored.
    private(set) var count = 1
    private let countMax: Int

    /// The number of locations that are read again. When more have been touched, the result is that the tree is
    /// different.
    private static let checkedMax = 256

    init(countMax: Int = Limits.treeReadsMax) { self.countMax = countMax }

    // MARK: Recording

    /// The entry of a location; nil when its whole subtree counts as read.
    private func location(_ path: TreePath) -> Entry? {
        var location = root
        for key in path.keys {
            if location.isWhole { return nil }
            if let known = location.children[key] {
                location = known
                continue
            }
            let made = Entry()
            location.children[key] = made
            location = made
            count += 1
        }
        if location.isWhole { return nil }
        if count <= countMax { return location }
        gather(around: path)
        return nil
    }

    /// Merges the entries of single locations near a path, from its parent on, until there is capacity.
    private func gather(around path: TreePath) {
        for depth in (0..<max(1, path.count)).reversed() where count > countMax {
            var location = root
            for key in path.keys[..<depth] {
                guard let next = location.children[key] else { break }
                location = next
            }
            count -= location.count - 1
            location.children = [:]
            location.isWhole = true
        }
    }

    fileprivate func noteAll(at path: TreePath) {
        guard let location = location(path) else { return }
        count -= location.count - 1
        location.children = [:]
        location.isWhole = true
    }

    fileprivate func note(value: Scalar?, at path: TreePath) { location(path)?.value = .some(value) }
    fileprivate func note(priority: Scalar?, at path: TreePath) { location(path)?.priority = .some(priority) }
    fileprivate func note(hasChildren: Bool, at path: TreePath) { location(path)?.hasChildren = hasChildren }
    fileprivate func note(exists: Bool, at path: TreePath) { location(path)?.exists = exists }

    // MARK: Comparing

    /// Whether a tree that differs at most at some locations gives the same results.
    func areSame(in view: TreeView, changedAt changes: [TreePath]) throws(Status) -> Bool {
        var checked: Set<ObjectIdentifier> = []
        for change in changes {
            var location: Entry? = root
            var path = TreePath.root
            for key in change.keys {
                guard let here = location else { break }
                if try !isSame(here, path, view, &checked) { return false }
                location = here.children[key]
                path = path.child(key)
            }
            if let location, try !areSame(below: location, path, view, &checked) { return false }
        }
        return true
    }

    private func areSame(
        below location: Entry, _ path: TreePath, _ view: TreeView, _ checked: inout Set<ObjectIdentifier>
    ) throws(Status) -> Bool {
        if try !isSame(location, path, view, &checked) { return false }
        for (key, child) in location.children where try !areSame(below: child, path.child(key), view, &checked) {
            return false
        }
        return true
    }

    private func isSame(
        _ location: Entry, _ path: TreePath, _ view: TreeView, _ checked: inout Set<ObjectIdentifier>
    ) throws(Status) -> Bool {
        if location.isWhole { return false }
        if !checked.insert(ObjectIdentifier(location)).inserted { return true }
        if checked.count > Self.checkedMax { return false }
        if let value = location.value, try view.value(at: path) != value { return false }
        if let priority = location.priority, try view.priority(at: path) != priority { return false }
        if let exists = location.exists, try view.exists(at: path) != exists { return false }
        if let hasChildren = location.hasChildren, try view.hasChildren(at: path) != hasChildren { return false }
        return true
    }
}

/// A tree that records its reads.
struct ObservedTree: TreeData {
    let view: TreeView
    let reads: TreeReads

    func value(at path: TreePath) throws(Status) -> Scalar? {
        let value = try view.value(at: path)
        // Its bytes are not kept for it.
        if let string = value?.string, string.utf8.count > Self.stringBytesMax {
            reads.noteAll(at: path)
        } else {
            reads.note(value: value, at: path)
        }
        return value
    }

    private static let stringBytesMax = 256

    func leaf(at path: TreePath) throws(Status) -> Leaf? {
        let leaf = try view.leaf(at: path)
        switch leaf {
        case nil: reads.note(value: nil, at: path)
        case .value(.string(let string)) where string.utf8.count > Self.stringBytesMax: reads.noteAll(at: path)
        case .value(let value): reads.note(value: value, at: path)
        case .largeString: reads.noteAll(at: path)
        }
        return leaf
    }

    func priority(at path: TreePath) throws(Status) -> Scalar? {
        let priority = try view.priority(at: path)
        if let string = priority?.string, string.utf8.count > Self.stringBytesMax {
            reads.noteAll(at: path)
        } else {
            reads.note(priority: priority, at: path)
        }
        return priority
    }

    func hasChildren(at path: TreePath) throws(Status) -> Bool {
        let hasChildren = try view.hasChildren(at: path)
        reads.note(hasChildren: hasChildren, at: path)
        return hasChildren
    }

    func exists(at path: TreePath) throws(Status) -> Bool {
        let exists = try view.exists(at: path)
        reads.note(exists: exists, at: path)
        return exists
    }

    func node(at path: TreePath) throws(Status) -> Node {
        reads.noteAll(at: path)
        return try view.node(at: path)
    }

    func keys(at path: TreePath, after key: TreeKey?, limit: Int) throws(Status) -> [TreeKey] {
        reads.noteAll(at: path)
        return try view.keys(at: path, after: key, limit: limit)
    }
}
