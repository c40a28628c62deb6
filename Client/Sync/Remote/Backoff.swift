/// How long to wait before the next attempt: not at all at first, then longer and longer, never regularly.
final class Backoff {
    static let baseSeconds = 1.0
    static let factor = 1.5
    static let secondsMax = 60.0

    private let queue: WorkerQueue
    private let timer: WorkerQueue.TimerName
    private var currentSeconds = 0.0
    private var lastAttemptSeconds = Clock.seconds()
    private var delayed: WorkerQueue.Delayed?

    init(_ queue: WorkerQueue, _ timer: WorkerQueue.TimerName) {
        self.queue = queue
        self.timer = timer
    }

    func reset() { currentSeconds = 0 }
    func resetToMax() { currentSeconds = Self.secondsMax }

    func cancel() {
        delayed?.cancel()
        delayed = nil
    }

    /// Runs something when it is time; what waited before is forgotten.
    func run(_ operation: @escaping () -> Void) {
        cancel()
        let wanted = Self.delaySeconds(currentSeconds, random: Double.random(in: 0..<1))
        let sinceLast = max(0, Clock.seconds() - lastAttemptSeconds)
        delayed = queue.schedule(timer, afterSeconds: max(0, wanted - sinceLast)) { [unowned self] in
            lastAttemptSeconds = Clock.seconds()
            delayed = nil
            operation()
        }
        currentSeconds = Self.next(currentSeconds)
    }

    /// Half the base more or less.
    static func delaySeconds(_ base: Double, random: Double) -> Double { base + (random - 0.5) * base }

    static func next(_ base: Double) -> Double { min(max(base * factor, baseSeconds), secondsMax) }
}
