import HearthModel

/// A value that a `Registry` holds open.
@usableFromInline package protocol Registered: AnyObject, Sendable {
    /// Whether a store exists. A database that was never written has none, and may be forgotten immediately.
    var exists: Bool { get }
    /// Whether work is in progress that holds no reference: an open transaction, a queued commit.
    var isBusy: Bool { get }
    /// Waits until all work on it has ended, and closes its files.
    func close(because reason: Status)
}
