import HearthToolSupport
import Glibc
import HearthModel
import HearthNetwork
import HearthWire
import Synchronization

/// The workloads with listeners.
struct ListenWorkloads {
    let instance: FirestoreInstance
    let settings: BenchSettings
    let name: String

    private static let collection = FirestoreInstance.Collection.listened
    private static let commit = BenchRequests.service + "Commit"

    private func figure(_ metric: String, _ unit: String, _ value: Double, _ direction: Figure.Direction) -> Figure {
        Figure(workload: name, metric: metric, unit: unit, value: value, direction: direction)
    }

    // MARK: Latency

    /// One document changes, and all listeners of its collection are notified.
    func latency(listeners: Int) throws(ToolFailure) -> [Figure] {
        try instance.fill(Self.collection, documents: 1)
        let crowd = try ListenCrowd(instance)
        defer { crowd.close() }
        let connections = min(10, listeners)
        let requests = instance.requests
        try crowd.open(connections: connections, each: listeners / connections) { _ in
            requests.listen(Self.collection.name)
        }
        let seed = settings.seed
        let (snapshots, commits) = try crowd.latencies(
            listeners: listeners, seconds: settings.seconds, warmUp: min(1, settings.seconds), path: Self.commit
        ) { number in
            var random = SeededRandom(seed: seed &+ UInt64(number))
            return requests.commit(Self.collection.name, documents: 1, .all, &random)
        }
        return [
            figure("p50", "ms", snapshots.percentile(0.5) / 1000, .lowerIsBetter),
            figure("p99", "ms", snapshots.percentile(0.99) / 1000, .lowerIsBetter),
            figure("commit p50", "ms", commits.percentile(0.5) / 1000, .lowerIsBetter),
        ]
    }

    // MARK: One hot document

    func hot(listeners: Int) throws(ToolFailure) -> [Figure] {
        try instance.fill(Self.collection, documents: 1)
        let crowd = try ListenCrowd(instance)
        defer { crowd.close() }
        let connections = 50
        let requests = instance.requests
        try crowd.open(connections: connections, each: listeners / connections) { _ in
            requests.listenToDocument(Self.collection.name, 0)
        }
        let deliveries = Counter()
        crowd.onLoop { crowd.onEvent = { _, event in if event == .boundary { deliveries.add() } } }
        let generator = instance.generator("Commit", connections: 1, streams: 4)
        let before = instance.server.processorSeconds
        let watch = Stopwatch()
        let commits = try generator.run(.seconds(settings.seconds, warmUp: 0)) { _, random in
            requests.commit(Self.collection.name, documents: 1, .all, &random)
        }
        let seconds = watch.seconds
        let count = Double(deliveries.value)
        var figures = [
            figure("deliveries", "/s", count / seconds, .higherIsBetter),
            figure("commits", "/s", commits.rate, .higherIsBetter),
        ]
        if let before, let after = instance.server.processorSeconds {
            figures.append(figure("server cpu", "µs", (after - before) / count * 1e6, .lowerIsBetter))
        }
        return figures
    }

    private final class Counter: Sendable {
        private let count = Atomic<Int>(0)
        func add() { count.add(1, ordering: .relaxed) }
        var value: Int { count.load(ordering: .relaxed) }
    }

    // MARK: Many listeners without events

    /// - Parameter commits: measures commits that affect no listener.
    func idle(
        connections: Int, each streams: Int, commits: () throws(ToolFailure) -> Double
    ) throws(ToolFailure) -> [Figure] {
        guard let process = instance.server.process else { return [] }
        let crowd = try ListenCrowd(instance)
        defer { crowd.close() }
        let without = try commits()
        let requests = instance.requests
        try crowd.open(connections: 1, each: 16) {
            requests.listen(FirestoreInstance.Collection.work.name, equalTo: -1 - $0)
        }
        sleep(1)
        let before = process.residentBytes
        try crowd.open(connections: connections, each: streams) { number in
            requests.listen(FirestoreInstance.Collection.work.name, equalTo: number)
        }
        sleep(1)
        let each = Double(process.residentBytes - before) / Double(connections * streams)
        let with = try commits()
        return [
            figure("resident each", "kB", each / 1000, .lowerIsBetter),
            figure("commit p50 without", "ms", without, .lowerIsBetter),
            figure("commit p50", "ms", with, .lowerIsBetter),
            figure("commit", "x", with / without, .lowerIsBetter),
        ]
    }

    // MARK: Coming back

    /// A listener loads a large collection, ten documents change, and the listener resumes.
    func resume(documents: Int) throws(ToolFailure) -> [Figure] {
        let collection = FirestoreInstance.Collection.queried(.large)
        try instance.fill(collection, documents: documents)
        let requests = instance.requests
        func load(_ token: [UInt8]?, expecting count: Int?) throws(ToolFailure) -> (
            seconds: Double, bytes: Int, token: [UInt8]
        ) {
            let crowd = try ListenCrowd(instance)
            defer { crowd.close() }
            try crowd.open(connections: 1, each: 1) { _ in
                requests.listen(collection.name, from: token, expectedCount: count)
            }
            return crowd.onLoop { (crowd.openingSeconds, crowd.receivedBytes, crowd.token) }
        }
        _ = try load(nil, expecting: nil)
        let first = try load(nil, expecting: nil)
        let generator = instance.generator("Commit", connections: 1, streams: 1)
        _ = try generator.run(.requests(10)) { number, random in
            requests.change(collection.name, number * (documents / 10), &random)
        }
        let second = try load(first.token, expecting: documents)
        let plain = try load(first.token, expecting: nil)
        return [
            figure("first load", "ms", first.seconds * 1000, .lowerIsBetter),
            figure("resume", "ms", second.seconds * 1000, .lowerIsBetter),
            figure("resume uncounted", "ms", plain.seconds * 1000, .lowerIsBetter),
            figure("time", "%", second.seconds / first.seconds * 100, .lowerIsBetter),
            figure("bytes", "%", Double(second.bytes) / Double(first.bytes) * 100, .lowerIsBetter),
        ]
    }
}

extension BenchRequests {
    /// - Parameters:
    ///   - value: only documents with this `f0`; nil for all.
    ///   - token: the resume token.
    func listen(
        _ collection: String, equalTo value: Int? = nil, from token: [UInt8]? = nil, expectedCount: Int? = nil
    ) -> [UInt8] {
        var query = StructuredQueryMessage()
        query.from = [.init(collectionId: collection)]
        if let value {
            query.`where` = .init(
                fieldFilter: .init(field: .init(fieldPath: "f0"), op: .equal, value: .integer(Int64(value))))
        }
        let target = TargetMessage(
            query: .init(parent: database + "/documents", structuredQuery: query), resumeToken: token, targetId: 2,
            expectedCount: expectedCount.map(Int32.init))
        return ListenRequest(database: database, addTarget: target).protobuf()
    }

    func listenToDocument(_ collection: String, _ number: Int) -> [UInt8] {
        let target = TargetMessage(documents: .init(documents: [name(collection, number)]), targetId: 2)
        return ListenRequest(database: database, addTarget: target).protobuf()
    }

    /// A commit that changes one field of one document.
    func change(_ collection: String, _ number: Int, _ random: inout SeededRandom) -> [UInt8] {
        let fields = MapValue([.init(name: "f0", value: .integer(Int64(random.next() >> 4)))])
        var write = WriteMessage(update: DocumentMessage(name: name(collection, number), fields: fields))
        write.updateMask = DocumentMaskMessage(fieldPaths: ["f0"])
        return CommitRequest(database: database, writes: [write]).protobuf()
    }
}
