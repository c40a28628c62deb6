import HearthEngine
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
        /// Whether an SDK has computed the hash: that for the web computes another one for some numbers.
        package var isOfSDK = false

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
    /// Returns who makes it, in a form that only the recorder of commits reads; nil for the server itself. Called when that is
    /// stored, on the writer's thread.
    package var author: (@Sendable () -> [UInt8])?
    /// Whether the recorder of commits is called for it.
    package var isRecorded = true
    /// Changes of a recorder's own records, which become durable with it.
    var edit: (@Sendable (any StoreTransaction) throws(Status) -> Void)?

    package init(
        changes: [TreeChange], condition: Condition? = nil, guard: (any TreeGuard)? = nil, nowMilliseconds: Int64,
        journal: [JournalChange] = [], base: TreePath? = nil,
        author: (@Sendable () -> [UInt8])? = nil
    ) {
        self.changes = changes
        self.condition = condition
        self.guard = `guard`
        self.nowMilliseconds = nowMilliseconds
        self.journal = journal
        self.base = base
        self.author = author
    }
}
