/// Owns open stores that may have no users.
package protocol StoreHolder: AnyObject, Sendable {
    func unused(existing: Bool, before: UInt64, max: Int) -> [UnusedStore]
}

/// An open store that has no users.
package struct UnusedStore: Sendable {
    /// The time of the last use, in monotonic nanoseconds.
    var used: UInt64
    /// Closes the store if it still has no users, and waits for that.
    var close: @Sendable () -> Void
}
