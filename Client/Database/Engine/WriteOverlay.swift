import HearthTree

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

    init(
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
