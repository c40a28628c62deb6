import HearthModel
import HearthEngine
import HearthTree

/// A write of very many locations before it is in the tree.
///
/// It is made in slices on a shadow of the tree (`TreeShadow`), by the same steps as other writes on the tree. Writes
/// of others that are made meanwhile are applied to both, as if this one followed them: so the shadow is always the
/// tree with a part of this write. When all of it is made, and nothing prevents it, one small record makes the shadow
/// the tree. When another write would require much of this one to be made again, the other write does not wait either:
/// this one begins again.
///
/// Belongs to the writer's thread once it is made.
final class WideUpdate: @unchecked Sendable {
    private struct Step {
        var change: TreeChange
        /// Nodes, as far as the limits require.
        var count: Int
        var isLarge: Bool
    }

    let shadow: TreeShadow
    private let tree: ChangeTree
    private let steps: [Step]
    private var position = 0
    /// Of the large node that is being put.
    private var walk: ReplacementWalk?
    /// Another write was made that the shadow doesn't have: all of this one must be made again.
    private(set) var isAbandoned = false

    /// Nodes that are put as one.
    private static let nodesPerStepMax = 64
    /// The nodes and locations of this write that another write may require to be made again.
    private static let redoneMax = 256

    /// - Parameter changes: with all deferred values computed.
    init(id: UInt32, _ changes: [TreeChange]) {
        shadow = TreeShadow(id: id)
        tree = ChangeTree(changes)
        steps = tree.oneByOne(isInOrder: true).map { change in
            let count = change.node.count(upTo: Self.nodesPerStepMax + 1)
            return Step(change: change, count: max(1, count), isLarge: count > Self.nodesPerStepMax)
        }
    }

    /// Whether a change at a location may be a part of this write.
    func concerns(_ path: TreePath) -> Bool {
        if case .untouched = tree.descend(path) { false } else { true }
    }

    /// Makes a part of it.
    /// - Returns: whether all of it is made.
    func make(_ slice: inout Slice, _ transaction: any StoreTransaction, _ indexes: TreeIndexes) throws(Status) -> Bool
    {
        let shown = ShadowTransaction(transaction, shadow)
        let mutation = TreeMutation(shown, version: 0, indexes)
        while position < steps.count {
            if slice.isFull { return false }
            let step = steps[position]
            if step.isLarge {
                guard try put(step.change, &slice, shown, mutation, indexes) else { return false }
            } else {
                _ = try mutation.apply(step.change)
                slice.add(step.change.node.value?.string?.utf8.count ?? 0)
                slice.add(records: step.count)
                slice.readClock()
            }
            position += 1
        }
        return true
    }

    /// - Returns: whether all of a large node is stored.
    private func put(
        _ change: TreeChange, _ slice: inout Slice, _ transaction: ShadowTransaction, _ mutation: TreeMutation,
        _ indexes: TreeIndexes
    ) throws(Status) -> Bool {
        var isWhole = false
        try mutation.touching(change.path) { () throws(Status) in
            if walk == nil {
                try mutation.makeSpace(for: change.node, at: change.path)
                walk = ReplacementWalk(change, PathCode.location(change.path), indexes.belowOrAt(change.path))
            }
            repeat {
                guard let (keyspace, record) = walk?.next() else {
                    isWhole = true
                    return
                }
                try transaction.put(keyspace, record.key, record.value)
                slice.add(record.key.count + record.value.count)
            } while !slice.isFull
        }
        if isWhole { walk = nil }
        return isWhole
    }

    /// Must be called when all of it is made: some values may have changed.
    /// - Parameters:
    ///   - made: its changes as they were made.
    ///   - changes: the same with their present values.
    func update(
        _ made: [TreeChange], to changes: [TreeChange], in transaction: TreeTransaction, _ view: TreeView
    ) throws(Status) {
        let different = zip(made, changes).filter { $0.node != $1.node }.map(\.1)
        if different.isEmpty { return }
        try transaction.work(on: shadow) { shown throws(Status) in
            let mutation = TreeMutation(shown, version: view.version, view.indexes)
            _ = try mutation.apply(oneByOne: different)
        }
    }

    // MARK: Writes of others

    /// The effect of another write, which precedes this one, on the shadow.
    /// - Returns: nil when so much of this one would be made again that the other must be made without it (`abandon`).
    func inShadow(_ changes: [TreeChange]) -> [TreeChange]? {
        var found: [TreeChange] = []
        for change in TreeChange.oneByOne(changes) {
            switch tree.descend(change.location) {
            case .untouched: found.append(change)
            case .replaced: continue
            case .changed(let here):
                if change.isPriority {
                    found.append(change)
                    continue
                }
                if here.isLarger(than: Self.redoneMax) { return nil }
                found.append(TreeChange(path: change.path, node: here.applied(to: change.node)))
            }
        }
        return found
    }

    /// From here on other writes are made on the tree alone. A small write never waits for a wide one: the wide one
    /// waits for the small ones.
    func abandon() { isAbandoned = true }

    /// Makes another write on the tree and on the shadow.
    /// - Parameters:
    ///   - inShadow: its effect there.
    ///   - mutation: of the transaction.
    /// - Returns: whether the tree is different from before.
    func make(
        _ changes: [TreeChange], inShadow shadowed: [TreeChange], in transaction: TreeTransaction, _ view: TreeView,
        _ mutation: TreeMutation
    ) throws(Status) -> Bool {
        try transaction.work(on: shadow) { shown throws(Status) in
            _ = try TreeMutation(shown, version: view.version, view.indexes).apply(oneByOne: shadowed)
        }
        let isChanged = try transaction.work(beside: shadow) { () throws(Status) in try mutation.apply(changes) }
        try transaction.work(on: shadow) { shown throws(Status) in
            let mutation = TreeMutation(shown, version: view.version, view.indexes)
            try mutation.mendPriorities(above: changes, tree, below: view)
        }
        return isChanged
    }
}
