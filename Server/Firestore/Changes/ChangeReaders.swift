import HearthModel
import Synchronization

/// The readers of a server's change feeds, counted.
///
/// A credential may have another one while it has fewer than are left. So one alone gets half, each of n gets an equal part of
/// n + 1, and there is always one left for another credential until there are as many credentials as readers.
package final class ChangeReaders: Sendable {
    private struct Counts {
        var total = 0
        var byDatabase: [DatabaseName: Int] = [:]
        /// By the author that the credential's commits have.
        var byCredential: [[UInt8]: Int] = [:]
    }

    private let counts = Mutex(Counts())
    private let max: Int

    package init(max: Int = Limits.changeReadersMax) { self.max = max }

    /// By database, of which each has at least one.
    package var present: [DatabaseName: Int] { counts.withLock { $0.byDatabase } }

    /// - Parameter credential: `Identity.asAuthor` of the reader.
    /// - Throws: RESOURCE_EXHAUSTED when there are too many, or too many of the credential.
    func begin(_ database: DatabaseName, _ credential: [UInt8]) throws(Status) {
        try counts.withLock { counts throws(Status) in
            if counts.total >= max {
                throw .resourceExhausted("The server has \(max) readers of change feeds, which is as many as it takes.")
            }
            let own = counts.byCredential[credential] ?? 0
            if own > 0, own >= max - counts.total {
                throw .resourceExhausted(
                    "This credential has \(own) of \(max) readers of change feeds, and may not have the last that are left."
                )
            }
            counts.total += 1
            counts.byDatabase[database, default: 0] += 1
            counts.byCredential[credential] = own + 1
        }
    }

    func end(_ database: DatabaseName, _ credential: [UInt8]) {
        counts.withLock { counts in
            counts.total -= 1
            Self.remove(database, from: &counts.byDatabase)
            Self.remove(credential, from: &counts.byCredential)
        }
    }

    private static func remove<Key: Hashable>(_ key: Key, from counts: inout [Key: Int]) {
        let rest = (counts[key] ?? 1) - 1
        counts[key] = rest > 0 ? rest : nil
    }
}
