import HearthModel
import HearthTree

/// The changes of one request, which are atomic.
package struct TreeWrite: Sendable {
    /// A condition on the present state of a location.
    package struct Condition: Sendable {
        package var path: TreePath
        /// The hash of the value that must exist (`Node.hash`); "" for no value.
        package var hash: String
        /// Whether the condition is checked before the guard. A client without the right to read the location would
        /// learn its value, so this is only for clients with the right.
        package var reveals: Bool

        package init(path: TreePath, hash: String, reveals: Bool) {
            self.path = path
            self.hash = hash
            self.reveals = reveals
        }
    }

    /// At absolute paths, made one after the other. Values may be deferred; a path whose last key is `.priority` is a
    /// priority.
    package var changes: [TreeChange]
    package var condition: Condition?
    /// Evaluated before the write is made; nil for requesters without restrictions.
    package var `guard`: (any TreeGuard)?
    /// The value of a deferred timestamp; milliseconds since 1970.
    package var nowMilliseconds: Int64
    /// Changes of the journal that become durable with it. A write may have nothing else.
    package var journal: [JournalChange]
    /// The location of an update of children; nil for a write that replaces. The tree does not use it; observers of the
    /// commit may send the change in the same form.
    package var base: TreePath?

    package init(
        changes: [TreeChange], condition: Condition? = nil, guard: (any TreeGuard)? = nil, nowMilliseconds: Int64,
        journal: [JournalChange] = [], base: TreePath? = nil
    ) {
        self.changes = changes
        self.condition = condition
        self.guard = `guard`
        self.nowMilliseconds = nowMilliseconds
        self.journal = journal
        self.base = base
    }
}

/// Decides whether a write may be made.
///
/// Evaluated on the writer's thread when the write's values are computed, or beside it. In the second case the write is
/// made when the data that the guard has read is still the same. No write can come between the decision and the write.
/// It must not wait.
package protocol TreeGuard: Sendable {
    /// The basis of the decision besides the data; while it is the same object, the decision on the same data is the
    /// same.
    var basis: (any AnyObject & Sendable)? { get }

    /// - Parameters:
    ///   - update: the changes, with all deferred values computed.
    ///   - after: the tree after the write.
    ///   - now: milliseconds since 1970, the instant of the whole request.
    ///   - stepsMax: the limit of its steps, of a fraction of a microsecond each; nil for its general limit.
    /// - Throws: the reason why the write may not be made: PERMISSION_DENIED; RESOURCE_EXHAUSTED when it takes more
    ///   than `stepsMax`.
    func judge(
        _ update: [TreeChange], before: any TreeData, after: any TreeData, now: Int64, stepsMax: Int?
    ) throws(Status)
}

extension TreeGuard {
    package var basis: (any AnyObject & Sendable)? { nil }
}

/// A write that was made.
package struct TreeCommit: Sendable {
    /// Greater than those of all commits before. Microseconds since 1970, unless the clock was set back.
    package var version: Int64
    /// With all deferred values computed.
    package var changes: [TreeChange]
    /// Whether the tree is the same as before.
    package var isNoChange: Bool
    /// That of the write.
    package var base: TreePath?

    package init(version: Int64, changes: [TreeChange], isNoChange: Bool, base: TreePath? = nil) {
        self.base = base
        self.version = version
        self.changes = changes
        self.isNoChange = isNoChange
    }
}

/// The result of a write.
package enum TreeOutcome: Sendable {
    case committed(TreeCommit)
    /// The condition was not met; nothing was changed.
    case stale
    /// Nothing was changed.
    case failed(Status)

    var commit: TreeCommit? { if case .committed(let commit) = self { commit } else { nil } }
}

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
