import Dispatch
import Foundation
import HearthConcurrency

/// The serial queue on which a client's engine runs, and its timers.
///
/// Each timer has a name, so that tests can fire it. The lock guards `pendingCount`; `delayed` belongs to the queue.
final class WorkerQueue: @unchecked Sendable {
    enum TimerName: String, Sendable {
        case listenStreamIdle = "listen_stream_idle"
        case listenStreamBackoff = "listen_stream_connection_backoff"
        case listenStreamHealth = "listen_stream_health"
        case writeStreamIdle = "write_stream_idle"
        case writeStreamBackoff = "write_stream_connection_backoff"
        case writeStreamHealth = "write_stream_health"
        case onlineStateTimeout = "online_state_timeout"
        case garbageCollection = "garbage_collection"
        case indexBackfill = "index_backfill"
        case cacheRetry = "cache_retry"
        case overlays = "overlays"
    }

    /// An operation that waits for its time.
    final class Delayed {
        let name: TimerName
        fileprivate let dueSeconds: Double
        fileprivate var operation: (() -> Void)?

        fileprivate init(_ name: TimerName, dueSeconds: Double, _ operation: @escaping () -> Void) {
            self.name = name
            self.dueSeconds = dueSeconds
            self.operation = operation
        }

        /// Has no effect when the operation has run.
        func cancel() { operation = nil }

        fileprivate func run() {
            let operation = operation
            self.operation = nil
            operation?()
        }
    }

    private let queue: DispatchQueue
    /// Of everything that runs on the queue.
    let clock: any Clock
    private let firesTimers: Bool
    private let lock = NSLock()
    private var pendingCount = 0
    private var delayed: [Delayed] = []

    /// - Parameter firesTimers: false in tests: timers fire only on request.
    init(label: String, clock: any Clock = SystemClock(), firesTimers: Bool = true) {
        queue = DispatchQueue(label: label)
        self.clock = clock
        self.firesTimers = firesTimers
    }

    /// Seconds of the clock, which never decrease.
    var nowSeconds: Double { Double(clock.monotonicNanoseconds()) / 1e9 }

    func enqueue(_ operation: @escaping @Sendable () -> Void) {
        lock.withLock { pendingCount += 1 }
        queue.async { [self] in
            operation()
            lock.withLock { pendingCount -= 1 }
        }
    }

    /// Runs a closure on the queue and waits for it. Do not call it on the queue itself.
    func sync<Result>(_ body: () throws -> Result) rethrows -> Result { try queue.sync(execute: body) }

    /// Runs an operation later. Call it only on the queue.
    func schedule(_ name: TimerName, afterSeconds: Double, _ operation: @escaping () -> Void) -> Delayed {
        let entry = Delayed(name, dueSeconds: nowSeconds + afterSeconds, operation)
        delayed.removeAll { $0.operation == nil }
        delayed.append(entry)
        if firesTimers {
            let box = DelayedBox(entry)
            queue.asyncAfter(deadline: .now() + afterSeconds) { [weak self] in
                guard let self else { return }
                box.entry.run()
                delayed.removeAll { $0.operation == nil }
            }
        }
        return entry
    }

    /// Cancels all timers. Call it only on the queue.
    func cancelAllTimers() {
        for entry in delayed { entry.cancel() }
        delayed = []
    }

    // MARK: For tests

    /// Waits until the queue is empty.
    func drain() {
        while lock.withLock({ pendingCount }) > 0 { queue.sync {} }
    }

    func isScheduled(_ name: TimerName) -> Bool {
        queue.sync { delayed.contains { $0.name == name && $0.operation != nil } }
    }

    /// The time until a timer fires; nil when it is not scheduled.
    func secondsUntil(_ name: TimerName) -> Double? {
        queue.sync { delayed.first { $0.name == name && $0.operation != nil }.map { $0.dueSeconds - nowSeconds } }
    }

    /// Runs a timer's operations, if it has any, and no others.
    func runDelayed(only name: TimerName) {
        queue.sync {
            for entry in delayed where entry.name == name { entry.run() }
            delayed.removeAll { $0.operation == nil }
        }
        drain()
    }

    /// Runs waiting operations in the order of their time, up to and including a timer; nil runs all.
    func runDelayed(through name: TimerName?) {
        queue.sync {
            let due = delayed.filter { $0.operation != nil }.sorted { $0.dueSeconds < $1.dueSeconds }
            for entry in due {
                entry.run()
                if entry.name == name { break }
            }
            delayed.removeAll { $0.operation == nil }
        }
        drain()
    }
}

/// Moves a timer's entry to its own queue, the only queue that uses it.
private struct DelayedBox: @unchecked Sendable {
    let entry: WorkerQueue.Delayed
    init(_ entry: WorkerQueue.Delayed) { self.entry = entry }
}
