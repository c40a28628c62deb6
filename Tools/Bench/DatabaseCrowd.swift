import HearthToolSupport
import HearthWire
import Glibc
import HearthModel
import HearthNetwork
import Synchronization

/// Sockets with listeners to a Realtime Database, and their events.
///
/// `@unchecked Sendable`: members outside of `state` belong to the loop.
final class DatabaseCrowd: @unchecked Sendable {
    private struct State {
        var opening = 0
        var isClosing = false
        var failure: String?
    }

    private let loop: EventLoop
    private let server: RunningServer
    private let state = Mutex(State())
    private var sockets: [DatabaseSocket] = []

    /// Called on the loop for each event that comes after the first value.
    private var onEvent: (() -> Void)?

    private static let openingMax = 64

    init(_ server: RunningServer) throws(ToolFailure) {
        self.server = server
        loop = try ToolLoop.start()
    }

    /// Opens sockets that listen to one location each, and returns when each has its value.
    func open(_ count: Int, _ path: @escaping @Sendable (Int) -> String) throws(ToolFailure) {
        let filesMax = FileLimit.raise()
        if count + 200 > filesMax {
            throw ToolFailure(.failed, "\(count) connections need more open files than the system allows, \(filesMax).")
        }
        for number in 0..<count {
            try wait { $0.opening < Self.openingMax }
            state.withLock { $0.opening += 1 }
            socket { [self] socket in
                var isOpening = true
                socket.onText = { [self] string in
                    switch DatabaseMessage.kind(string) {
                    case .event: if !isOpening { onEvent?() }
                    case .reply:
                        if let failure = DatabaseMessage.failure(string) { fail(failure) }
                        if isOpening { state.withLock { $0.opening -= 1 } }
                        isOpening = false
                    case .other: break
                    }
                }
                socket.send(DatabaseMessage.listen(1, path(number)))
            }
        }
        try wait { $0.opening == 0 }
    }

    private func socket(_ ready: @escaping @Sendable (DatabaseSocket) -> Void) {
        DatabaseSocket.open(
            host: server.host, port: server.port, namespace: DatabaseMessage.namespace, on: loop,
            failed: { [self] in fail($0) },
            ready: { [self] socket in
                sockets.append(socket)
                ready(socket)
            })
    }

    private func fail(_ message: String) {
        state.withLock { state in if !state.isClosing { state.failure = state.failure ?? message } }
    }

    private func wait(_ isDone: (State) -> Bool) throws(ToolFailure) {
        while true {
            let (done, failure) = state.withLock { (isDone($0), $0.failure) }
            if let failure { throw ToolFailure(.failed, failure) }
            if done { return }
            usleep(200)
        }
    }

    func close() {
        state.withLock { $0.isClosing = true }
        loop.execute { [self] in for socket in sockets { socket.close() } }
        loop.stopAndJoin()
    }

    // MARK: Loads

    /// Writes one value after another, each when all listeners have received the one before.
    /// - Returns: the time from sending a write to its event for each listener, and to its response.
    func latencies(
        listeners: Int, seconds: Double, warmUp: Double, path: String
    ) throws(ToolFailure) -> (events: LoadResult, writes: LoadResult) {
        let run = ListenLatencyRun(listeners: listeners, seconds: seconds, warmUp: warmUp)
        socket { [self] socket in
            func next() {
                guard let number = run.next() else { return }
                socket.send(DatabaseMessage.put(number, path, String(number)))
            }
            socket.onText = { string in
                guard DatabaseMessage.kind(string) == .reply else { return }
                if let failure = DatabaseMessage.failure(string) { self.fail(failure) }
                if run.answered() { next() }
            }
            onEvent = { if run.delivered() { next() } }
            next()
        }
        try wait { _ in run.isOver }
        let events = run.results()
        return (events.snapshots, events.commits)
    }

    /// Writes a location, several writes in flight, and counts the events.
    func deliveries(seconds: Double, inFlight: Int, path: String) throws(ToolFailure) -> (events: Int, writes: Int) {
        let counters = Counters()
        let deadline = EventLoop.monotonicNanoseconds() + UInt64(seconds * 1e9)
        socket { [self] socket in
            onEvent = { counters.events.add(1, ordering: .relaxed) }
            var number = 0
            func next() {
                if EventLoop.monotonicNanoseconds() >= deadline { return }
                number += 1
                socket.send(DatabaseMessage.put(number, path, String(number)))
            }
            socket.onText = { string in
                guard DatabaseMessage.kind(string) == .reply else { return }
                if let failure = DatabaseMessage.failure(string) { self.fail(failure) }
                counters.writes.add(1, ordering: .relaxed)
                next()
            }
            for _ in 0..<inFlight { next() }
        }
        try wait { _ in EventLoop.monotonicNanoseconds() >= deadline }
        return (counters.events.load(ordering: .relaxed), counters.writes.load(ordering: .relaxed))
    }

    private final class Counters: Sendable {
        let events = Atomic<Int>(0)
        let writes = Atomic<Int>(0)
    }
}
