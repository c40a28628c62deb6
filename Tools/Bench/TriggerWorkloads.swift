import Glibc
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthToolSupport
import Synchronization

/// The workloads on triggers of Cloud Firestore, whose endpoint is in this process.
struct TriggerWorkloads {
    let instance: FirestoreInstance
    let source: any FirestoreServer
    let settings: BenchSettings
    let name: String

    /// Events that wait before they are delivered.
    private static let backlog = 50_000
    private static let sequence = 10_000
    /// Events that wait at a start, of so many documents.
    private static let pending = 1_000_000
    private static let pendingDocuments = 100_000
    private static let waitSeconds = 120.0

    private func figure(_ metric: String, _ unit: String, _ value: Double, _ direction: Figure.Direction) -> Figure {
        Figure(workload: name, metric: metric, unit: unit, value: value, direction: direction)
    }

    func run(_ load: Workload.TriggerLoad) throws(ToolFailure) -> [Figure] {
        let endpoint = try TriggerEndpoint()
        defer { endpoint.stop() }
        switch load {
        case .without: return try commits(endpoint, triggers: 0, matching: 0)
        case .none: return try commits(endpoint, triggers: 10, matching: 0)
        case .one: return try commits(endpoint, triggers: 10, matching: 1)
        case .latency: return try latency(endpoint)
        case .events: return try events(endpoint)
        case .sequence: return try sequence(endpoint)
        case .pending: return try memory(endpoint)
        }
    }

    private func set(
        _ trigger: String, _ pattern: String, _ endpoint: TriggerEndpoint, isPaused: Bool = false, isDown: Bool = false
    ) throws(ToolFailure) {
        // Nothing listens at port 9.
        let body =
            "{\"event\": \"google.cloud.firestore.document.v1.written\", \"document\": \"\(pattern)\", \"project\": \"*\", \"concurrency\": 64, "
            + "\"url\": \"http://127.0.0.1:\(isDown ? 9 : endpoint.port)/\", \"paused\": \(isPaused)}"
        let answer = Loopback.request(port: instance.server.port, "PUT", "/hearth/v1/triggers/\(trigger)", body: body)
        if answer?.contains(" 200 ") != true {
            throw ToolFailure(.failed, "The trigger can't be set: \(answer ?? "no answer").")
        }
    }

    private func commits(
        _ endpoint: TriggerEndpoint, triggers: Int, matching: Int
    ) throws(ToolFailure) -> [Figure] {
        let documents = settings.documents
        try instance.fill(.work, documents: documents)
        for number in 0..<triggers {
            try set("t\(number)", number < matching ? "work/{id}" : "other\(number)/{id}", endpoint)
        }
        let generator = instance.generator("Commit", connections: 4, streams: 8)
        let before = endpoint.count
        let figures = try instance.measure(name, generator, instance.commits(.work, documents: documents, .all))
        if matching == 0 { return figures }
        return figures + [figure("events", "", Double(endpoint.count - before), .higherIsBetter)]
    }

    private func latency(_ endpoint: TriggerEndpoint) throws(ToolFailure) -> [Figure] {
        try set("t", "latency/{id}", endpoint)
        var random = SeededRandom(seed: settings.seed)
        var microseconds: [Double] = []
        let generator = instance.generator("Commit", connections: 1, streams: 1)
        let count = max(200, Int(settings.seconds * 200))
        for number in 0..<count {
            let values = (0..<BenchRequests.changedFields).map { _ in BenchRequests.value(&random) }
            let message = instance.requests.commit("latency", number, .all, field: 0, values)
            let before = endpoint.count
            _ = try Probe.call(generator, message)
            let answered = EventLoop.monotonicNanoseconds()
            try endpoint.wait(for: before + 1, seconds: Self.waitSeconds)
            // The event may come before the answer.
            microseconds.append(max(0, Double(Int64(endpoint.last) - Int64(answered)) / 1000))
        }
        microseconds.sort()
        func percentile(_ share: Double) -> Double { microseconds[Int(Double(microseconds.count - 1) * share)] / 1000 }
        return [
            figure("p50", "ms", percentile(0.5), .lowerIsBetter), figure("p99", "ms", percentile(0.99), .lowerIsBetter),
        ]
    }

    private func events(_ endpoint: TriggerEndpoint) throws(ToolFailure) -> [Figure] {
        try set("t", "bulk-0/{id}", endpoint, isPaused: true)
        try instance.fill(.bulk(0), documents: Self.backlog)
        return try drain(endpoint, "bulk-0/{id}", Self.backlog)
    }

    private func sequence(_ endpoint: TriggerEndpoint) throws(ToolFailure) -> [Figure] {
        try set("t", "one/{id}", endpoint, isPaused: true)
        let load = instance.generator("Commit", connections: 4, streams: 8)
        let result = try load.run(.requests(Self.sequence)) { [requests = instance.requests] _, random in
            let values = (0..<BenchRequests.changedFields).map { _ in BenchRequests.value(&random) }
            return requests.commit("one", 0, .all, field: 0, values)
        }
        if result.errors > 0 { throw ToolFailure(.failed, "Commits fail: \(result.firstError ?? "")") }
        return try drain(endpoint, "one/{id}", Self.sequence)
    }

    private func drain(_ endpoint: TriggerEndpoint, _ pattern: String, _ count: Int) throws(ToolFailure) -> [Figure] {
        let cpu = instance.server.processorSeconds
        let watch = Stopwatch()
        try set("t", pattern, endpoint)
        try endpoint.wait(for: count, seconds: Self.waitSeconds)
        let seconds = watch.seconds
        var figures = [figure("events", "/s", Double(count) / seconds, .higherIsBetter)]
        if let cpu, let after = instance.server.processorSeconds {
            figures.append(figure(Figure.serverCPU, "µs", (after - cpu) / Double(count) * 1e6, .lowerIsBetter))
        }
        return figures
    }

    /// The same writes on a server without a trigger and on this one, with a trigger whose endpoint is down; then both start anew.
    private func memory(_ endpoint: TriggerEndpoint) throws(ToolFailure) -> [Figure] {
        let base = try FirestoreInstance(settings, source)
        defer { base.stop() }
        let without = try waiting(base)
        base.stop()
        try set("t", "bulk-1/{id}", endpoint, isDown: true)
        let with = try waiting(instance)
        // The endpoint is back before the server is: up to now it was probed every 10 s.
        try set("t", "bulk-1/{id}", endpoint)
        let before = endpoint.count
        let watch = Stopwatch()
        try instance.restart()
        try endpoint.wait(for: before + 1, seconds: Self.waitSeconds)
        let first = watch.seconds
        return [
            figure("without, written", "MB", without.written, .lowerIsBetter),
            figure("with, written", "MB", with.written, .lowerIsBetter),
            figure("without, started", "MB", without.started, .lowerIsBetter),
            figure("with, started", "MB", with.started, .lowerIsBetter),
            figure("events cost", "MB", with.started - without.started, .lowerIsBetter),
            figure("without, start", "ms", without.milliseconds, .lowerIsBetter),
            figure("with, start", "ms", with.milliseconds, .lowerIsBetter),
            figure("stop, start to first event", "ms", first * 1000, .lowerIsBetter),
        ]
    }

    private struct Waiting {
        /// Resident memory after the writes, and after the start, in MB.
        var written = 0.0
        var started = 0.0
        /// From the start of the process to the first answer.
        var milliseconds = 0.0
    }

    private func waiting(_ instance: FirestoreInstance) throws(ToolFailure) -> Waiting {
        func megabytes() -> Double { Double(instance.server.process?.residentBytes ?? 0) / 1e6 }
        var figures = Waiting()
        try instance.write(.bulk(1), documents: Self.pendingDocuments, writes: Self.pending)
        sleep(5)
        figures.written = megabytes()
        try instance.restart()
        figures.milliseconds = instance.server.startMilliseconds
        // Databases are opened.
        sleep(5)
        figures.started = megabytes()
        return figures
    }
}

/// An HTTP server that acknowledges every event, and counts.
final class TriggerEndpoint: Sendable {
    private final class Counter: Sendable {
        let count = Atomic(0)
        /// When the last request was complete, in monotonic nanoseconds.
        let last = Atomic<UInt64>(0)
    }

    private struct Handler: HTTPHandler {
        let counter: Counter

        func begin(_ exchange: HTTPExchange) {
            exchange.collectBody(limitBytes: 16 << 20) { [counter] _ in
                counter.last.store(EventLoop.monotonicNanoseconds(), ordering: .relaxed)
                counter.count.add(1, ordering: .releasing)
                exchange.respond(status: 204, headers: [], body: [])
            }
        }
    }

    private struct NoCalls: GRPCHandler {
        func begin(_ call: GRPCCall) { call.finish(.unimplemented("There is no method.")) }
    }

    private let counter = Counter()
    private let server: NetworkServer

    init() throws(ToolFailure) {
        server = NetworkServer(
            configuration: ServerConfiguration(port: 0, loopCount: 1), http: Handler(counter: counter), grpc: NoCalls())
        do {
            try server.start()
        } catch {
            throw ToolFailure(.unavailable, (error as? Status)?.message ?? "\(error)")
        }
    }

    var port: Int { server.port }
    var count: Int { counter.count.load(ordering: .acquiring) }
    var last: UInt64 { counter.last.load(ordering: .relaxed) }

    /// Waits until so many requests have come.
    func wait(for count: Int, seconds: Double) throws(ToolFailure) {
        let end = EventLoop.monotonicNanoseconds() + UInt64(seconds * 1e9)
        while self.count < count {
            if EventLoop.monotonicNanoseconds() > end {
                throw ToolFailure(.failed, "The endpoint got \(self.count) of \(count) events.")
            }
            usleep(50)
        }
    }

    func stop() { server.shutdown(graceSeconds: 0) }
}
