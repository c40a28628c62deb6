import HearthModel

/// Determines from the state of the watch stream whether the client is online.
final class OnlineStateTracker {
    static let timeoutSeconds = 10.0
    /// After this number of consecutive failures the client is offline.
    static let failuresMax = 1

    private let queue: WorkerQueue
    private let onChange: (OnlineState) -> Void
    private(set) var state = OnlineState.unknown
    private var failureCount = 0
    private var timer: WorkerQueue.Delayed?
    /// Only until the first success. Later changes of the network are normal.
    private var warnsWhenOffline = true
    var onWarning: (String) -> Void = { _ in }

    init(_ queue: WorkerQueue, onChange: @escaping (OnlineState) -> Void) {
        self.queue = queue
        self.onChange = onChange
    }

    func watchStreamStarts() {
        guard failureCount == 0 else { return }
        set(.unknown)
        cancelTimer()
        startTimer()
    }

    /// A listener waits for a stream that was started before, and whose timer may have ended with another listener.
    func watchStreamIsAwaited() {
        if state == .unknown, timer == nil { startTimer() }
    }

    private func startTimer() {
        timer = queue.schedule(.onlineStateTimeout, afterSeconds: Self.timeoutSeconds) { [unowned self] in
            timer = nil
            warn("it did not answer within \(Int(Self.timeoutSeconds)) seconds")
            set(.offline)
        }
    }

    func watchStreamFailed(_ status: Status) {
        if state == .online { return set(.unknown) }
        failureCount += 1
        if failureCount >= Self.failuresMax {
            cancelTimer()
            warn("\(status)")
            set(.offline)
        }
    }

    /// The stream of writes could not be opened. Only the watch stream determines the state, but a program that only
    /// writes has none: without a warning it would wait without a reason.
    func writeStreamFailed(_ status: Status) { warn("\(status)") }

    func writeStreamOpened() { warnsWhenOffline = false }

    private func warn(_ reason: String) {
        guard warnsWhenOffline else { return }
        warnsWhenOffline = false
        onWarning(
            "The Firestore server cannot be reached: \(reason). The client works with its cache until it is reachable."
        )
    }

    /// Sets a state that the remote store knows for certain.
    func update(_ state: OnlineState) {
        cancelTimer()
        failureCount = 0
        if state == .online { warnsWhenOffline = false }
        set(state)
    }

    private func set(_ new: OnlineState) {
        guard new != state else { return }
        state = new
        onChange(new)
    }

    private func cancelTimer() {
        timer?.cancel()
        timer = nil
    }
}
