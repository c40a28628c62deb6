import HearthTree

/// What stands for values that the server will work out.
///
/// An increment adds to the best known value when it is made. Whether data that comes later has it already, nobody can tell
/// from the data: shown on top of it, it would count twice until its answer comes. But data of a listen that was sent before
/// the write, and isn't answered, is from before the write: then it is worked out anew. The same holds when an earlier write
/// is refused. In all other cases the provisional value stays until the answer.
extension SyncTree {
    /// A write's changes with provisional values, on what is known below it.
    func settled(_ write: PendingWrite) -> [TreeChange] {
        write.changes.map { change in
            guard change.node.hasDeferred else { return change }
            let old = change.node.hasIncrement ? known(at: change.place, before: write.id) ?? .empty : .empty
            let relative = TreeChange(path: change.path.relative(to: change.place), node: change.node)
            let node = relative.settled(nowMilliseconds: write.madeAtMilliseconds, old: old).node
            return TreeChange(path: change.path, node: node)
        }
    }

    /// Works the increments of some writes out anew, in their order.
    /// - Parameters:
    ///   - paths: where data changed.
    ///   - start: the first write that counts.
    ///   - end: the first one that doesn't count any more.
    /// - Returns: whether there were any.
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

    /// Works the increments out anew that found what a write had written.
    func resettle(changesAt paths: [TreePath], after id: Int64) -> Bool {
        let end = paths.count == 1 ? writes.replacement(of: paths[0], after: id) : .max
        return resettle(changesAt: paths, from: id, before: end)
    }

    /// What `resettle` does when one write was refused and integers that add to each other are all that waits at its location.
    /// - Returns: whether that is so, and was done.
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
