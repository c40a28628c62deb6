import HearthModel

/// The result of a write.
package enum TreeOutcome: Sendable {
    case committed(TreeCommit)
    /// The condition was not met; nothing was changed.
    case stale
    /// Nothing was changed.
    case failed(Status)

    var commit: TreeCommit? { if case .committed(let commit) = self { commit } else { nil } }
}
