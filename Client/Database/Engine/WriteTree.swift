import HearthTree

/// The unanswered writes, and their effect on data.
///
/// They are stored by location: computing the data of a location costs what is written at and below it since the
/// last write that replaced it, independent of the number of waiting writes.
///
/// Deferred values are computed when a write is added, and again when data arrives that the server had before the
/// write: see `SyncTree.resettle`.
struct WriteTree {
    /// The writes to apply.
    struct Selection {
        var includesHidden = false
        var excluded: Set<Int64> = []
        /// Only writes before this one.
        var end = Int64.max

        static let visible = Selection()
    }

    /// Integers that wait at one location and add to the existing value. When an earlier one fails, all of them
    /// change by the same amount.
    private struct Sums {
        var ids: Set<Int64> = []
        /// The difference of each shown value from its settled value.
        var shift: Int64 = 0
        /// A bound that prevents integer overflow.
        static let valueMax: Int64 = 1 << 52
    }

    private(set) var writes: [Int64: PendingWrite] = [:]
    private var sums: [TreePath: Sums] = [:]
    private let all = WriteBranch()
    private let visible = WriteBranch()
    /// The writes that add to the existing value.
    private let incrementing = WriteBranch()

    var isEmpty: Bool { writes.isEmpty }
    var hasIncrements: Bool { !incrementing.isEmpty }

    mutating func add(_ write: PendingWrite) {
        writes[write.id] = write
        for (index, change) in write.changes.enumerated() {
            forEachBranch(of: write, change) { $0.add(write.id, index, change) }
        }
        settle(write.id, to: write.settled)
    }

    private func forEachBranch(of write: PendingWrite, _ change: TreeChange, _ body: (WriteBranch) -> Void) {
        body(all)
        if write.isVisible { body(visible) }
        if change.node.hasIncrement { body(incrementing) }
    }

    mutating func settle(_ id: Int64, to settled: [TreeChange]) {
        guard let write = writes[id] else { return }
        let stored = zip(write.changes, settled).map { change, settled in
            guard case .deferred(.increment)? = change.node.value else { return settled }
            guard change.node.priority == nil, !change.isPriority, case .integer(let value)? = settled.node.value,
                abs(Double(value)) < Double(Sums.valueMax)
            else {
                removeSum(id, at: change.path)
                return settled
            }
            sums[change.path, default: Sums()].ids.insert(id)
            return TreeChange(path: change.path, node: Node(.integer(value - (sums[change.path]?.shift ?? 0))))
        }
        writes[id]?.settled = stored
    }

    private mutating func removeSum(_ id: Int64, at path: TreePath) {
        sums[path]?.ids.remove(id)
        if sums[path]?.ids.isEmpty == true { sums[path] = nil }
    }

    /// A write's changes, with provisional values.
    func change(_ id: Int64, _ index: Int) -> TreeChange {
        guard let write = writes[id] else { preconditionFailure("a change of a removed write") }
        let change = write.settled[index]
        guard !sums.isEmpty, let sums = sums[change.path], sums.shift != 0, sums.ids.contains(id),
            case .integer(let value)? = change.node.value
        else { return change }
        return TreeChange(path: change.path, node: Node(.integer(value + sums.shift)))
    }

    /// The first of the integers that add to each other at a location, when nothing but these waits there after a
    /// write.
    func firstSum(at path: TreePath, after id: Int64) -> Int64? {
        guard let ids = sums[path]?.ids else { return nil }
        var branch = all
        for key in path.keys {
            guard branch.entries.last().map({ $0.id < id }) ?? true, let child = branch.children[key] else {
                return nil
            }
            branch = child
        }
        guard branch.children.isEmpty, branch.entries.count == ids.count, let first = branch.entries.first?.id,
            first > id
        else { return nil }
        return first
    }

    /// Changes all of them by the change of the first one.
    /// - Returns: whether that was possible.
    mutating func shiftSums(at path: TreePath, first id: Int64, to settled: [TreeChange]) -> Bool {
        guard case .integer(let new)? = settled.first?.node.value, case .integer(let old)? = change(id, 0).node.value,
            abs(Double(new)) < Double(Sums.valueMax), let shift = sums[path]?.shift,
            abs(Double(shift + new - old)) < Double(Sums.valueMax)
        else { return false }
        sums[path]?.shift += new - old
        return true
    }

    mutating func markAll(_ mark: Int64) {
        for id in writes.keys { writes[id]?.mark = mark }
    }

    /// - Returns: nil when there is no such write.
    mutating func remove(_ id: Int64) -> PendingWrite? {
        guard let write = writes.removeValue(forKey: id) else { return nil }
        for change in write.changes {
            forEachBranch(of: write, change) { $0.remove(id, change) }
            removeSum(id, at: change.path)
        }
        return write
    }

    /// The first later write that replaces a location, or one above it, without adding to the existing value. The
    /// writes after it depend on it alone.
    func replacement(of path: TreePath, after id: Int64) -> Int64 {
        var branch: WriteBranch? = all
        var found = Int64.max
        for depth in 0...path.count {
            let next = branch?.entries.first(from: id + 1) { id, index in
                id >= found || writes[id]?.changes[index].node.hasIncrement == false
            }
            found = min(found, next ?? .max)
            if depth < path.count { branch = branch?.children[path.keys[depth]] }
        }
        return found
    }

    /// The writes that add to existing values at, above or below some locations, in order.
    func increments(touching paths: [TreePath], from start: Int64, before end: Int64) -> [Int64] {
        if incrementing.isEmpty { return [] }
        var ids: Set<Int64> = []
        for path in Set(paths) {
            var branch: WriteBranch? = incrementing
            for key in path.keys {
                // A write that replaces the location replaces no data above it.
                branch?.entries.forEach(from: start, before: .max) { id, _ in ids.insert(id) }
                branch?.children[.priority]?.entries.forEach(from: start, before: .max) { id, _ in ids.insert(id) }
                branch = branch?.children[key]
            }
            branch?.forEach { entries in entries.forEach(from: start, before: end) { id, _ in ids.insert(id) } }
        }
        return ids.sorted()
    }

    /// Children of a location with writes at or below.
    func keys(below path: TreePath) -> [TreeKey] {
        if writes.isEmpty { return [] }
        var branch = visible
        for key in path.keys {
            guard let child = branch.children[key] else { return [] }
            branch = child
        }
        return branch.children.keys.filter { $0 != .priority }
    }

    /// The data of a location with the writes applied.
    /// - Parameter base: the data below the writes; nil when it is not known.
    /// - Returns: nil when not all of the result is known.
    func applied(at path: TreePath, to base: Node?, _ selection: Selection = .visible) -> Node? {
        if writes.isEmpty { return base }
        return look(at: path, over: base, selection).result
    }

    /// - Parameter base: the data of the location without writes; nil when it is not known.
    func look(at path: TreePath, over base: Node?, _ selection: Selection = .visible) -> WriteOverlay {
        let branch = selection.includesHidden ? all : visible
        var look = WriteOverlay(writes: self, selection: selection, path: .root, branch: branch, base: nil)
        for key in path.keys { look = look.child(key) }
        if look.start == .min { look.base = base }
        return look
    }
}

/// The writes at a location and below it.
///
/// It belongs to one `WriteTree`, which is never copied.
final class WriteBranch {
    /// The writes that replace the location, each with the index of the change that does so; for the key
    /// `.priority` those that set the priority of the location above.
    private(set) var entries = AscendingList<Int>()
    private(set) var children: [TreeKey: WriteBranch] = [:]
    /// No write at or below it is later.
    private(set) var lastID = Int64.min
    /// Changes at and below it that remove data.
    private(set) var removals = 0

    var isEmpty: Bool { entries.isEmpty && children.isEmpty }

    fileprivate func add(_ id: Int64, _ index: Int, _ change: TreeChange) {
        var branch = self
        branch.count(change, 1)
        for key in change.path.keys {
            branch.lastID = id
            let child = branch.children[key] ?? WriteBranch()
            branch.children[key] = child
            branch = child
            branch.count(change, 1)
        }
        branch.lastID = id
        branch.entries.append(id, index)
    }

    private func count(_ change: TreeChange, _ count: Int) {
        if change.node.isEmpty, !change.isPriority { removals += count }
    }

    fileprivate func remove(_ id: Int64, _ change: TreeChange) { remove(id, change, change.path.keys[...]) }

    private func remove(_ id: Int64, _ change: TreeChange, _ keys: ArraySlice<TreeKey>) {
        count(change, -1)
        guard let key = keys.first else {
            entries.remove(id)
            return
        }
        guard let child = children[key] else { return }
        child.remove(id, change, keys.dropFirst())
        if child.isEmpty { children[key] = nil }
    }

    func forEach(_ body: (AscendingList<Int>) -> Void) {
        if !entries.isEmpty { body(entries) }
        for child in children.values { child.forEach(body) }
    }
}

extension Node {
    /// Returns the node with provisional values instead of deferred ones; reads the old data only where it is in
    /// memory.
    func settled(nowMilliseconds: Int64, old: Node) -> Node {
        do {
            return try resolved(nowMilliseconds: nowMilliseconds, old: old, at: .root)
        } catch {
            preconditionFailure("Reading a node in memory failed: \(error.message)")
        }
    }

    /// Whether it contains a value that adds to the existing one.
    var hasIncrement: Bool {
        if case .deferred(let value)? = value, value != .timestamp { return true }
        if case .deferred(let value)? = priority, value != .timestamp { return true }
        return children.contains { $0.node.hasIncrement }
    }
}

extension TreeChange {
    func settled(nowMilliseconds: Int64, old: Node) -> TreeChange {
        do {
            return try resolved(nowMilliseconds: nowMilliseconds, old: old)
        } catch {
            preconditionFailure("Reading a node in memory failed: \(error.message)")
        }
    }
}
