import HearthModel

/// The source of tokens for streams. It calls back on the worker queue, possibly at once.
typealias TokenSource = (_ completion: @escaping (Result<String?, Status>) -> Void) -> Void

/// The lifetime of one stream: tokens, backoff and idle timeout.
///
/// All state belongs to the worker queue. Therefore it is safe to pass the stream to the datastore's callbacks, which
/// only enqueue.
final class ManagedStream<Request: Sendable, Response: Sendable>: @unchecked Sendable {
    package enum State { case initial, starting, open, healthy, error, backoff }

    struct Timers {
        var idle: WorkerQueue.TimerName
        var health: WorkerQueue.TimerName
        var backoff: WorkerQueue.TimerName
    }

    typealias Opener =
        (_ token: String?, _ onEvent: @escaping @Sendable (StreamEvent<Response>) -> Void)
        -> any RequestStream<Request>

    private var idleSeconds: Double { 60 }
    private var healthySeconds: Double { 10 }

    private let queue: WorkerQueue
    private let timers: Timers
    private let tokens: TokenSource
    private let invalidateToken: () -> Void
    private let opener: Opener
    private let backoff: StreamBackoff
    private(set) var state = State.initial
    private var stream: (any RequestStream<Request>)?
    /// Counts closings. Callbacks of an earlier generation are ignored.
    private var generation = 0
    private var idleTimer: WorkerQueue.Delayed?
    private var healthTimer: WorkerQueue.Delayed?

    var onOpen: () -> Void = {}
    var onResponse: (Response) -> Void = { _ in }
    /// `ok`: the stream was stopped.
    var onClose: (Status) -> Void = { _ in }
    /// The last request before a graceful end; nil when there is none.
    var finalRequest: () -> Request? = { nil }

    init(
        queue: WorkerQueue, timers: Timers, tokens: @escaping TokenSource, invalidateToken: @escaping () -> Void,
        opener: @escaping Opener
    ) {
        self.queue = queue
        self.timers = timers
        self.tokens = tokens
        self.invalidateToken = invalidateToken
        self.opener = opener
        backoff = StreamBackoff(queue, timers.backoff)
    }

    var isStarted: Bool { state == .starting || state == .backoff || isOpen }
    var isOpen: Bool { state == .open || state == .healthy }

    func start() {
        if state == .error { return startAfterBackoff() }
        precondition(state == .initial, "a stream starts only once")
        state = .starting
        let started = generation
        tokens { [weak self] result in
            guard let self, generation == started else { return }
            switch result {
            case .success(let token): open(token)
            case .failure(let error): close(error)
            }
        }
    }

    private func startAfterBackoff() {
        state = .backoff
        backoff.run { [unowned self] in
            state = .initial
            start()
        }
    }

    private func open(_ token: String?) {
        let opened = generation
        let queue = queue
        stream = opener(token) { [weak self] event in
            queue.enqueue { [weak self] in
                guard let self, generation == opened else { return }
                let stream = stream
                take(event)
                if case .response = event { stream?.responseTaken() }
            }
        }
    }

    private func take(_ event: StreamEvent<Response>) {
        switch event {
        case .opened:
            guard state == .starting else { return }
            state = .open
            healthTimer = queue.schedule(timers.health, afterSeconds: healthySeconds) { [unowned self] in
                if state == .open { state = .healthy }
            }
            onOpen()
        case .response(let response): if isOpen { onResponse(response) }
        case .closed(let status):
            // A server that ends a stream with OK expects nothing more, but the client still needs the stream.
            close(status.code == .ok ? .unavailable("The server ended the stream.") : status)
        }
    }

    func send(_ request: Request) {
        idleTimer?.cancel()
        idleTimer = nil
        stream?.send(request)
    }

    /// Ends the stream when nothing is sent on it for a while.
    func markIdle() {
        guard isOpen, idleTimer == nil else { return }
        idleTimer = queue.schedule(timers.idle, afterSeconds: idleSeconds) { [unowned self] in
            idleTimer = nil
            if isOpen { stop() }
        }
    }

    func resetBackoff() { backoff.reset() }

    /// The next start does not wait. Call it only while the stream is stopped.
    func inhibitBackoff() {
        precondition(!isStarted, "the backoff can be inhibited only while the stream is stopped")
        state = .initial
        backoff.reset()
    }

    /// Ends the stream with OK.
    func stop() { if isStarted { close(.ok) } }

    /// Ends the stream because of an invalid message.
    func fail(_ status: Status) { if isStarted { close(status) } }

    private func close(_ status: Status) {
        idleTimer?.cancel()
        idleTimer = nil
        healthTimer?.cancel()
        healthTimer = nil
        backoff.cancel()
        generation += 1
        let isGraceful = status.code == .ok
        if isGraceful {
            backoff.reset()
        } else if status.code == .resourceExhausted {
            backoff.growToMax()
        } else if status.code == .unauthenticated {
            // Also after a long time: the token has expired, and the next attempt with it would fail.
            invalidateToken()
        }
        if let stream {
            if isGraceful, isOpen, let request = finalRequest() {
                stream.send(request)
                stream.finish()
            } else {
                stream.cancel()
            }
        }
        stream = nil
        state = isGraceful ? .initial : .error
        onClose(status)
    }
}
