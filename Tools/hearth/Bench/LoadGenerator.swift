import Glibc
import HearthModel
import HearthNetwork
import Synchronization

/// Sends gRPC requests, a fixed number in flight: whenever one is answered, the next leaves.
struct LoadGenerator: Sendable {
    var host: String
    var port: Int
    var path: String
    var metadata: [HTTPHeader] = []
    var connections: Int
    /// Requests in flight a connection.
    var streams: Int
    var seed: UInt64 = 1

    /// When a run is over.
    enum Bound: Sendable {
        /// After a time, of which a first part isn't counted.
        case seconds(Double, warmUp: Double)
        /// When so many requests are answered.
        case requests(Int)
    }

    /// Makes the request with a number. Called on an event loop.
    typealias MessageMaker = @Sendable (_ number: Int, _ random: inout SeededRandom) -> [UInt8]

    func run(_ bound: Bound, _ message: @escaping MessageMaker) throws(ToolFailure) -> LoadResult {
        let run = LoadRun(bound, connections: connections)
        let loop: EventLoop
        do throws(Status) {
            loop = try EventLoop()
            try loop.start()
        } catch {
            throw ToolFailure(.software, error.message)
        }
        defer { loop.stopAndJoin() }
        let configuration = HTTP2Client.Configuration(host: host, port: port)
        for number in 0..<connections {
            HTTP2Client.connect(configuration, on: loop) { [self] result in
                switch result {
                case .failure(let status):
                    run.fail("Cannot reach \(host):\(port): \(status.message).")
                    run.finished(LoadResult())
                case .success(let client):
                    let lane = LoadLane(
                        client, run, path: path, metadata: metadata, streams: streams,
                        random: SeededRandom(seed: seed &* 1000 &+ UInt64(number)), message)
                    lane.start()
                }
            }
        }
        var result = run.wait()
        if let failure = run.failure { throw ToolFailure(.unavailable, failure) }
        if result.count == 0 {
            throw ToolFailure(.failed, "No request succeeded: \(result.firstError ?? "nothing came back").")
        }
        result.latenciesMicroseconds.sort()
        return result
    }
}

/// What a run has shown.
struct LoadResult: Sendable {
    var count = 0
    var errors = 0
    var firstError: String?
    var seconds = 0.0
    /// Sorted when the run is over.
    var latenciesMicroseconds: [UInt32] = []

    var rate: Double { seconds > 0 ? Double(count) / seconds : 0 }

    /// - Parameter share: 0.5 for the median.
    func percentile(_ share: Double) -> Double {
        guard !latenciesMicroseconds.isEmpty else { return 0 }
        let place = min(latenciesMicroseconds.count - 1, Int(Double(latenciesMicroseconds.count) * share))
        return Double(latenciesMicroseconds[place])
    }

    mutating func add(_ other: LoadResult) {
        count += other.count
        errors += other.errors
        firstError = firstError ?? other.firstError
        latenciesMicroseconds += other.latenciesMicroseconds
    }
}

/// What the connections of a run share.
private final class LoadRun: Sendable {
    private struct State {
        var result = LoadResult()
        var open: Int
        var failure: String?
        var end: UInt64 = 0
    }

    private let state: Mutex<State>
    private let requests = Atomic<Int>(0)
    private let isStopped = Atomic<Bool>(false)
    private let requestsMax: Int
    let start: UInt64
    let countFrom: UInt64
    let deadline: UInt64

    init(_ bound: LoadGenerator.Bound, connections: Int) {
        state = Mutex(State(open: connections))
        start = EventLoop.monotonicNanoseconds()
        switch bound {
        case .seconds(let seconds, let warmUp):
            requestsMax = .max
            countFrom = start + UInt64(warmUp * 1e9)
            deadline = countFrom + UInt64(seconds * 1e9)
        case .requests(let count):
            requestsMax = count
            countFrom = start
            deadline = .max
        }
    }

    /// The number of the next request; nil when enough were sent.
    func next() -> Int? {
        if isStopped.load(ordering: .relaxed) || EventLoop.monotonicNanoseconds() >= deadline { return nil }
        let number = requests.add(1, ordering: .relaxed).oldValue
        return number < requestsMax ? number : nil
    }

    func fail(_ message: String) {
        isStopped.store(true, ordering: .relaxed)
        state.withLock { state in state.failure = state.failure ?? message }
    }

    var failure: String? { state.withLock { $0.failure } }

    func finished(_ result: LoadResult) {
        state.withLock { state in
            state.result.add(result)
            state.open -= 1
            state.end = EventLoop.monotonicNanoseconds()
        }
    }

    func wait() -> LoadResult {
        while true {
            let isOver = state.withLock { $0.open == 0 }
            if isOver {
                var (result, end) = state.withLock { ($0.result, $0.end) }
                end = max(countFrom, min(end, deadline))
                result.seconds = Double(end - countFrom) / 1e9
                return result
            }
            usleep(500)
        }
    }
}

/// One connection of a run. `@unchecked Sendable`: belongs to the loop's thread.
private final class LoadLane: @unchecked Sendable {
    private let client: HTTP2Client
    private let grpc: GRPCClient
    private let request: GRPCClient.Request
    private let run: LoadRun
    private let message: LoadGenerator.MessageMaker
    private var random: SeededRandom
    private var open: Int
    private var result = LoadResult()

    init(
        _ client: HTTP2Client, _ run: LoadRun, path: String, metadata: [HTTPHeader], streams: Int, random: SeededRandom,
        _ message: @escaping LoadGenerator.MessageMaker
    ) {
        self.client = client
        self.run = run
        self.message = message
        self.random = random
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
                run.finished(result)
                client.close()
            }
            return
        }
        let bytes = message(number, &random)
        let sent = EventLoop.monotonicNanoseconds()
        grpc.unary(request, message: bytes) { [self] answer in
            ended(answer, sent)
            next()
        }
    }

    private func ended(_ answer: Result<[UInt8], Status>, _ sent: UInt64) {
        let now = EventLoop.monotonicNanoseconds()
        guard now >= run.countFrom, now <= run.deadline else { return }
        switch answer {
        case .success:
            result.count += 1
            result.latenciesMicroseconds.append(UInt32(clamping: (now - sent) / 1000))
        case .failure(let status):
            result.errors += 1
            result.firstError = result.firstError ?? status.description
            // A server that refuses everything would be asked as fast as it can refuse.
            if result.errors > 1000 + result.count { run.fail("Most requests fail: \(status.description)") }
        }
    }
}

/// SplitMix64: small, fast, and the same everywhere.
struct SeededRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
