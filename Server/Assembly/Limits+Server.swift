import HearthModel

/// The bounds of this module, and of those that build upon it. One marked "ours" guards memory or time and is not part of the
/// service's contract.
extension Limits {
    // MARK: Storage

    /// Seconds after which an unused database or namespace is closed (ours).
    static let databaseIdleSeconds = 300
}
