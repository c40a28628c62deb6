import HearthTree

/// A location, or a query at a location, that a client reads or listens to.
package struct RealtimeTarget: Hashable, Sendable {
    package var path: TreePath
    /// Nil for the whole location; also for queries that only order.
    package var query: TreeQuery?
}
