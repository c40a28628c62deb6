import HearthModel

/// Decides whether a commit may be made.
///
/// It is called where the commit is computed, with the states before and after. Documents that it reads count as read
/// by the commit: when a large commit is prepared on a snapshot, and one of these documents changes before it is made,
/// the commit is computed and judged again. So no change can come between the decision and the commit. The guard must
/// be quick, and must not wait.
package protocol CommitGuard: Sendable {
    /// Checks the writes in their order.
    /// - Throws: the reason why the commit may not be made.
    func check(_ commit: GuardedCommit) throws(Status)
}
