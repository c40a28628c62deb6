import HearthLoadClient
import HearthToolSupport
import HearthModel
import HearthNetwork

/// Sends requests with a fixed number in flight: each response triggers the next request.
struct LoadGenerator: Sendable {
    /// The protocol.
    enum Wire: Sendable {
        /// Unary and streaming calls; a message is a request.
        case grpc(path: String, metadata: [HTTPHeader])
        /// Requests are sent unchanged, one after another; responses arrive in order.
        case plain(any AnswerFraming.Type)
    }

    var host: String
    var port: Int
    var wire: Wire
    var connections: Int
    /// Requests in flight per connection.
    var streams: Int
    var seed: UInt64 = 1

    /// Creates the request with a number. Called on an event loop.
    typealias MessageMaker = @Sendable (_ number: Int, _ random: inout SeededRandom) -> [UInt8]

    func run(_ bound: LoadBound, _ message: @escaping MessageMaker) throws(ToolFailure) -> LoadResult {
        let run = LoadRun(bound, connections: connections)
        let loop = try ToolLoop.start()
        defer { loop.stopAndJoin() }
        for number in 0..<connections {
            connect(loop, run, SeededRandom(seed: seed &* 1000 &+ UInt64(number)), message)
        }
        var result = run.wait()
        if let failure = run.failure { throw ToolFailure(.unavailable, failure) }
        if result.count == 0 {
            throw ToolFailure(.failed, "No request succeeded: \(result.firstError ?? "nothing came back").")
        }
        result.latenciesMicroseconds.sort()
        return result
    }

    private func connect(
        _ loop: EventLoop, _ run: LoadRun, _ random: SeededRandom, _ message: @escaping MessageMaker
    ) {
        switch wire {
        case .grpc(let path, let metadata):
            HTTP2Client.connect(HTTP2Client.Configuration(host: host, port: port), on: loop) { result in
                guard let client = connected(result, run) else { return }
                GRPCLane(client, run, path: path, metadata: metadata, streams: streams, random: random, message)
                    .start()
            }
        case .plain(let framing):
            TCPClient.connect(host: host, port: port, on: loop) { result in
                guard let client = connected(result, run) else { return }
                PlainLane(client, run, framing, streams: streams, random: random, message).start()
            }
        }
    }

    private func connected<Client>(_ result: Result<Client, Status>, _ run: LoadRun) -> Client? {
        switch result {
        case .success(let client): return client
        case .failure(let status):
            run.fail("Cannot reach \(host):\(port): \(status.message).")
            run.finished(LoadResult())
            return nil
        }
    }
}

/// One connection of a run that speaks gRPC. `@unchecked Sendable`: belongs to the loop's thread.
private final class GRPCLane: @unchecked Sendable {
    private let client: HTTP2Client
    private let grpc: GRPCClient
    private let request: GRPCClient.Request
    private let run: LoadRun
    private let message: LoadGenerator.MessageMaker
    private var random: SeededRandom
    private var open: Int
    private var count: LoadCount

    init(
        _ client: HTTP2Client, _ run: LoadRun, path: String, metadata: [HTTPHeader], streams: Int, random: SeededRandom,
        _ message: @escaping LoadGenerator.MessageMaker
    ) {
        self.client = client
        self.run = run
        self.message = message
        self.random = random
        count = LoadCount(run)
        grpc = GRPCClient(client)
        request = grpc.request(path: path, metadata: metadata)
        open = streams
    }

    func start() {
        for _ in 0..<open { next() }
    }

    private func next() {
        guard let number = run.next() else {
            open -= 1
            if open == 0 {
                run.finished(count.result)
                client.close()
            }
            return
        }
        let bytes = message(number, &random)
        let sent = EventLoop.monotonicNanoseconds()
        grpc.unary(request, message: bytes) { [self] answer in
            switch answer {
            case .success: count.answered(nil, sentAt: sent)
            case .failure(let status): count.answered(status.description, sentAt: sent)
            }
            next()
        }
    }
}
