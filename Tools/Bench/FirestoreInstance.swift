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
        case queried(Workload.CollectionSize)
        /// Of a run of `bulk`.
        case bulk(Int)

        var name: String {
            switch self {
            case .work: "work"
            case .many: "many"
            case .listened: "listened"
            case .queried(let size): "\(size)"
            case .bulk(let run): "bulk-\(run)"
            }
        }
    }

    let server: RunningServer
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

    // MARK: Data

    /// Excludes the payload, which represents unqueried data, from the automatic indexes. A server without the admin
    /// API, such as the emulator, has no automatic indexes to exclude.
    private func exempt(_ collection: String) {
        guard server.host == "127.0.0.1" || server.host == "localhost" else { return }
        let path = "/v1/\(requests.database)/collectionGroups/\(collection)/fields/payload?updateMask=indexConfig"
        _ = Loopback.request(port: server.port, "PATCH", path, body: #"{"indexConfig": {"indexes": []}}"#)
    }

    /// Fills a collection by BatchWrite unless it is filled.
    /// - Returns: the duration; nil when the collection was filled already.
    @discardableResult
    func fill(_ collection: Collection, documents: Int) throws(ToolFailure) -> Double? {
        if filled.contains(collection) { return nil }
        let name = collection.name
        exempt(name)
        let size = source.batchDocuments
        let load = generator("BatchWrite", connections: 2, streams: source.batchesInFlight / 2)
        let watch = Stopwatch()
        let result = try load.run(.requests((documents + size - 1) / size)) { [requests] number, random in
            requests.batch(name, number * size..<min(documents, (number + 1) * size), &random)
        }
        if result.errors > 0 {
            throw ToolFailure(.failed, "Filling \(name) failed: \(result.firstError ?? "")")
        }
        filled.insert(collection)
        return watch.seconds
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
            streams: streams, seed: nextSeed())
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

    /// - Parameter answerSeconds: the duration of one answer on an idle server.
    func measure(
        _ workload: String, _ generator: LoadGenerator, answerSeconds: Double = 0,
        _ message: @escaping LoadGenerator.MessageMaker
    ) throws(ToolFailure) -> [Figure] {
        try LoadMeasurement(settings, warmUpSeconds: source.warmUpSeconds, answerSeconds: answerSeconds).run(
            workload, generator, process: server.process, message)
    }
}

extension LoadResult {
    func figures(_ workload: String) -> [Figure] {
        [
            Figure(workload: workload, metric: "rate", unit: "/s", value: rate, direction: .higherIsBetter),
            Figure(
                workload: workload, metric: "p50", unit: "ms", value: percentile(0.5) / 1000,
                direction: .lowerIsBetter),
            Figure(
                workload: workload, metric: "p99", unit: "ms", value: percentile(0.99) / 1000,
                direction: .lowerIsBetter),
        ]
    }
}

extension [Figure] {
    /// Adds operations per second of the server's CPU time: the fair measure for comparison with a single-threaded
    /// server.
    func withOperationsPerCPUSecond() -> [Figure] {
        self
            + filter { $0.metric == "server cpu" && $0.value > 0 }.map { cost in
                Figure(
                    workload: cost.workload, metric: Figure.perCPUSecond, unit: "/s", value: 1e6 / cost.value,
                    direction: .higherIsBetter)
            }
    }
}
