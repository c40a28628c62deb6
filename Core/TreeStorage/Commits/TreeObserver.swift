import HearthTree

/// Observes commits. All calls are made on the writer's thread, and block it.
package protocol TreeObserver: Sendable {
    /// Changes that will be made: `prepare` follows, unless they change nothing or the store fails.
    /// - Parameter before: the tree without them. Only valid during the call.
    func willChange(_ changes: [TreeChange], before: TreeView)
    /// A commit, in order, when it is made but not durable yet. Commits without changes are omitted.
    /// - Parameter after: the tree with this commit and without later ones. Only valid during the call.
    func prepare(_ commit: TreeCommit, after: TreeView)
    /// All prepared commits are durable. Is called before the completions of those writes.
    func publish()
    /// The prepared commits have failed.
    func discard()
}

extension TreeObserver {
    package func willChange(_ changes: [TreeChange], before: TreeView) {}
}
