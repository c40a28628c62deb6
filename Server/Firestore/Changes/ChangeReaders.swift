import HearthModel
import Synchronization

/// The readers of a server's change feeds, counted.
package final class ChangeReaders: Sendable {
    private let counts = Mutex<[DatabaseName: Int]>([:])
    private let max: Int

    package init(max: Int = Limits.changeReadersMax) { self.max = max }

    /// By database, of which each has at least one.
    package var present: [DatabaseName: Int] { counts.withLock { $0 } }

    /// - Throws: RESOURCE_EXHAUSTED when there are too many.
    func begin(_ database: DatabaseName) throws(Status) {
        let isAdmitted = counts.withLock { counts in
            if counts.values.reduce(0, +) >= max { return false }
            counts[database, default: 0] += 1
            return true
        }
        if !isAdmitted {
            throw .resourceExhausted("The server has \(max) readers of change feeds, which is as many as it takes.")
        }
    }

    func end(_ database: DatabaseName) {
        counts.withLock { counts in
            let rest = (counts[database] ?? 1) - 1
            counts[database] = rest > 0 ? rest : nil
        }
    }
}
