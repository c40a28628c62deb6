import HearthModel
import HearthTree

/// What one request changes: all of it or nothing.
package struct TreeWrite: Sendable {
    /// Asks for the present state of a place.
    package struct Condition: Sendable {
        package var path: TreePath
        /// Of what has to be there (`Node.hash`); "" for nothing.
        package var hash: String
        /// Whether it is looked at before the guard is asked. Whoever may not read the place would learn from it what is
        /// there, so only for those who may.
        package var reveals: Bool

        package init(path: TreePath, hash: String, reveals: Bool) {
            self.path = path
            self.hash = hash
            self.reveals = reveals
        }
    }

    /// At absolute places, made one after the other. Values may be deferred; a place whose last key is `.priority` is a
    /// priority.
    package var changes: [TreeChange]
    package var condition: Condition?
    /// Asked before the write is made; nil for those who may do everything.
    package var `guard`: (any TreeGuard)?
    /// What a deferred timestamp becomes; milliseconds since 1970.
    package var nowMilliseconds: Int64
    /// Changes of the journal that become durable with it. A write may have nothing else.
    package var journal: [JournalChange]
    /// Where the request was made as an update of children; nil for one that replaces. Says nothing to the tree; those who
    /// hear of the commit may want to tell it in the same form.
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
/// Asked on the writer's thread at the point where the write is worked out, or beside it: then the write is made when what
/// the guard has looked at is still the same. Nothing can come between the decision and the write. It must not wait.
package protocol TreeGuard: Sendable {
    /// What it decides by besides the data; as long as this is the same object it says the same of the same data.
    var basis: (any AnyObject & Sendable)? { get }

    /// - Parameters:
    ///   - update: the changes, with everything worked out.
    ///   - after: what the tree will be.
    ///   - now: milliseconds since 1970, the instant of the whole request.
    ///   - stepsMax: how much it may do, in its own unit of a fraction of a microsecond; nil for as much as it likes.
    /// - Throws: why the write may not be made: PERMISSION_DENIED; RESOURCE_EXHAUSTED when it takes more than `stepsMax`.
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
    /// With everything worked out.
    package var changes: [TreeChange]
    /// Whether the tree is as it was before.
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

/// What became of a write.
package enum TreeOutcome: Sendable {
    case committed(TreeCommit)
    /// The condition didn't hold; nothing was changed.
    case stale
    /// Nothing was changed.
    case failed(Status)

    var commit: TreeCommit? { if case .committed(let commit) = self { commit } else { nil } }
}

/// Watches what is committed. All calls come on the writer's thread, which they hold up.
package protocol TreeObserver: Sendable {
    /// Changes that are about to be made: `prepare` follows, unless they change nothing or the store fails.
    /// - Parameter before: the tree without them. Only valid during the call.
    func willChange(_ changes: [TreeChange], before: TreeView)
    /// A commit, in order, when it is made but not durable yet. Commits without changes are left out.
    /// - Parameter after: the tree with this commit and without later ones. Only valid during the call.
    func prepare(_ commit: TreeCommit, after: TreeView)
    /// Everything that was prepared is durable. Comes before the completions of those writes.
    func publish()
    /// Nothing of what was prepared has happened.
    func discard()
}

extension TreeObserver {
    package func willChange(_ changes: [TreeChange], before: TreeView) {}
}
