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
