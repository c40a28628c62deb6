import HearthModel
import HearthTree

/// The guard of a write was evaluated beside the writer, and the write may be made.
struct TreeJudgement: Sendable {
    /// Of the tree that the guard has read.
    var version: Int64
    /// The data, besides the tree, that the decision depends on.
    var basis: (any AnyObject & Sendable)?
    var reads: TreeReads

    /// - Throws: the reason why the write may not be made.
    init(of write: TreeWrite, by treeGuard: any TreeGuard, on view: TreeView) throws(Status) {
        version = view.version
        basis = treeGuard.basis
        reads = TreeReads()
        let observed = ObservedTree(view: view, reads: reads)
        let changes = try write.resolvedChanges(on: observed)
        let after = TreeOverlay(base: observed, changes: changes)
        try treeGuard.judge(changes, before: observed, after: after, now: write.nowMilliseconds, stepsMax: nil)
    }

    /// Whether the guard would decide the same on the present tree.
    /// - Parameter recent: the changes of this tree.
    func holds(for treeGuard: any TreeGuard, on view: TreeView, _ recent: RecentTreeChanges) throws(Status) -> Bool {
        guard basis === treeGuard.basis, let changed = recent.paths(since: version) else { return false }
        return try reads.areSame(in: view, changedAt: changed)
    }
}
