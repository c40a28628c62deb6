import HearthToolSupport
import Glibc
import HearthModel
import HearthNetwork
import HearthWire

/// A running Firestore server, and the data that the bench has written to it.
final class FirestoreInstance {
    /// A collection of the bench.
    enum Collection: Hashable {
        case work
        case many
        case listened
        /// Documents with six indexed fields.
        case six
        case queried(Workload.CollectionSize)
        /// Of a run of `bulk`.
        case bulk(Int)

        var name: String {
            switch self {
            case .work: "work"
            case .many: "many"
            case .listened: "listened"
            case .six: "six"
            case .queried(let size): "\(size)"
            case .bulk(let run): "bulk-\(run)"
            }
        }
    }

    private(set) var server: RunningServer
    let requests = BenchRequests()
    private let settings: BenchSettings
    private let source: any FirestoreServer
    private var filled: Set<Collection> = []
    /// Leaves of the Realtime Database's tree.
    var treeLeaves = 0
    private var runs: UInt64 = 0

    init(_ settings: BenchSettings, _ source: any FirestoreServer) throws(ToolFailure) {
        self.settings = settings
        self.source = source
        server = try source.start()
    }

    func stop() { server.process?.stop() }

    /// Ends the server, and starts it again with its data.
    func restart() throws(ToolFailure) {
        guard let new = try server.restarted() else {
            throw ToolFailure(.unavailable, "The server is not one of the bench.")
        }
        server = new
    }

    // MARK: Data

    /// Excludes the payload, which represents unqueried data, from the automatic indexes. A server without the admin
    /// API, such as the emulator, has no automatic indexes to exclude.
    private func exempt(_ collection: String) {
        guard server.host == "127.0.0.1" || server.host == "localhost" else { return }
        let path = "/v1/\(requests.database)/collectionGroups/\(collection)/fields/payload?updateMask=indexConfig"
        _ = Loopback.request(port: server.port, "PATCH", path, body: #"{"indexConfig": {"indexes": []}}"#)
    }

    /// Writes documents by BatchWrite again and again.
    /// - Parameters:
    ///   - documents: a multiple of the documents of a batch.
    ///   - writes: how many altogether.
    func write(_ collection: Collection, documents: Int, writes: Int) throws(ToolFailure) {
        let name = collection.name
        exempt(name)
        let size = source.batchDocuments
        let load = generator("BatchWrite", connections: 2, streams: source.batchesInFlight / 2)
        let result = try load.run(.requests(writes / size)) { [requests] number, random in
            let start = number * size % documents
            return requests.batch(name, start..<start + size, &random)
        }
        if result.errors > 0 {
            throw ToolFailure(.failed, "Writing \(name) failed: \(result.firstError ?? "")")
        }
    }

    /// Fills a collection by BatchWrite unless it is filled.
    /// - Parameter isPrepared: all requests are made before the first is sent; they take the memory of all documents.
    /// - Returns: the load with its duration; nil when the collection was filled already.
    @discardableResult
    func fill(
        _ collection: Collection, documents: Int, isPrepared: Bool = false
    ) throws(ToolFailure) -> LoadResult? {
        if filled.contains(collection) { return nil }
        let name = collection.name
        exempt(name)
        let size = source.batchDocuments
        let load = generator("BatchWrite", connections: 2, streams: source.batchesInFlight / 2)
        let count = (documents + size - 1) / size
        let batch: LoadGenerator.MessageMaker = { [requests] number, random in
            let numbers = number * size..<min(documents, (number + 1) * size)
            return collection == .six
                ? requests.batchOfSix(name, numbers, &random) : requests.batch(name, numbers, &random)
        }
        var result: LoadResult
        if isPrepared {
            var random = SeededRandom(seed: load.seed)
            result = try load.run(.requests(count), CycledRequests((0..<count).map { batch($0, &random) }))
        } else {
            result = try load.run(.requests(count), batch)
        }
        if result.errors > 0 {
            throw ToolFailure(.failed, "Filling \(name) failed: \(result.firstError ?? "")")
        }
        filled.insert(collection)
        return result
    }

    /// Enables security rules for clients; the administrator is not affected.
    func setRules(_ string: String) throws(ToolFailure) {
        var escaped = ""
        for character in string {
            switch character {
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.append(character)
            }
        }
        let answer = Loopback.request(
            port: server.port, "PUT", "/emulator/v1/projects/\(BenchRequests.project):securityRules",
            body: "{\"rules\": {\"files\": [{\"content\": \"\(escaped)\"}]}}")
        if answer?.contains(" 200 ") != true {
            throw ToolFailure(.failed, "The rules can't be set: \(answer ?? "no answer").")
        }
    }

    // MARK: Load

    /// A new seed for each run, so that no run repeats the writes of an earlier one.
    func nextSeed() -> UInt64 {
        runs += 1
        return settings.seed &* 1000 &+ runs
    }

    /// - Parameter token: the token of the requests.
    func generator(_ method: String, connections: Int, streams: Int, token: String = "owner") -> LoadGenerator {
        let metadata = [
            HTTPHeader("authorization", "Bearer \(token)"),
            HTTPHeader("google-cloud-resource-prefix", requests.database),
        ]
        return LoadGenerator(
            host: server.host, port: server.port,
            wire: .grpc(path: BenchRequests.service + method, metadata: metadata), connections: connections,
            streams: streams, seed: nextSeed(), answers: AnswerRule(method: method))
    }

    func restGenerator(connections: Int) -> LoadGenerator {
        LoadGenerator(
            host: server.host, port: server.port, wire: .plain(HTTP1Framing.self), connections: connections, streams: 1,
            seed: nextSeed())
    }

    /// One call, all of its messages.
    func call(_ method: String, _ message: [UInt8]) throws(ToolFailure) -> [[UInt8]] {
        try Probe.call(generator(method, connections: 1, streams: 1), message)
    }

    /// The same, with its duration. The first call is excluded, because it creates state that remains.
    func timedCall(_ method: String, _ message: [UInt8]) throws(ToolFailure) -> (answers: [[UInt8]], seconds: Double) {
        _ = try call(method, message)
        let watch = Stopwatch()
        return (try call(method, message), watch.seconds)
    }

    /// Random commits of a collection.
    func commits(_ collection: Collection, documents: Int, _ fields: Workload.CommitFields) -> any RequestSource {
        CommitRequests(requests, collection.name, documents: documents, fields, seed: nextSeed())
    }

    /// - Parameter answerSeconds: the duration of one answer on an idle server.
    func measure(
        _ workload: String, _ generator: LoadGenerator, answerSeconds: Double = 0, _ requests: any RequestSource
    ) throws(ToolFailure) -> [Figure] {
        try LoadMeasurement(settings, warmUpSeconds: source.warmUpSeconds, answerSeconds: answerSeconds).run(
            workload, generator, serverSeconds: { server.processorSeconds }
        ) { bound throws(ToolFailure) in try generator.run(bound, requests) }
    }

    /// The same with messages that are made during the load.
    func measure(
        _ workload: String, _ generator: LoadGenerator, _ message: @escaping LoadGenerator.MessageMaker
    ) throws(ToolFailure) -> [Figure] {
        try LoadMeasurement(settings, warmUpSeconds: source.warmUpSeconds).run(
            workload, generator, serverSeconds: { server.processorSeconds }
        ) { bound throws(ToolFailure) in try generator.run(bound, message) }
    }
}

extension LoadResult {
    func figures(_ workload: String) -> [Figure] {
        let wrong = Figure(
            workload: workload, metric: "errors", unit: "", value: Double(errors), direction: .lowerIsBetter)
        return [
            Figure(workload: workload, metric: "rate", unit: "/s", value: rate, direction: .higherIsBetter),
            Figure(
                workload: workload, metric: "p50", unit: "ms", value: percentile(0.5) / 1000,
                direction: .lowerIsBetter),
            Figure(
                workload: workload, metric: "p99", unit: "ms", value: percentile(0.99) / 1000,
                direction: .lowerIsBetter),
            Figure(
                workload: workload, metric: "max", unit: "ms", value: percentile(1) / 1000,
                direction: .lowerIsBetter),
        ] + (errors > 0 ? [wrong] : [])
    }

    /// CPU time of an operation, on the server and in the generator.
    /// - Parameters:
    ///   - before: the server's CPU time at the start of the run; nil when it is not known.
    ///   - each: operations of an answer.
    func costs(_ workload: String, _ before: Double?, _ after: Double?, each: Double = 1) -> [Figure] {
        guard all > 0 else { return [] }
        var costs: [(metric: String, seconds: Double)] = []
        if let before, let after { costs.append((Figure.serverCPU, after - before)) }
        if let generatorSeconds { costs.append((Figure.generatorCPU, generatorSeconds)) }
        return costs.map { cost in
            Figure(
                workload: workload, metric: cost.metric, unit: "µs", value: cost.seconds / (Double(all) * each) * 1e6,
                direction: .lowerIsBetter)
        }
    }
}

extension [Figure] {
    /// Adds operations per second of the server's CPU time: the fair measure for comparison with a single-threaded
    /// server.
    func withOperationsPerCPUSecond() -> [Figure] {
        self
            + filter { $0.metric == Figure.serverCPU && $0.value > 0 }.map { cost in
                Figure(
                    workload: cost.workload, metric: Figure.perCPUSecond, unit: "/s", value: 1e6 / cost.value,
                    direction: .higherIsBetter)
            }
    }
}
