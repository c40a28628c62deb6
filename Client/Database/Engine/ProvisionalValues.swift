import HearthTree

/// Provisional values for server values that are not known yet.
///
/// An increment adds to the best known value when it is made. Data that arrives later may include the increment
/// already, which the data does not show: applied on top of it, the increment would count twice until its answer
/// arrives. But the unanswered listens that were sent before the write deliver data from before the write: then the
/// increment is computed again. The same holds when an earlier write fails. In all other cases the provisional value
/// stays until the answer.
extension SyncTree {
    /// A write's changes with provisional values, computed from the data without later writes.
    func settled(_ write: PendingWrite) -> [TreeChange] {
        write.changes.map { change in
            guard change.node.hasDeferred else { return change }
            let old = change.node.hasIncrement ? known(at: change.location, before: write.id) ?? .empty : .empty
            let relative = TreeChange(path: change.path.relative(to: change.location), node: change.node)
            let node = relative.settled(nowMilliseconds: write.madeAtMilliseconds, old: old).node
            return TreeChange(path: change.path, node: node)
        }
    }

    /// Computes the increments of some writes again, in order.
    /// - Parameters:
    ///   - paths: the paths of changed data.
    ///   - start: the first write to update.
    ///   - end: the first write to exclude.
    /// - Returns: whether there were any increments.
    @discardableResult
    func resettle(
        changesAt paths: [TreePath], from start: Int64 = .min, before end: Int64 = .max,
        where isWanted: (PendingWrite) -> Bool = { _ in true }
    ) -> Bool {
        var isResettled = false
        for id in writes.increments(touching: paths, from: start, before: end) {
            guard let write = writes.writes[id], isWanted(write) else { continue }
            writes.settle(id, to: settled(write))
            isResettled = true
        }
        return isResettled
    }

    /// Computes the increments again that are based on a write's data.
    func resettle(changesAt paths: [TreePath], after id: Int64) -> Bool {
        let end = paths.count == 1 ? writes.replacement(of: paths[0], after: id) : .max
        return resettle(changesAt: paths, from: id, before: end)
    }

    /// Does the work of `resettle` when one write fails and only integers that add to each other wait at its
    /// location.
    /// - Returns: whether this was the case.
    func shiftSums(_ removed: [PendingWrite]) -> Bool {
        guard removed.count == 1, removed[0].changes.count == 1 else { return false }
        let path = removed[0].changes[0].path
        guard let id = writes.firstSum(at: path, after: removed[0].id), let write = writes.writes[id],
            write.changes.count == 1
        else { return false }
        return writes.shiftSums(at: path, first: id, to: settled(write))
    }

    /// A new connection sends all listens, then all writes.
    func markSentAgain() {
        isConnected = true
        sendings += 1
        root.forEach { point in
            point.isAnswered = false
            point.mark = self.sendings
            for view in point.views {
                view.isAnswered = false
                view.mark = self.sendings
            }
        }
        sendings += 1
        writes.markAll(sendings)
    }
}
