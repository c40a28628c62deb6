import HearthTree

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
