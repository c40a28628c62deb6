import HearthModel
import Synchronization

/// An event of a store that operators of the server must know.
package enum StoreEvent: Sendable, Equatable {
    /// Commits have begun to fail.
    case commitsFail(Status)
    /// Commits are possible again.
    case commitsRecovered(failures: Int)
    /// The log can no longer be copied into the database; it grows.
    case checkpointsFail(Status)
    case checkpointsRecovered(failures: Int)
    /// Snapshots that kept too much of the log alive were taken from their holders.
    case snapshotsRevoked(Int)
    /// The log has grown past its usual size.
    case logIsLong(bytes: Int)
    /// The store is closed: its earlier reports no longer hold.
    case closed
}

/// Receives events of stores. Called on any thread, also on the writer's, so it must return quickly.
package protocol StoreObserver: AnyObject, Sendable {
    /// - Parameter name: the name of the database.
    func store(_ name: String, reports event: StoreEvent)
}

/// Whether a store's commits and checkpoints succeed. Reports changes: once when something begins to fail, once when it
/// works again.
package final class StoreHealth: Sendable {
    private struct State {
        /// Failures since the last success.
        var failedCommits = 0
        var failedCheckpoints = 0
        var isLogLong = false
        var isClosed = false
    }

    private let name: String
    private let observer: (any StoreObserver)?
    private let state = Mutex(State())
    private let failing = Atomic(false)

    package init(name: String, observer: (any StoreObserver)?) {
        self.name = name
        self.observer = observer
    }

    /// Whether commits fail.
    package var isFailing: Bool { failing.load(ordering: .relaxed) }
    package var areCheckpointsFailing: Bool { state.withLock { $0.failedCheckpoints > 0 } }

    package func commitFailed(_ status: Status) {
        change { state in
            failing.store(true, ordering: .relaxed)
            state.failedCommits += 1
            return state.failedCommits == 1 ? .commitsFail(status) : nil
        }
    }

    package func commitsRecovered() {
        change { state in
            failing.store(false, ordering: .relaxed)
            defer { state.failedCommits = 0 }
            return state.failedCommits > 0 ? .commitsRecovered(failures: state.failedCommits) : nil
        }
    }

    package func checkpointFailed(_ status: Status) {
        change { state in
            state.failedCheckpoints += 1
            return state.failedCheckpoints == 1 ? .checkpointsFail(status) : nil
        }
    }

    package func checkpointSucceeded() {
        change { state in
            defer { state.failedCheckpoints = 0 }
            return state.failedCheckpoints > 0 ? .checkpointsRecovered(failures: state.failedCheckpoints) : nil
        }
    }

    package func revoked(_ count: Int) { change { _ in .snapshotsRevoked(count) } }

    /// - Parameter isLong: whether the log is longer than usual; reported when it becomes so.
    package func log(isLong: Bool, bytes: Int) {
        change { state in
            defer { state.isLogLong = isLong }
            return isLong && !state.isLogLong ? .logIsLong(bytes: bytes) : nil
        }
    }

    package func closed() {
        change { state in
            defer { state.isClosed = true }
            return .closed
        }
    }

    /// Within the lock, so that the last report is the current state.
    private func change(_ body: (inout State) -> StoreEvent?) {
        state.withLock { state in
            if state.isClosed { return }
            if let event = body(&state) { observer?.store(name, reports: event) }
        }
    }
}

/// Counters of a store since it was opened, and its present state.
package struct StoreStatistics: Sendable {
    /// Snapshots that are open, by `SnapshotUse`.
    package var shortSnapshots = 0
    package var longSnapshots = 0
    package var revokedSnapshots = 0
    /// Bytes of the log that hold commits.
    package var logBytes = 0
    package var checkpoints = 0
    package var failedCheckpoints = 0
    /// Checkpoints that were started beside the writer on a log that was fully copied: must stay 0, see docs/internals/sqlite.md.
    package var unsafeCheckpoints = 0
    /// Transactions that failed in the engine.
    package var failedCommits = 0

    package init() {}

    package static func + (a: StoreStatistics, b: StoreStatistics) -> StoreStatistics {
        var sum = a
        sum.shortSnapshots += b.shortSnapshots
        sum.longSnapshots += b.longSnapshots
        sum.revokedSnapshots += b.revokedSnapshots
        sum.logBytes += b.logBytes
        sum.checkpoints += b.checkpoints
        sum.failedCheckpoints += b.failedCheckpoints
        sum.unsafeCheckpoints += b.unsafeCheckpoints
        sum.failedCommits += b.failedCommits
        return sum
    }
}
