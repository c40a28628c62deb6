import HearthToolSupport
import HearthWire
import Glibc
import HearthModel
import HearthNetwork

/// The workloads on the Realtime Database. Its trees belong to an administrator or are open, as on a server for local
/// development.
struct DatabaseWorkloads {
    let instance: FirestoreInstance
    let settings: BenchSettings
    let name: String

    private static let hot = "/bench/hot"
    /// Leaves of a node below `/tree`, and its fields, so that no node is large.
    private static let leavesEach = 20
    private static let nodesEach = 100
    /// The initial value of a leaf. Numbers that grow with the next write would split most pages of the tree during the
    /// measurement.
    private static let numbers = 0..<1_000_000_000

    private func figure(_ metric: String, _ unit: String, _ value: Double, _ direction: Figure.Direction) -> Figure {
        Figure(workload: name, metric: metric, unit: unit, value: value, direction: direction)
    }

    // MARK: Writes

    /// Durable writes of one leaf each, over four sockets.
    func writes(inFlight: Int, leaves: Int) throws(ToolFailure) -> [Figure] {
        try fill(leaves: leaves)
        return try measure(inFlight: inFlight, leaves: leaves)
    }

    private func measure(inFlight: Int, leaves: Int) throws(ToolFailure) -> [Figure] {
        let connections = min(4, inFlight)
        let run = LoadRun(.seconds(settings.seconds, warmUp: min(1, settings.seconds)), connections: connections)
        let loop = try ToolLoop.start()
        defer { loop.stopAndJoin() }
        let before = instance.server.processorSeconds
        let ownBefore = ProcessTimes.own
        for _ in 0..<connections {
            let random = SeededRandom(seed: instance.nextSeed())
            let streams = inFlight / connections
            DatabaseSocket.open(
                host: instance.server.host, port: instance.server.port, namespace: DatabaseMessage.namespace, on: loop,
                failed: { message in
                    run.fail(message)
                    run.finished(LoadResult())
                },
                ready: { socket in
                    DatabaseLane(socket, run, streams: streams, random: random) { number, random in
                        let leaf = Int.random(in: 0..<leaves, using: &random)
                        return DatabaseMessage.put(
                            number, Self.path(leaf), String(Int.random(in: Self.numbers, using: &random)))
                    }.start()
                })
        }
        var result = run.wait()
        result.generatorSeconds = ProcessTimes.own - ownBefore
        if let failure = run.failure { throw ToolFailure(.unavailable, failure) }
        if result.errors > 0 || result.count == 0 {
            throw ToolFailure(.failed, "\(name): writes fail: \(result.firstError ?? "nothing came back")")
        }
        let after = instance.server.processorSeconds
        result.latenciesMicroseconds.sort()
        return result.figures(name) + result.costs(name, before, after)
    }

    private static func path(_ leaf: Int) -> String {
        let node = leaf / leavesEach
        return "/tree/g\(node / nodesEach)/n\(node % nodesEach)/f\(leaf % leavesEach)"
    }

    /// Leaves of numbers, a few to a node, in groups that are updated one by one over REST.
    private func fill(leaves: Int) throws(ToolFailure) {
        if instance.treeLeaves == leaves { return }
        let groupLeaves = Self.leavesEach * Self.nodesEach
        let groups = (leaves + groupLeaves - 1) / groupLeaves
        let each = 5
        let requests = (groups + each - 1) / each
        let load = instance.restGenerator(connections: 4)
        let result = try load.run(.requests(requests)) { number, random in
            let members = (number * each..<min(groups, (number + 1) * each)).map { group in
                let nodes = (0..<Self.nodesEach).map { node in
                    let fields = (0..<Self.leavesEach).map {
                        #""f\#($0)":\#(Int.random(in: Self.numbers, using: &random))"#
                    }
                    return #""n\#(node)":{\#(fields.joined(separator: ","))}"#
                }
                return #""g\#(group)":{\#(nodes.joined(separator: ","))}"#
            }
            let body = "{\(members.joined(separator: ","))}"
            return Array(
                ("PATCH /tree.json?ns=\(DatabaseMessage.namespace)&print=silent HTTP/1.1\r\nhost: localhost\r\n"
                    + "authorization: Bearer owner\r\ncontent-length: \(body.utf8.count)\r\n\r\n\(body)").utf8)
        }
        if result.errors > 0 { throw ToolFailure(.failed, "Filling the tree failed: \(result.firstError ?? "")") }
        instance.treeLeaves = leaves
    }

    // MARK: Events

    func latency() throws(ToolFailure) -> [Figure] {
        let crowd = try DatabaseCrowd(instance.server)
        defer { crowd.close() }
        try crowd.open(1) { _ in Self.hot }
        let (events, writes) = try crowd.latencies(
            listeners: 1, seconds: settings.seconds, warmUp: min(1, settings.seconds), path: Self.hot)
        let event = events.percentile(0.5) / 1000
        let write = writes.percentile(0.5) / 1000
        return [
            figure("p50", "ms", event, .lowerIsBetter),
            figure("p99", "ms", events.percentile(0.99) / 1000, .lowerIsBetter),
            figure("write p50", "ms", write, .lowerIsBetter),
            figure("above the write", "ms", max(0, event - write), .lowerIsBetter),
        ]
    }

    func fanOut(sockets: Int) throws(ToolFailure) -> [Figure] {
        let crowd = try DatabaseCrowd(instance.server)
        defer { crowd.close() }
        try crowd.open(sockets) { _ in Self.hot }
        let before = instance.server.processorSeconds
        let watch = Stopwatch()
        let (events, writes) = try crowd.deliveries(seconds: settings.seconds, inFlight: 4, path: Self.hot)
        let seconds = watch.seconds
        var figures = [
            figure("deliveries", "/s", Double(events) / seconds, .higherIsBetter),
            figure("writes", "/s", Double(writes) / seconds, .higherIsBetter),
        ]
        if let before, let after = instance.server.processorSeconds, events > 0 {
            figures.append(figure("server cpu", "µs", (after - before) / Double(events) * 1e6, .lowerIsBetter))
        }
        return figures
    }

    /// Sockets that each listen to a location of their own, without changes.
    func idle(connections: Int) throws(ToolFailure) -> [Figure] {
        guard let process = instance.server.process else { return [] }
        let crowd = try DatabaseCrowd(instance.server)
        defer { crowd.close() }
        try crowd.open(16) { "/idle/first\($0)" }
        sleep(1)
        let before = process.residentBytes
        try crowd.open(connections) { "/idle/node\($0)" }
        sleep(1)
        let each = Double(process.residentBytes - before) / 1000 / Double(connections)
        return [figure("resident each", "kB", each, .lowerIsBetter)]
    }
}

/// One socket of a run. `@unchecked Sendable`: belongs to the loop's thread.
private final class DatabaseLane: @unchecked Sendable {
    private let socket: DatabaseSocket
    private let run: LoadRun
    private let message: LoadGenerator.MessageMaker
    private var random: SeededRandom
    private let streams: Int
    private var count: LoadCount
    /// The send times of unanswered requests; responses arrive in order.
    private var sentAt: [UInt64] = []
    private var isFinished = false

    init(
        _ socket: DatabaseSocket, _ run: LoadRun, streams: Int, random: SeededRandom,
        _ message: @escaping LoadGenerator.MessageMaker
    ) {
        self.socket = socket
        self.run = run
        self.streams = streams
        self.random = random
        self.message = message
        count = LoadCount(run)
    }

    func start() {
        socket.onText = { [self] string in
            guard DatabaseMessage.kind(string) == .reply, !sentAt.isEmpty else { return }
            count.answered(DatabaseMessage.failure(string), sentAt: sentAt.removeFirst())
            next()
        }
        socket.onClose = { [self] message in
            run.fail(message)
            finish()
        }
        for _ in 0..<streams { next() }
    }

    private func next() {
        guard let number = run.next() else {
            if sentAt.isEmpty { finish() }
            return
        }
        socket.send(message(number, &random))
        sentAt.append(EventLoop.monotonicNanoseconds())
    }

    private func finish() {
        if isFinished { return }
        isFinished = true
        run.finished(count.result)
        socket.close()
    }
}
