import HearthLoadClient
import HearthToolSupport
import Glibc
import HearthModel
import HearthNetwork
import Synchronization

/// Many HTTP/2 connections to a server, on each of which one request has been answered, and then nothing happens.
final class ConnectionCrowd: Sendable {
    private struct State {
        var clients: [HTTP2Client] = []
        var pending = 0
        var isClosing = false
        var failure: String?
    }

    private let loop: EventLoop
    private let generator: LoadGenerator
    private let request: [UInt8]
    private let state = Mutex(State())

    /// The number of concurrent connection attempts: below the backlog of a listening socket.
    private static let openingMax = 64

    /// - Parameter count: how many are opened in all, for the limit of open files.
    init(_ instance: FirestoreInstance, count: Int) throws(ToolFailure) {
        // The server has as many, beside its own files.
        let filesMax = FileLimit.raise()
        if count + 200 > filesMax {
            throw ToolFailure(
                .failed,
                "\(count) connections need \(count + 200) open files; the system allows \(filesMax) (ulimit -Hn).")
        }
        var random = SeededRandom(seed: 1)
        request = instance.requests.get(FirestoreInstance.Collection.work.name, documents: 1, &random)
        generator = instance.generator("GetDocument", connections: 1, streams: 1)
        loop = try ToolLoop.start()
    }

    /// Opens more connections, and returns when each has its answer.
    func open(_ count: Int) throws(ToolFailure) {
        for _ in 0..<count {
            try wait(pendingMax: Self.openingMax - 1)
            state.withLock { $0.pending += 1 }
            open()
        }
        try wait(pendingMax: 0)
    }

    private func open() {
        guard case .grpc(let path, let metadata) = generator.wire else { return }
        let configuration = HTTP2Client.Configuration(host: generator.host, port: generator.port)
        HTTP2Client.connect(configuration, on: loop) { [self] result in
            switch result {
            case .failure(let status): ended(status)
            case .success(let client):
                state.withLock { $0.clients.append(client) }
                client.onClose = { self.closed() }
                GRPCClient(client).unary(path: path, metadata: metadata, message: request) { answer in
                    switch answer {
                    case .success: self.ended(nil)
                    case .failure(let status): self.ended(status)
                    }
                }
            }
        }
    }

    private func ended(_ failure: Status?) {
        state.withLock { state in
            state.pending -= 1
            if let failure { state.failure = state.failure ?? failure.message }
        }
    }

    private func wait(pendingMax: Int) throws(ToolFailure) {
        while true {
            let (pending, failure) = state.withLock { ($0.pending, $0.failure) }
            if let failure { throw ToolFailure(.failed, "A connection could not be kept: \(failure)") }
            if pending <= pendingMax { return }
            usleep(200)
        }
    }

    /// Each connection that the server closes would falsify the figure.
    private func closed() {
        state.withLock { state in
            if !state.isClosing { state.failure = state.failure ?? "the server closed one" }
        }
    }

    func close() {
        let clients = state.withLock { state in
            state.isClosing = true
            return state.clients
        }
        loop.execute { for client in clients { client.close() } }
        loop.stopAndJoin()
    }
}
