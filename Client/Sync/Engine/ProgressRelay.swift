import HearthModel
import Synchronization

/// Delivers each step of a bundle's loading, several steps per callback: a callback for each step would cost more than
/// the document that it reports. No step is delivered after the end.
final class ProgressRelay: Sendable {
    package typealias Step = (progress: SyncClient.BundleProgress, error: Status?)

    private struct State {
        var waiting: [Step] = []
        var progress = SyncClient.BundleProgress(
            documentsLoaded: 0, totalDocuments: 0, bytesLoaded: 0, totalBytes: 0, state: .inProgress)
    }

    private let callbacks: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let onProgress: @Sendable (SyncClient.BundleProgress, Status?) -> Void
    private let state = Mutex(State())

    init(
        _ callbacks: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
        _ onProgress: @escaping @Sendable (SyncClient.BundleProgress, Status?) -> Void
    ) {
        self.callbacks = callbacks
        self.onProgress = onProgress
    }

    func take(_ progress: SyncClient.BundleProgress, _ error: Status?) {
        handOn { _ in (progress, error) }
    }

    /// Ends the loading at its current step.
    func end(_ error: Status) {
        handOn { progress in
            var progress = progress
            progress.state = .error
            return (progress, error)
        }
    }

    private func handOn(_ step: (SyncClient.BundleProgress) -> Step) {
        let isFirst = state.withLock { state in
            if state.progress.state != .inProgress { return false }
            let step = step(state.progress)
            state.progress = step.progress
            state.waiting.append(step)
            return state.waiting.count == 1
        }
        guard isFirst else { return }
        callbacks { [self] in
            let steps = state.withLock { state in
                defer { state.waiting = [] }
                return state.waiting
            }
            for step in steps { onProgress(step.progress, step.error) }
        }
    }
}
