import HearthModel
import Synchronization

/// Whether a store's commits, applications of its log and checkpoints succeed. Reports changes: once when something
/// begins to fail, once when it works again.
package final class StoreHealth: Sendable {
    private struct State {
        /// Failures since the last success.
        var failedCommits = 0
        var failedApplications = 0
        var failedCheckpoints = 0
        var areWritesStalled = false
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

    package func applicationFailed(_ status: Status) {
        change { state in
            state.failedApplications += 1
            return state.failedApplications == 1 ? .applicationsFail(status) : nil
        }
    }

    package func applicationSucceeded() {
        change { state in
            defer { state.failedApplications = 0 }
            return state.failedApplications > 0 ? .applicationsRecovered(failures: state.failedApplications) : nil
        }
    }

    /// - Parameter areStalled: whether writes wait; reported when they begin to, and when that is over.
    package func writes(areStalled: Bool) {
        change { state in
            defer { state.areWritesStalled = areStalled }
            if areStalled == state.areWritesStalled { return nil }
            return areStalled ? .writesStall : .writesFlow
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
