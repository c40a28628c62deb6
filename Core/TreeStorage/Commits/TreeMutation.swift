import HearthModel
import HearthEngine
import HearthTree

/// Makes the changes of a write in a transaction: records, long strings, entries of priorities and of indexes.
///
/// The write is valid at this point: an error comes from the store, and ends the transaction.
struct TreeMutation {
    private let transaction: any StoreTransaction
    private let view: TreeView
    private let indexes: TreeIndexes
    /// The number of old records that are compared with new ones.
    private let comparedMax: Int
    private let comparedStringsMax: Int

    /// - Parameter view: of the same transaction.
    init(_ transaction: any StoreTransaction, _ view: TreeView) {
        self.transaction = transaction
        self.view = view
        indexes = view.indexes
        comparedMax = RangeReplacement.comparedMax
        comparedStringsMax = RangeReplacement.comparedMax
    }

    /// In a shadow of the tree, where deleting a range costs nothing, whatever its size is.
    init(_ transaction: ShadowTransaction, version: Int64, _ indexes: TreeIndexes) {
        self.transaction = transaction
        view = TreeView(transaction, version: version, indexes: indexes, isOwner: false)
        self.indexes = indexes
        comparedMax = 256
        comparedStringsMax = 4
    }

    /// Makes changes at once, as `TreeOverlay` shows them.
    /// - Returns: whether the tree is different from before.
    func apply(_ changes: [TreeChange]) throws(Status) -> Bool {
        try apply(oneByOne: TreeChange.oneByOne(changes))
    }

    /// - Parameter changes: as `TreeChange.oneByOne` returns them.
    func apply(oneByOne changes: [TreeChange]) throws(Status) -> Bool {
        var isChanged = false
        for change in changes where try apply(change) { isChanged = true }
        return isChanged
    }

    func apply(_ change: TreeChange) throws(Status) -> Bool {
        if change.isPriority { return try setPriority(change.location, change.node.value) }
        let touched = try indexedChildren(above: change.path)
        let isChanged = try set(change.path, change.node)
        if isChanged {
            for child in touched { try update(child) }
            try setIndexes(below: change.path, change.node)
        }
        return isChanged
    }

    // MARK: Large replacements

    /// Whether the locations of changes have at least this number of nodes or bytes. Of long strings only the sizes are
    /// read.
    func hasMany(at changes: [TreeChange], nodes: Int, bytes: Int) throws(Status) -> Bool {
        var nodesLeft = nodes
        var bytesLeft = bytes
        for change in changes {
            let location = PathCode.location(change.path)
            let cursor = try transaction.scan(
                .entries, KeyRange(prefix: location), reverse: false, values: true, dropping: location.count)
            defer { cursor.close() }
            while try cursor.next() {
                // The location's own record is one of those that every write has.
                if !cursor.key.isEmpty { nodesLeft -= 1 }
                bytesLeft -= cursor.key.count + (try TreeRecord(stored: cursor.value).valueSizeBytes)
                if nodesLeft <= 0 || bytesLeft <= 0 { return true }
            }
        }
        return false
    }

    /// Makes changes whose records have been staged, by a graft.
    func apply(_ replacement: TreeReplacement, in transaction: TreeTransaction) throws(Status) {
        if replacement.wide != nil { return try transaction.begin(replacement.graft) }
        var before: [(touched: [IndexedChild], isEmpty: Bool, priority: Scalar?)] = []
        for change in replacement.changes {
            let old = try PresentRecords(PathCode.location(change.path), in: transaction)
            before.append((try indexedChildren(above: change.path), old.isEmpty, old.priority))
            if old.isEmpty, !change.node.isEmpty { try openParents(of: change.path) }
        }
        try transaction.begin(replacement.graft)
        for (change, before) in zip(replacement.changes, before) {
            try setPriorityEntry(change.path, from: before.priority, to: change.node.priority)
            if change.node.isEmpty, !before.isEmpty { try removeEmptyParents(of: change.path) }
            for child in before.touched { try update(child) }
        }
    }

    // MARK: Wide updates

    /// Deletes the data of a location whose new records, of a large node, will be put piece by piece. At least one of
    /// them must be put in the same transaction.
    func makeSpace(for node: Node, at path: TreePath) throws(Status) {
        let location = PathCode.location(path)
        let old = try PresentRecords(location, in: transaction)
        if old.isEmpty { try openParents(of: path) }
        for keyspace in TreeDelta.keyspaces {
            try transaction.delete(keyspace, KeyRange(prefix: location), limit: .max)
        }
        try transaction.delete(.entries, KeyRange(prefix: Self.priorityPrefix(location)), limit: .max)
        for index in indexes.belowOrAt(path) {
            try transaction.delete(.entries, KeyRange(prefix: index.prefix(location)), limit: .max)
        }
        try setPriorityEntry(path, from: old.priority, to: node.priority)
    }

    /// Changes records at or below a location, and then the entries of the locations above.
    func touching(_ path: TreePath, _ body: () throws(Status) -> Void) throws(Status) {
        let touched = try indexedChildren(above: path)
        try body()
        for child in touched { try update(child) }
    }

    /// The same tree receives a write below it at these locations. Nodes on the paths to them that are in both trees
    /// have received the priorities that they have with that write.
    /// - Parameter tree: the data of this tree that is not in the tree below.
    func mendPriorities(above changes: [TreeChange], _ tree: ChangeTree, below: TreeView) throws(Status) {
        var mended: Set<TreePath> = []
        for change in changes {
            let location = change.location
            for depth in 0...location.count {
                let path = TreePath(keys: Array(location.keys[..<depth]))
                guard case .changed(let here) = tree.descend(path) else { break }
                if !mended.insert(path).inserted { continue }
                guard try view.exists(at: path) else { break }
                let priority = if let own = here.priority { own } else { try below.priority(at: path) }
                _ = try setPriority(path, priority)
            }
        }
    }

    // MARK: A node

    private func set(_ path: TreePath, _ node: Node) throws(Status) -> Bool {
        let location = PathCode.location(path)
        let old = try PresentRecords(location, in: transaction)
        if node.isEmpty {
            if old.isEmpty { return false }
            try remove(old, location)
            try setPriorityEntry(path, from: old.priority, to: nil)
            try removeEmptyParents(of: path)
            return true
        }
        if old.isEmpty { try openParents(of: path) }
        let new = NewRecords(node, at: location)
        var isChanged = try old.replace(by: new.records, in: transaction, comparedMax: comparedMax)
        // Records do not contain a long string's value.
        if old.hasStringsElsewhere || !new.strings.isEmpty {
            let strings = RangeReplacement(
                .documents, KeyRange(prefix: location), by: new.strings, in: transaction,
                comparedMax: comparedStringsMax)
            if try strings.run() { isChanged = true }
        }
        if !isChanged { return false }
        if old.hasChildren || !new.priorities.isEmpty {
            try replaceEntries(Self.priorityPrefix(location), by: new.priorities)
        }
        try setPriorityEntry(path, from: old.priority, to: node.priority)
        return true
    }

    private func remove(_ old: PresentRecords, _ location: [UInt8]) throws(Status) {
        if !old.hasChildren {
            try transaction.delete(.entries, location)
            if old.hasStringsElsewhere { try transaction.delete(.documents, location) }
            return
        }
        try transaction.delete(.entries, KeyRange(prefix: location), limit: .max)
        try transaction.delete(.documents, KeyRange(prefix: location), limit: .max)
        try transaction.delete(.entries, KeyRange(prefix: Self.priorityPrefix(location)), limit: .max)
    }

    /// A leaf above a new node becomes an inner node and keeps its priority. Above an inner node there is no leaf.
    private func openParents(of path: TreePath) throws(Status) {
        var parent = path.parent
        while let ancestor = parent {
            let location = PathCode.location(ancestor)
            if let record = try view.record(location) {
                if record.isInner { return }
                if record.isStoredElsewhere { try transaction.delete(.documents, location) }
                if let priority = try record.priority {
                    try transaction.put(.entries, location, TreeRecord(nil, priority: priority).bytes)
                } else {
                    try transaction.delete(.entries, location)
                }
                return
            }
            if try transaction.count(.entries, PathCode.below(location), limit: 1) > 0 { return }
            parent = ancestor.parent
        }
    }

    /// An inner node without children is deleted with its priority.
    private func removeEmptyParents(of path: TreePath) throws(Status) {
        var parent = path.parent
        while let ancestor = parent {
            let location = PathCode.location(ancestor)
            if try transaction.count(.entries, PathCode.below(location), limit: 1) > 0 { return }
            if let record = try view.record(location) {
                // A location below a leaf was to be deleted; the leaf remains.
                guard record.isInner else { return }
                try transaction.delete(.entries, location)
                try setPriorityEntry(ancestor, from: try record.priority, to: nil)
            }
            parent = ancestor.parent
        }
    }

    // MARK: Priorities

    private func setPriority(_ path: TreePath, _ priority: Scalar?) throws(Status) -> Bool {
        let location = PathCode.location(path)
        let record = try view.record(location)
        let old = try record?.priority
        if old == priority { return false }
        if let record, !record.isInner {
            let value = try view.value(record, location)
            try transaction.put(.entries, location, TreeRecord(value, priority: priority).bytes)
        } else {
            // An empty node has no priority.
            if record == nil, try !view.exists(location) { return false }
            if let priority {
                try transaction.put(.entries, location, TreeRecord(nil, priority: priority).bytes)
            } else {
                try transaction.delete(.entries, location)
            }
        }
        try setPriorityEntry(path, from: old, to: priority)
        return true
    }

    private func setPriorityEntry(_ path: TreePath, from old: Scalar?, to new: Scalar?) throws(Status) {
        guard let key = path.last, let parent = path.parent, old != new else { return }
        let parentLocation = PathCode.location(parent)
        if let old { try transaction.delete(.entries, Self.priorityEntry(parentLocation, old, key)) }
        if let new { try transaction.put(.entries, Self.priorityEntry(parentLocation, new, key), []) }
    }

    /// All entries of children with a priority at or below a location.
    static func priorityPrefix(_ location: [UInt8]) -> [UInt8] { [PathCode.Space.priorities] + location.dropFirst() }

    static func priorityEntry(_ parent: [UInt8], _ priority: Scalar, _ key: TreeKey) -> [UInt8] {
        var bytes = priorityPrefix(parent)
        bytes.append(PathCode.pathEnd)
        IndexCode.append(priority, to: &bytes)
        PathCode.append(key, to: &bytes)
        return bytes
    }

    // MARK: Indexes

    /// A child that an index orders and that contains a change.
    private struct IndexedChild {
        var index: TreeIndex
        var parent: [UInt8]
        var key: TreeKey
        var location: [UInt8]
        var before: TreeIndexValue?
    }

    private func indexedChildren(above path: TreePath) throws(Status) -> [IndexedChild] {
        var found: [IndexedChild] = []
        for index in indexes.above(path) {
            let parent = PathCode.location(TreePath(keys: Array(path.keys[..<index.pattern.count])))
            let key = path.keys[index.pattern.count]
            var location = parent
            PathCode.append(key, to: &location)
            found.append(
                IndexedChild(
                    index: index, parent: parent, key: key, location: location,
                    before: try view.indexed(location, by: index)))
        }
        return found
    }

    private func update(_ child: IndexedChild) throws(Status) {
        let after = try view.indexed(child.location, by: child.index)
        if after == child.before { return }
        let old = child.before.map { child.index.entry(child.parent, $0, child.key) }
        let new = after.map { child.index.entry(child.parent, $0, child.key) }
        if old == new { return }
        if let old { try transaction.delete(.entries, old) }
        if let new { try transaction.put(.entries, new, []) }
    }

    /// The entries of the locations at and below a changed one.
    private func setIndexes(below path: TreePath, _ node: Node) throws(Status) {
        let location = PathCode.location(path)
        for index in indexes.belowOrAt(path) {
            var entries: [StoreRecord] = []
            index.collect(from: node, at: location, depth: path.count, into: &entries)
            entries.sort { UTF8Order.compare($0.key, $1.key) < 0 }
            try replaceEntries(index.prefix(location), by: entries)
        }
    }

    // MARK: Ranges

    private func replaceEntries(_ prefix: [UInt8], by new: [StoreRecord]) throws(Status) {
        let range = KeyRange(prefix: prefix)
        if new.isEmpty {
            try transaction.delete(.entries, range, limit: .max)
        } else {
            _ = try RangeReplacement(.entries, range, by: new, in: transaction, comparedMax: comparedMax).run()
        }
    }
}

extension TreeIndex {
    func entry(_ parent: [UInt8], _ value: TreeIndexValue, _ key: TreeKey) -> [UInt8] {
        var bytes = prefix(parent)
        bytes.append(PathCode.pathEnd)
        value.append(to: &bytes)
        PathCode.append(key, to: &bytes)
        return bytes
    }

    /// The entries of all children that this index orders in a node.
    /// - Parameters:
    ///   - location: the node's; its path matches the pattern so far.
    ///   - depth: of the node.
    fileprivate func collect(from node: Node, at location: [UInt8], depth: Int, into entries: inout [StoreRecord]) {
        guard depth < pattern.count else {
            for (key, child) in node.children {
                entries.append(StoreRecord(key: entry(location, definition.index.value(of: child), key), value: []))
            }
            return
        }
        func descend(_ key: TreeKey, _ child: Node) {
            var location = location
            PathCode.append(key, to: &location)
            collect(from: child, at: location, depth: depth + 1, into: &entries)
        }
        if let key = pattern[depth] {
            descend(key, node.child(key))
        } else {
            for (key, child) in node.children { descend(key, child) }
        }
    }
}
