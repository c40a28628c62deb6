import HearthModel
import Synchronization

/// Hands each step of a bundle's loading on, many of them in one turn of the callback queue: a turn for each would cost more
/// than the document that it tells of.
final class ProgressRelay: Sendable {
    typealias Step = (progress: SyncClient.BundleProgress, error: Status?)

    private let callbacks: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let onProgress: @Sendable (SyncClient.BundleProgress, Status?) -> Void
    private let waiting = Mutex<[Step]>([])

    init(
        _ callbacks: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
        _ onProgress: @escaping @Sendable (SyncClient.BundleProgress, Status?) -> Void
    ) {
        self.callbacks = callbacks
        self.onProgress = onProgress
    }

    func take(_ progress: SyncClient.BundleProgress, _ error: Status?) {
        let isFirst = waiting.withLock { waiting in
            waiting.append((progress, error))
            return waiting.count == 1
        }
        guard isFirst else { return }
        callbacks { [self] in
            let steps = waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
            for step in steps { onProgress(step.progress, step.error) }
        }
    }
}
