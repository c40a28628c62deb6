import HearthModel
import HearthTree

/// A write of the program that the server hasn't answered.
struct PendingWrite {
    /// Grows from write to write.
    let id: Int64
    /// Where it was sent to.
    let path: TreePath
    /// Whether it names locations below `path`.
    let isMerge: Bool
    /// At absolute paths, none of which is above another. Values may be deferred.
    let changes: [TreeChange]
    /// Not visible are transactions without local events.
    var isVisible = true
    /// What deferred timestamps show until the server's value comes.
    let madeAtMilliseconds: Int64

    /// `changes` with provisional values in the place of deferred ones.
    var settled: [TreeChange] = []
    /// When it was sent, among listens and writes.
    var mark: Int64 = 0
}

/// The writes that have no answer yet, and what becomes of data under them.
///
/// They are kept by location, so that what a location looks like costs what is written at and below it since the last write that
/// replaced it, however many writes wait.
///
/// Deferred values are worked out when a write is added, and again when data comes that the server had before the write: see
/// `SyncTree.resettle`.
struct WriteTree {
    /// Which writes count.
    struct Selection {
        var includesHidden = false
        var excluded: Set<Int64> = []
        /// Only those before this one.
        var end = Int64.max

        static let visible = Selection()
    }

    /// Integers that wait at one location and add to what is there. When an earlier one is refused, all of them change by the same
    /// amount.
    private struct Sums {
        var ids: Set<Int64> = []
        /// What each of them shows more than it was settled to.
        var shift: Int64 = 0
        /// Far from where integers overflow.
        static let valueMax: Int64 = 1 << 52
    }

    private(set) var writes: [Int64: PendingWrite] = [:]
    private var sums: [TreePath: Sums] = [:]
    private let all = WriteBranch()
    private let visible = WriteBranch()
    /// Those that add to what is there.
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

    /// What a write does, with provisional values.
    func change(_ id: Int64, _ index: Int) -> TreeChange {
        guard let write = writes[id] else { preconditionFailure("a change of a write that is gone") }
        let change = write.settled[index]
        guard !sums.isEmpty, let sums = sums[change.path], sums.shift != 0, sums.ids.contains(id),
            case .integer(let value)? = change.node.value
        else { return change }
        return TreeChange(path: change.path, node: Node(.integer(value + sums.shift)))
    }

    /// The first of the integers that add to each other at a location when nothing but these waits there after a write.
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

    /// Changes all of them by the amount by which the first one changes.
    /// - Returns: whether that could be done.
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

    /// The first write after another that replaces a location, or one above it, without adding to what is there: writes after it
    /// depend on it alone.
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

    /// The writes that add to what is there at, above or below some locations, in their order.
    func increments(touching paths: [TreePath], from start: Int64, before end: Int64) -> [Int64] {
        if incrementing.isEmpty { return [] }
        var ids: Set<Int64> = []
        for path in Set(paths) {
            var branch: WriteBranch? = incrementing
            for key in path.keys {
                // What replaces the location replaces nothing of what is above.
                branch?.entries.forEach(from: start, before: .max) { id, _ in ids.insert(id) }
                branch?.children[.priority]?.entries.forEach(from: start, before: .max) { id, _ in ids.insert(id) }
                branch = branch?.children[key]
            }
            branch?.forEach { entries in entries.forEach(from: start, before: end) { id, _ in ids.insert(id) } }
        }
        return ids.sorted()
    }

    /// Children of a location at or below which something is written.
    func keys(below path: TreePath) -> [TreeKey] {
        if writes.isEmpty { return [] }
        var branch = visible
        for key in path.keys {
            guard let child = branch.children[key] else { return [] }
            branch = child
        }
        return branch.children.keys.filter { $0 != .priority }
    }

    /// What a location looks like with the writes on top.
    /// - Parameter base: what is below the writes; nil when that isn't known.
    /// - Returns: nil when not all of the result is known.
    func applied(at path: TreePath, to base: Node?, _ selection: Selection = .visible) -> Node? {
        if writes.isEmpty { return base }
        return look(at: path, over: base, selection).result
    }

    /// - Parameter base: the data of the location without writes; nil when it isn't known.
    func look(at path: TreePath, over base: Node?, _ selection: Selection = .visible) -> WriteLook {
        let branch = selection.includesHidden ? all : visible
        var look = WriteLook(writes: self, selection: selection, path: .root, branch: branch, base: nil)
        for key in path.keys { look = look.child(key) }
        if look.start == .min { look.base = base }
        return look
    }
}

/// The writes at a location and below it.
///
/// It belongs to one `WriteTree`, which nobody copies.
final class WriteBranch {
    /// Those that replace the location, with which of their changes does; for the key `.priority` those that set the priority of
    /// the location above.
    private(set) var entries = AscendingList<Int>()
    private(set) var children: [TreeKey: WriteBranch] = [:]
    /// No write at or below it is later.
    private(set) var lastID = Int64.min
    /// Changes at and below it that remove something.
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

/// A location as the writes leave it: what it was replaced with last, and what is written below that since.
struct WriteLook {
    private let writes: WriteTree
    private let selection: WriteTree.Selection
    let path: TreePath
    private let branch: WriteBranch?
    /// What is below the writes after `start`; nil when that isn't known.
    var base: Node?
    /// The write that `base` is of; before all for what isn't a write's.
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

    func child(_ key: TreeKey) -> WriteLook {
        WriteLook(
            writes: writes, selection: selection, path: path.child(key), branch: branch?.children[key],
            base: base?.child(key), start: start)
    }

    private static func last(
        _ entries: AscendingList<Int>, _ selection: WriteTree.Selection
    ) -> (id: Int64, value: Int)? {
        entries.last(before: selection.end) { !selection.excluded.contains($0) }
    }

    /// What the location looks like; nil when not all of it is known.
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
            // A priority that another is set after has no effect: where that one finds nothing, the first is gone as well.
            if let last = Self.last(branch.entries, selection), last.id > start { later.append((last.id, last.value)) }
            return
        }
        branch.entries.forEach(from: start &+ 1, before: selection.end) { id, index in
            if !selection.excluded.contains(id) { later.append((id, index)) }
        }
        for (key, child) in branch.children { collect(child, isPriority: key == .priority, &later) }
    }

    /// The priority that the location has if it has children, where that doesn't depend on when it had any; else nil. Children depend
    /// on nothing but what is written at and below them. But a location that is without children for a moment loses its priority.
    var priority: Scalar?? {
        guard let base else { return nil }
        let last = branch?.children[.priority].flatMap { Self.last($0.entries, selection) }
        let set = last.flatMap { $0.id > start ? writes.change($0.id, $0.value) : nil }
        if set == nil, base.priority == nil { return .some(nil) }
        guard !base.isEmpty, !hasRemovals else { return nil }
        return .some(set.map(\.node.value) ?? base.priority)
    }

    /// Whether anything is removed at or below the location.
    var hasRemovals: Bool { branch.map { $0.removals > 0 } ?? false }
}

extension Node {
    /// Itself with values in the place of deferred ones, where the old data is in memory.
    func settled(nowMilliseconds: Int64, old: Node) -> Node {
        do {
            return try resolved(nowMilliseconds: nowMilliseconds, old: old, at: .root)
        } catch {
            preconditionFailure("Reading a node in memory failed: \(error.message)")
        }
    }

    /// Whether anything in it adds to what was there before.
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
