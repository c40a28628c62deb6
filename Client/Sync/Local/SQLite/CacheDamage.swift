/// A cache that could not be used and was moved aside. The client continues with an empty one.
package struct CacheDamage: Sendable, Equatable {
    /// The cause.
    package var reason: String
    package var path: String
    package var movedTo: String
    /// The user's writes that never reached the server, as far as they could still be read.
    package var pendingWritesRead: Int
    /// Whether all batches of writes could be read, so that the number is complete.
    package var isCountComplete: Bool

    package var message: String {
        let count = isCountComplete ? "\(pendingWritesRead)" : "at least \(pendingWritesRead)"
        return "The cache \(path) is damaged and was moved aside as \(movedTo); a new one was created. "
            + "Writes in it that never reached the server: \(count). (\(reason))"
    }
}
