import Glibc
import HearthModel
import HearthNetwork
import HearthWire

/// The workloads against a server of Firestore.
final class FirestoreSession: BenchSession {
    private let settings: BenchSettings
    private let source: any FirestoreServer
    private let server: RunningServer
    private let warmUpSeconds: Double
    private let requests = BenchRequests()
    /// Collections that are filled.
    private var filled: Set<String> = []
    private var bulkRuns = 0
    private var runs: UInt64 = 0

    private static let smallDocuments = 1000
    private static let batchDocuments = 500

    init(_ settings: BenchSettings, server: any FirestoreServer, warmUpSeconds: Double) throws(ToolFailure) {
        self.settings = settings
        self.warmUpSeconds = warmUpSeconds
        source = server
        self.server = try server.start()
    }

    func stop() { server.process?.stop() }

    func run(_ workload: Workload) throws(ToolFailure) -> [Figure] {
        switch workload.kind {
        case .commit(let inFlight, let fields): try commit(workload.name, inFlight, fields)
        case .get: try get(workload.name)
        case .query(let shape, let isLarge): try query(workload.name, shape, isLarge: isLarge)
        case .count: try count(workload.name)
        case .bulk: try bulk(workload.name)
        case .startup: try startup(workload.name)
        case .idleMemory: try idleMemory(workload.name)
        }
    }

    // MARK: Load

    private func generator(_ method: String, connections: Int, streams: Int) -> LoadGenerator {
        runs += 1
        return LoadGenerator(
            host: server.host, port: server.port, path: BenchRequests.service + method,
            metadata: [
                HTTPHeader("authorization", "Bearer owner"),
                HTTPHeader("google-cloud-resource-prefix", requests.database),
            ], connections: connections, streams: streams, seed: settings.seed &* 1000 &+ runs)
    }

    /// Runs for the set time, and tells rate, latencies and what the server's processor did for it.
    private func measure(
        _ workload: String, _ generator: LoadGenerator, _ message: @escaping LoadGenerator.MessageMaker
    ) throws(ToolFailure) -> [Figure] {
        let seconds = Double(settings.seconds)
        let before = server.process?.processorSeconds
        let result = try generator.run(.seconds(seconds, warmUp: warmUpSeconds), message)
        let after = server.process?.processorSeconds
        if result.errors > result.count / 100 {
            throw ToolFailure(.failed, "\(workload): \(result.errors) requests failed: \(result.firstError ?? "")")
        }
        var figures = [
            Figure(workload: workload, metric: "rate", unit: "/s", value: result.rate, direction: .higherIsBetter),
            Figure(
                workload: workload, metric: "p50", unit: "ms", value: result.percentile(0.5) / 1000,
                direction: .lowerIsBetter),
            Figure(
                workload: workload, metric: "p99", unit: "ms", value: result.percentile(0.99) / 1000,
                direction: .lowerIsBetter),
        ]
        if let before, let after {
            // The warm-up is in the processor's time, so it has to be in the count.
            let all = result.rate * (seconds + warmUpSeconds)
            figures.append(
                Figure(
                    workload: workload, metric: "server cpu", unit: "µs", value: (after - before) * 1e6 / all,
                    direction: .lowerIsBetter))
        }
        return figures
    }

    // MARK: Data

    /// Keeps the automatic indexes away from the payload, which stands for text that nobody queries. A server without the
    /// admin API, like the emulator, has no indexes to spare.
    private func exempt(_ collection: String) {
        guard server.host == "127.0.0.1" || server.host == "localhost" else { return }
        let path = "/v1/\(requests.database)/collectionGroups/\(collection)/fields/payload?updateMask=indexConfig"
        _ = Loopback.request(port: server.port, "PATCH", path, body: #"{"indexConfig": {"indexes": []}}"#)
    }

    /// Fills a collection unless it is filled.
    @discardableResult
    private func fill(_ collection: String, _ documents: Int) throws(ToolFailure) -> LoadResult? {
        if !filled.insert(collection).inserted { return nil }
        exempt(collection)
        let batches = (documents + Self.batchDocuments - 1) / Self.batchDocuments
        let result = try generator("BatchWrite", connections: 2, streams: 2).run(.requests(batches)) {
            [requests] number, random in
            let start = number * Self.batchDocuments
            return requests.batch(collection, start..<min(documents, start + Self.batchDocuments), &random)
        }
        if result.errors > 0 {
            throw ToolFailure(.failed, "Filling \(collection) failed: \(result.firstError ?? "")")
        }
        return result
    }

    // MARK: Workloads

    private func commit(_ name: String, _ inFlight: Int, _ fields: Workload.CommitFields) throws(ToolFailure)
        -> [Figure]
    {
        let documents = settings.documents
        try fill("work", documents)
        let connections = min(4, inFlight)
        let generator = generator("Commit", connections: connections, streams: inFlight / connections)
        return try measure(name, generator) { [requests] _, random in
            requests.commit("work", documents: documents, fields, &random)
        }
    }

    private func get(_ name: String) throws(ToolFailure) -> [Figure] {
        let documents = settings.documents
        try fill("work", documents)
        var random = SeededRandom(seed: settings.seed)
        let messages = (0..<4096).map { _ in requests.get("work", documents: documents, &random) }
        return try measure(name, generator("GetDocument", connections: 8, streams: 16)) { number, _ in
            messages[number % messages.count]
        }
    }

    private func query(_ name: String, _ shape: Workload.QueryShape, isLarge: Bool) throws(ToolFailure) -> [Figure] {
        let collection = isLarge ? "large-1" : "small"
        let documents = isLarge ? settings.large : Self.smallDocuments
        try fill(collection, documents)
        var random = SeededRandom(seed: settings.seed)
        let messages = (0..<1024).map { _ in requests.query(collection, documents: documents, shape, &random) }
        let answers = try Probe.call(generator("RunQuery", connections: 1, streams: 1), messages[0])
        let found = answers.count { bytes in
            do throws(Status) { return try RunQueryResponse(protobuf: bytes).document != nil } catch { return false }
        }
        if found != 100 { throw ToolFailure(.failed, "\(name): the query gave \(found) documents in place of 100.") }
        return try measure(name, generator("RunQuery", connections: 4, streams: 4)) { number, _ in
            messages[number % messages.count]
        }
    }

    private func count(_ name: String) throws(ToolFailure) -> [Figure] {
        try fill("large-1", settings.large)
        let message: [UInt8]
        do { message = try requests.count("large-1") } catch { throw ToolFailure(.software, error.message) }
        let figures = try measure(name, generator("RunAggregationQuery", connections: 1, streams: 1)) { _, _ in message
        }
        return figures.filter { $0.metric != "rate" }
    }

    private func bulk(_ name: String) throws(ToolFailure) -> [Figure] {
        bulkRuns += 1
        let watch = Stopwatch()
        guard try fill("large-\(bulkRuns)", settings.large) != nil else {
            // Filled by another workload before: this run would measure nothing.
            return []
        }
        let seconds = watch.seconds
        var figures = [
            Figure(
                workload: name, metric: "documents", unit: "/s", value: Double(settings.large) / seconds,
                direction: .higherIsBetter)
        ]
        if let process = server.process, bulkRuns == 1 {
            figures.append(
                Figure(
                    workload: name, metric: "memory after", unit: "MB", value: Double(process.residentBytes) / 1e6,
                    direction: .lowerIsBetter))
        }
        return figures
    }

    private func startup(_ name: String) throws(ToolFailure) -> [Figure] {
        let other = try source.start()
        other.process?.stop()
        return [
            Figure(
                workload: name, metric: "first answer", unit: "ms", value: other.startMilliseconds,
                direction: .lowerIsBetter)
        ]
    }

    private func idleMemory(_ name: String) throws(ToolFailure) -> [Figure] {
        let other = try source.start()
        defer { other.process?.stop() }
        guard let process = other.process else { return [] }
        sleep(1)
        return [
            Figure(
                workload: name, metric: "resident", unit: "MB", value: Double(process.residentBytes) / 1e6,
                direction: .lowerIsBetter)
        ]
    }
}

/// One call, all of its messages.
enum Probe {
    static func call(_ generator: LoadGenerator, _ message: [UInt8]) throws(ToolFailure) -> [[UInt8]] {
        let state = ProbeState()
        let loop: EventLoop
        do throws(Status) {
            loop = try EventLoop()
            try loop.start()
        } catch {
            throw ToolFailure(.software, error.message)
        }
        defer { loop.stopAndJoin() }
        let configuration = HTTP2Client.Configuration(host: generator.host, port: generator.port)
        HTTP2Client.connect(configuration, on: loop) { result in
            switch result {
            case .failure(let status): state.end(status)
            case .success(let client):
                let call = GRPCClient(client).open(path: generator.path, metadata: generator.metadata)
                call.onMessage = { state.add($0) }
                call.onFinish = { status, _ in
                    client.close()
                    state.end(status)
                }
                call.send(message)
                call.halfClose()
            }
        }
        let (status, messages) = state.wait()
        if status.code != .ok { throw ToolFailure(.failed, status.description) }
        return messages
    }
}
