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
    /// Of gRPC calls.
    var answers = AnswerRule(method: "")

    /// Creates the request with a number. Called on the thread of the load.
    typealias MessageMaker = @Sendable (_ number: Int, _ random: inout SeededRandom) -> [UInt8]

    func run(_ bound: LoadBound, _ message: @escaping MessageMaker) throws(ToolFailure) -> LoadResult {
        switch wire {
        case .grpc: return try run(bound, MadeRequests(seed: seed, message))
        case .plain(let framing): return try Self.checked(try plain(bound, framing, message))
        }
    }

    /// Only for gRPC.
    func run(_ bound: LoadBound, _ requests: any RequestSource) throws(ToolFailure) -> LoadResult {
        guard case .grpc(let path, let metadata) = wire else {
            throw ToolFailure(.software, "A load of gRPC calls needs a path.")
        }
        return try Self.checked(try GRPCLoad(generator: self, path: path, metadata: metadata).run(bound, requests))
    }

    private static func checked(_ result: LoadResult) throws(ToolFailure) -> LoadResult {
        if result.count == 0 {
            throw ToolFailure(.failed, "No request succeeded: \(result.firstError ?? "nothing came back").")
        }
        var result = result
        result.latenciesMicroseconds.sort()
        return result
    }

    private func plain(
        _ bound: LoadBound, _ framing: any AnswerFraming.Type, _ message: @escaping MessageMaker
    ) throws(ToolFailure) -> LoadResult {
        let run = LoadRun(bound, connections: connections)
        let before = ProcessTimes.own
        let loop = try ToolLoop.start()
        defer { loop.stopAndJoin() }
        for number in 0..<connections {
            let random = SeededRandom(seed: seed &* 1000 &+ UInt64(number))
            TCPClient.connect(host: host, port: port, on: loop) { result in
                guard let client = connected(result, run) else { return }
                PlainLane(client, run, framing, streams: streams, random: random, message).start()
            }
        }
        var result = run.wait()
        result.generatorSeconds = ProcessTimes.own - before
        if let failure = run.failure { throw ToolFailure(.unavailable, failure) }
        return result
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
