import HearthLoadClient
import HearthToolSupport
import Glibc
import HearthModel
import HearthNetwork
import Synchronization

/// Subscribers of a Redis channel, and one publisher: the latency of a message that is not stored.
///
/// `@unchecked Sendable`: members outside of `state` belong to the loop.
final class RedisListeners: @unchecked Sendable {
    private struct State {
        var ready = 0
        var failure: String?
    }

    private let loop: EventLoop
    private let port: Int
    private let state = Mutex(State())
    private var clients: [TCPClient] = []
    private var onMessage: (() -> Void)?

    init(port: Int) throws(ToolFailure) {
        self.port = port
        loop = try ToolLoop.start()
    }

    func close() {
        loop.execute { [self] in for client in clients { client.close() } }
        loop.stopAndJoin()
    }

    /// - Parameter publish: the command that publishes a message, which subscribers receive as this many bytes.
    func latencies(
        listeners: Int, subscribe: [UInt8], subscribedBytes: Int, publish: [UInt8], messageBytes: Int, seconds: Double,
        warmUp: Double
    ) throws(ToolFailure) -> LoadResult {
        for _ in 0..<listeners {
            connect { [self] client in
                clients.append(client)
                var missing = subscribedBytes
                var isReady = false
                client.onBytes = { [self] bytes in
                    missing -= bytes.count
                    while missing <= 0 {
                        missing += messageBytes
                        if isReady { onMessage?() } else { state.withLock { $0.ready += 1 } }
                        isReady = true
                    }
                }
                client.send(subscribe)
            }
        }
        try wait { $0.ready == listeners }
        let run = ListenLatencyRun(listeners: listeners, seconds: seconds, warmUp: warmUp)
        connect { [self] client in
            clients.append(client)
            func next() { if run.next() != nil { client.send(publish) } }
            client.onBytes = { _ in if run.answered() { next() } }
            onMessage = { if run.delivered() { next() } }
            next()
        }
        try wait { _ in run.isOver }
        return run.results().snapshots
    }

    private func connect(_ done: @escaping @Sendable (TCPClient) -> Void) {
        TCPClient.connect(host: "127.0.0.1", port: port, on: loop) { [self] result in
            switch result {
            case .failure(let status): state.withLock { $0.failure = status.message }
            case .success(let client): done(client)
            }
        }
    }

    private func wait(_ isDone: (State) -> Bool) throws(ToolFailure) {
        while true {
            let (done, failure) = state.withLock { (isDone($0), $0.failure) }
            if let failure { throw ToolFailure(.failed, failure) }
            if done { return }
            usleep(200)
        }
    }
}
