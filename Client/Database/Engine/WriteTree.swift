import HearthModel
import HearthTree

/// A write of the program without an answer of the server.
struct PendingWrite {
    /// Increases with each write.
    let id: Int64
    /// The path that it was sent to.
    let path: TreePath
    /// Whether it contains locations below `path`.
    let isMerge: Bool
    /// At absolute paths, none of which is an ancestor of another. Values may be deferred.
    let changes: [TreeChange]
    /// Transactions without local events are not visible.
    var isVisible = true
    /// The provisional value of deferred timestamps until the server's value arrives.
    let madeAtMilliseconds: Int64

    /// `changes` with provisional values instead of deferred ones.
    var settled: [TreeChange] = []
    /// When it was sent, in the common order of listens and writes.
    var mark: Int64 = 0
}

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

    fileprivate func forEach(_ body: (AscendingList<Int>) -> Void) {
        if !entries.isEmpty { body(entries) }
        for child in children.values { child.forEach(body) }
    }
}

/// The writes over a location: the last data that replaced it, and later writes below it.
struct WriteOverlay {
    private let writes: WriteTree
    private let selection: WriteTree.Selection
    let path: TreePath
    private let branch: WriteBranch?
    /// The data below the writes after `start`; nil when it is not known.
    var base: Node?
    /// The write that `base` belongs to; 0 for data that is not from a write.
    let start: Int64

    fileprivate init(
        writes: WriteTree, selection: WriteTree.Selection, path: TreePath, branch: WriteBranch?, base: Node?,
        start: Int64 = .min
    ) {
        self.writes = writes
        self.selection = selection
        self.path = path
        self.branch = branch
        guard let branch, branch.lastID > start, let last = Self.last(branch.entries, selection), last.id > start
        else {
            self.base = base
            self.start = start
            return
        }
        self.base = writes.change(last.id, last.value).node
        self.start = last.id
    }

    func child(_ key: TreeKey) -> WriteOverlay {
        WriteOverlay(
            writes: writes, selection: selection, path: path.child(key), branch: branch?.children[key],
            base: base?.child(key), start: start)
    }

    private static func last(
        _ entries: AscendingList<Int>, _ selection: WriteTree.Selection
    ) -> (id: Int64, value: Int)? {
        entries.last(before: selection.end) { !selection.excluded.contains($0) }
    }

    /// The resulting data of the location; nil when not all of it is known.
    var result: Node? {
        guard let base, let branch, branch.lastID > start else { return base }
        var later: [(id: Int64, index: Int)] = []
        for (key, child) in branch.children { collect(child, isPriority: key == .priority, &later) }
        if later.isEmpty { return base }
        later.sort { ($0.id, $0.index) < ($1.id, $1.index) }
        var node = base
        var next = 0
        while next < later.count {
            let id = later[next].id
            let end = later[next...].firstIndex { $0.id != id } ?? later.count
            node = node.applying(
                later[next..<end].map {
                    let change = writes.change(id, $0.index)
                    return TreeChange(path: change.path.relative(to: path), node: change.node)
                })
            next = end
        }
        return node
    }

    private func collect(_ branch: WriteBranch, isPriority: Bool, _ later: inout [(id: Int64, index: Int)]) {
        if branch.lastID <= start { return }
        if isPriority {
            // A priority before another one has no effect: where the later one finds no data, the earlier one does
            // not exist either.
            if let last = Self.last(branch.entries, selection), last.id > start { later.append((last.id, last.value)) }
            return
        }
        branch.entries.forEach(from: start &+ 1, before: selection.end) { id, index in
            if !selection.excluded.contains(id) { later.append((id, index)) }
        }
        for (key, child) in branch.children { collect(child, isPriority: key == .priority, &later) }
    }

    /// The priority of the location if it has children, where it does not depend on earlier children; otherwise
    /// nil. The children depend only on the writes at and below them. But a location that is empty for a moment loses
    /// its priority.
    var priority: Scalar?? {
        guard let base else { return nil }
        let last = branch?.children[.priority].flatMap { Self.last($0.entries, selection) }
        let set = last.flatMap { $0.id > start ? writes.change($0.id, $0.value) : nil }
        if set == nil, base.priority == nil { return .some(nil) }
        guard !base.isEmpty, !hasRemovals else { return nil }
        return .some(set.map(\.node.value) ?? base.priority)
    }

    /// Whether data is removed at or below the location.
    var hasRemovals: Bool { branch.map { $0.removals > 0 } ?? false }
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
