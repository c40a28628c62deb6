import HearthToolSupport
import Glibc
import HearthModel
import HearthRules
import HearthWire

/// The workloads against a server of Firestore.
final class FirestoreSession: BenchSession {
    private let settings: BenchSettings
    private let source: any FirestoreServer
    private let housekeeping: BenchHousekeeping
    /// The server of all workloads that need no server of their own.
    private let shared: FirestoreInstance
    /// A server for workloads that would affect others or be affected by them; one at a time.
    private var own: (purpose: Purpose, instance: FirestoreInstance)?
    private var bulkRuns = 0

    /// More documents are encoded while they are sent: half a kilobyte each would not fit into memory beside a server.
    private static let preparedDocumentsMax = 1_000_000

    private enum Purpose {
        case memory
        case manyDocuments
        case hugeCollection
        case smallTree
        case largeTree
        case constant
    }

    init(_ settings: BenchSettings, _ source: any FirestoreServer, _ housekeeping: BenchHousekeeping)
        throws(ToolFailure)
    {
        self.settings = settings
        self.source = source
        self.housekeeping = housekeeping
        shared = try FirestoreInstance(settings, source)
    }

    func stop() {
        own?.instance.stop()
        shared.stop()
    }

    func run(_ workload: Workload) throws(ToolFailure) -> [Figure] {
        let name = workload.name
        switch workload.kind {
        case .commit(let inFlight, let fields, let target): return try commit(name, inFlight, fields, target)
        case .get(let connections): return try get(name, shared, connections).withOperationsPerCPUSecond()
        case .getConstant: return try getConstant(name)
        case .getREST: return try getREST(name)
        case .query(let shape, let size, let inFlight): return try query(name, shape, size, inFlight)
        case .count(let size): return try count(name, size)
        case .bulk: return try bulk(name)
        case .startup: return try startup(name)
        case .idleMemory: return try memory(name) { _ throws(ToolFailure) in }
        case .memoryAfterLoad:
            return try memory(name) { [settings] instance throws(ToolFailure) in
                try instance.fill(.bulk(0), documents: settings.large)
            }
        case .connections: return try connections(name)
        case .listen(let listeners, let target):
            let instance = target == .memory ? try instance(for: .memory) : shared
            return try listening(name, instance).latency(listeners: listeners)
        case .commitRules: return try commitRules(name)
        case .rules(let rule): return try RulesSpeed.measure(name, rule, seconds: settings.seconds)
        case .listenHot: return try listening(name, shared).hot(listeners: 1000)
        case .listenIdle: return try listenIdle(name)
        case .listenResume: return try listening(name, shared).resume(documents: settings.large)
        case .triggers(let load): return try triggers(name, load)
        case .databaseLatency: return try database(name, shared).latency()
        case .databaseFanOut: return try database(name, shared).fanOut(sockets: 1000)
        case .databaseWrites(let inFlight, let size): return try databaseWrites(name, inFlight, size)
        case .databaseIdle:
            let instance = try FirestoreInstance(settings, source)
            defer { instance.stop() }
            return try database(name, instance).idle(connections: settings.connections)
        }
    }

    private func database(_ name: String, _ instance: FirestoreInstance) -> DatabaseWorkloads {
        DatabaseWorkloads(instance: instance, settings: settings, name: name)
    }

    /// On a server of its own for each size; filled once for all runs.
    private func databaseWrites(
        _ name: String, _ inFlight: Int, _ size: Workload.TreeSize
    ) throws(ToolFailure) -> [Figure] {
        let instance = try instance(for: size == .small ? .smallTree : .largeTree)
        return try database(name, instance).writes(
            inFlight: inFlight, leaves: size == .small ? BenchSettings.smallLeaves : settings.leaves)
    }

    private func listening(_ name: String, _ instance: FirestoreInstance) -> ListenWorkloads {
        ListenWorkloads(instance: instance, settings: settings, name: name)
    }

    /// On a server of its own, whose memory is measured.
    private func listenIdle(_ name: String) throws(ToolFailure) -> [Figure] {
        let instance = try FirestoreInstance(settings, source)
        defer { instance.stop() }
        let documents = settings.documents
        try instance.fill(.work, documents: documents)
        return try listening(name, instance).idle(connections: 1000, each: 10) { () throws(ToolFailure) in
            let generator = instance.generator("Commit", connections: 1, streams: 1)
            let figures = try instance.measure(
                name, generator, instance.commits(.work, documents: documents, .all))
            return figures.first { $0.metric == "p50" }?.value ?? .infinity
        }
    }

    /// The server for a purpose; ends the one before it.
    private func instance(for purpose: Purpose) throws(ToolFailure) -> FirestoreInstance {
        if let own, own.purpose == purpose { return own.instance }
        own?.instance.stop()
        own = nil
        let source: (any FirestoreServer)? =
            switch purpose {
            case .constant: ConstantProcess(try SampleDocument(settings, housekeeping).message, housekeeping)
            case .memory: self.source.inMemory
            // A second process beside a server that is used elsewhere would not be that server.
            case .manyDocuments, .hugeCollection, .smallTree, .largeTree: self.source.canStart ? self.source : nil
            }
        guard let source else { return shared }
        let instance = try FirestoreInstance(settings, source)
        own = (purpose, instance)
        return instance
    }

    // MARK: Commits

    private func commit(
        _ name: String, _ inFlight: Int, _ fields: Workload.CommitFields, _ target: Workload.CommitTarget
    ) throws(ToolFailure) -> [Figure] {
        let instance: FirestoreInstance
        let collection: FirestoreInstance.Collection =
            target == .manyDocuments ? .many : fields == .one ? .six : .work
        switch target {
        case .server: instance = shared
        case .manyDocuments: instance = try self.instance(for: .manyDocuments)
        case .memory: instance = try self.instance(for: .memory)
        }
        let documents = target == .manyDocuments ? settings.many : settings.documents
        try instance.fill(collection, documents: documents)
        let connections = min(4, inFlight)
        let generator = instance.generator("Commit", connections: connections, streams: inFlight / connections)
        return try instance.measure(name, generator, instance.commits(collection, documents: documents, fields))
    }

    /// On a server of its own: other workloads run as an administrator.
    private func commitRules(_ name: String) throws(ToolFailure) -> [Figure] {
        let instance = try FirestoreInstance(settings, source)
        defer { instance.stop() }
        let documents = settings.documents
        try instance.fill(.work, documents: documents)
        try instance.setRules(BenchRules.string)
        let generator = instance.generator("Commit", connections: 4, streams: 8, token: BenchRules.token)
        // A server for local development logs the results of the first evaluations.
        let commits = instance.commits(.work, documents: documents, .all)
        _ = try generator.run(.requests(RulesLimits.coverageDetailedMax + 100), commits)
        return try instance.measure(name, generator, commits)
    }

    /// On a server of its own, whose triggers are its only ones.
    private func triggers(_ name: String, _ load: Workload.TriggerLoad) throws(ToolFailure) -> [Figure] {
        let instance = try FirestoreInstance(settings, source)
        defer { instance.stop() }
        return try TriggerWorkloads(instance: instance, source: source, settings: settings, name: name).run(load)
    }

    // MARK: Reads

    private func get(
        _ name: String, _ instance: FirestoreInstance, _ connections: Workload.GetConnections
    ) throws(ToolFailure) -> [Figure] {
        let documents = settings.documents
        if instance === shared { try instance.fill(.work, documents: documents) }
        var random = SeededRandom(seed: settings.seed)
        let messages = (0..<4096).map { _ in instance.requests.get("work", documents: documents, &random) }
        let generator =
            switch connections {
            case .eight: instance.generator("GetDocument", connections: 8, streams: 16)
            case .four: instance.generator("GetDocument", connections: 4, streams: 8)
            }
        return try instance.measure(name, generator, CycledRequests(messages))
    }

    private func getConstant(_ name: String) throws(ToolFailure) -> [Figure] {
        try get(name, try instance(for: .constant), .eight)
    }

    private func getREST(_ name: String) throws(ToolFailure) -> [Figure] {
        let documents = settings.documents
        try shared.fill(.work, documents: documents)
        var random = SeededRandom(seed: settings.seed)
        let messages = (0..<4096).map { _ in
            shared.requests.restGet("work", Int.random(in: 0..<documents, using: &random))
        }
        let generator = shared.restGenerator(connections: BenchRequests.restConnections)
        return try shared.measure(name, generator) { number, _ in messages[number % messages.count] }
            .withOperationsPerCPUSecond()
    }

    /// The server that has a collection, and how many documents are in it.
    private func filled(_ size: Workload.CollectionSize) throws(ToolFailure) -> (FirestoreInstance, documents: Int) {
        let instance = size == .huge ? try instance(for: .hugeCollection) : shared
        let documents = settings.documents(size)
        try instance.fill(.queried(size), documents: documents)
        return (instance, documents)
    }

    private func query(
        _ name: String, _ shape: Workload.QueryShape, _ size: Workload.CollectionSize, _ inFlight: Int
    ) throws(ToolFailure) -> [Figure] {
        let (instance, documents) = try filled(size)
        let collection = FirestoreInstance.Collection.queried(size).name
        var random = SeededRandom(seed: settings.seed)
        let messages = (0..<1024).map { _ in instance.requests.query(collection, documents: documents, shape, &random) }
        let (_, seconds) = try instance.timedCall("RunQuery", messages[0])
        // Every answer is to have its hundred documents: see `AnswerRule`.
        let generator = instance.generator("RunQuery", connections: 4, streams: inFlight / 4)
        return try instance.measure(name, generator, answerSeconds: seconds, CycledRequests(messages))
    }

    private func count(_ name: String, _ size: Workload.CollectionSize) throws(ToolFailure) -> [Figure] {
        let (instance, documents) = try filled(size)
        let message: [UInt8]
        do throws(Status) {
            message = try instance.requests.count(FirestoreInstance.Collection.queried(size).name)
        } catch { throw ToolFailure(.software, error.message) }
        let (_, seconds) = try instance.timedCall("RunAggregationQuery", message)
        var generator = instance.generator("RunAggregationQuery", connections: 1, streams: 1)
        generator.answers.expectCount(documents)
        return try instance.measure(name, generator, answerSeconds: seconds, CycledRequests([message])).filter {
            $0.metric != "rate"
        }
    }

    // MARK: Servers that have just started

    /// Every run loads a new server, where one can be started: a collection beside others loads more slowly.
    private func bulk(_ name: String) throws(ToolFailure) -> [Figure] {
        bulkRuns += 1
        let instance = source.canStart ? try FirestoreInstance(settings, source) : shared
        defer { if instance !== shared { instance.stop() } }
        let documents = settings.large
        let before = instance.server.processorSeconds
        let result = try instance.fill(
            .bulk(bulkRuns), documents: documents, isPrepared: documents <= Self.preparedDocumentsMax)
        let after = instance.server.processorSeconds
        guard let result, result.seconds > 0 else { return [] }
        return [
            Figure(
                workload: name, metric: "documents", unit: "/s", value: Double(documents) / result.seconds,
                direction: .higherIsBetter)
        ] + result.costs(name, before, after, each: Double(documents) / Double(result.all))
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

    /// - Parameter work: runs before the measurement.
    private func memory(_ name: String, after work: (FirestoreInstance) throws(ToolFailure) -> Void)
        throws(ToolFailure) -> [Figure]
    {
        let instance = try FirestoreInstance(settings, source)
        defer { instance.stop() }
        try work(instance)
        guard let process = instance.server.process else { return [] }
        sleep(1)
        return [
            Figure(
                workload: name, metric: "resident", unit: "MB", value: Double(process.residentBytes) / 1e6,
                direction: .lowerIsBetter)
        ]
    }

    private func connections(_ name: String) throws(ToolFailure) -> [Figure] {
        let instance = try FirestoreInstance(settings, source)
        defer { instance.stop() }
        guard let process = instance.server.process else { return [] }
        // The first requests create persistent state: the database, tables, buffers.
        try instance.fill(.work, documents: 1)
        let crowd = try ConnectionCrowd(instance, count: settings.connections)
        defer { crowd.close() }
        try crowd.open(16)
        sleep(1)
        let before = process.residentBytes
        try crowd.open(settings.connections)
        sleep(1)
        return [
            Figure(
                workload: name, metric: "resident each", unit: "kB",
                value: Double(process.residentBytes - before) / 1000 / Double(settings.connections),
                direction: .lowerIsBetter)
        ]
    }
}
