import HearthModel
import Synchronization

/// What happened to a store that people who run the server have to know.
package enum StoreEvent: Sendable, Equatable {
    /// Commits fail since now.
    case commitsFail(Status)
    /// Commits are possible again.
    case commitsRecovered(failures: Int)
    /// The log can't be copied into the database since now; it grows.
    case checkpointsFail(Status)
    case checkpointsRecovered(failures: Int)
    /// Snapshots that kept too much of the log alive were taken away from their holders.
    case snapshotsRevoked(Int)
    /// The log has grown past what is usual.
    case logIsLong(bytes: Int)
    /// The store is closed: whatever it reported before no longer holds.
    case closed
}

/// Is told what happens to stores. Called on any thread, also on the writer's: it returns quickly.
package protocol StoreObserver: AnyObject, Sendable {
    /// - Parameter name: the database's.
    func store(_ name: String, reports event: StoreEvent)
}

/// Whether a store's commits and checkpoints succeed. Reports when that changes: once when something begins to fail,
/// once when it works again.
package final class StoreHealth: Sendable {
    private struct State {
        /// Failures since the last time that it worked.
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

    /// Within the lock, so that what is reported last is what holds.
    private func change(_ body: (inout State) -> StoreEvent?) {
        state.withLock { state in
            if state.isClosed { return }
            if let event = body(&state) { observer?.store(name, reports: event) }
        }
    }
}

/// What a store has done since it was opened, and how it stands.
package struct StoreStatistics: Sendable {
    /// Snapshots that are open, by `SnapshotUse`.
    package var shortSnapshots = 0
    package var longSnapshots = 0
    package var revokedSnapshots = 0
    /// Bytes of the log that hold commits.
    package var logBytes = 0
    package var checkpoints = 0
    package var failedCheckpoints = 0
    /// Checkpoints begun beside the writer on a fully copied log: must stay 0, see docs/internals/sqlite.md.
    package var unsafeCheckpoints = 0
    /// Transactions that the engine refused.
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
