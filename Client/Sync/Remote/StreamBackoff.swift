import HearthConcurrency

extension Backoff.Policy {
    /// Of Firestore's SDKs, for streams and transactions: half of the time more or less.
    package static let firestore = Backoff.Policy(
        firstMilliseconds: 1_000, factor: 1.5, maxMilliseconds: 60_000, jitter: 0.5...1.5)
}

/// Schedules a stream's next attempt. The time since the last attempt counts as waited.
final class StreamBackoff {
    private let queue: WorkerQueue
    private let timer: WorkerQueue.TimerName
    private var backoff = Backoff(.firestore)
    private var lastAttemptSeconds: Double
    private var delayed: WorkerQueue.Delayed?

    init(_ queue: WorkerQueue, _ timer: WorkerQueue.TimerName) {
        self.queue = queue
        self.timer = timer
        lastAttemptSeconds = queue.nowSeconds
    }

    func reset() { backoff.reset() }
    func growToMax() { backoff.growToMax() }

    func cancel() {
        delayed?.cancel()
        delayed = nil
    }

    /// Runs an operation when it is time. An operation that waited before is dropped.
    func run(_ operation: @escaping () -> Void) {
        cancel()
        let wantedSeconds = backoff.next(random: Double.random(in: 0..<1)) / 1_000
        let sinceLastSeconds = max(0, queue.nowSeconds - lastAttemptSeconds)
        delayed = queue.schedule(timer, afterSeconds: max(0, wantedSeconds - sinceLastSeconds)) { [unowned self] in
            lastAttemptSeconds = queue.nowSeconds
            delayed = nil
            operation()
        }
    }
}
