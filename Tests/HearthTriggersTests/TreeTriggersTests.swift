import HearthConcurrency
import HearthEngine
import HearthEvents
import HearthHost
import HearthModel
import HearthTestSupport
import HearthTree
import Synchronization
import Testing

@testable import HearthTreeStorage
@testable import HearthTriggers

/// The last reference to a database would close its store, which is in memory.
private let keptDatabases = Mutex<[TreeDatabase]>([])

/// Triggers of namespaces, from the write to the endpoint.
struct TreeTriggersTests {
    private let store = MemoryStore()
    private static let acknowledgement = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
    private static let refusal = "HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n"

    /// What an endpoint has acknowledged.
    private final class Received: Sendable {
        private let requests = Mutex<[String]>([])
        func append(_ request: String) { requests.withLock { $0.append(request) } }
        var all: [String] { requests.withLock { $0 } }

        static func header(_ name: String, _ request: String) -> String {
            let line = request.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name + ":") }
            return line.map { String($0.dropFirst(name.utf8.count + 1).drop { $0 == " " }) } ?? ""
        }

        /// For each location the bodies' data.
        var changes: [String: [String]] {
            var changes: [String: [String]] = [:]
            for request in all {
                let end = request.utf8.count
                let body = request.range(after: "ReferenceEventData\",", end)
                changes[Self.header("ce-ref", request), default: []].append(body)
            }
            return changes
        }
    }

    private func service(_ definitions: [TriggerDefinition]) throws -> TriggerService {
        var configuration = TriggerService.Configuration()
        configuration.definitions = definitions
        return try TriggerService(configuration)
    }

    /// A namespace that is open, as its service keeps it.
    private struct Namespace {
        let database: TreeDatabase
        let owner = Owner()

        init(_ name: String, _ store: any Store, _ service: TriggerService) throws {
            database = try TreeDatabase(name: name, store: store, clock: SystemClock())
            keptDatabases.withLock { [database] in $0.append(database) }
            try service.opened(database, of: owner)
        }

        func put(_ path: TreePath, _ json: String) throws {
            let outcome = Promise<TreeOutcome>()
            database.submit(
                TreeWrite(changes: [TreeChange(path: path, node: tree(json))], nowMilliseconds: 0)
            ) { outcome.give($0) }
            guard case .committed = outcome.wait() else { throw Status.aborted("not committed") }
        }

        func recordCount() throws -> Int {
            let view = try database.view()
            defer { view.close() }
            return try ["q", "r", "s", "a"].reduce(0) { count, mark in
                try count + view.records.count(.meta, KeyRange(prefix: Array(mark.utf8)), limit: .max)
            }
        }
    }

    @Test func eventsSurviveARestartAndArriveInOrder() async throws {
        let received = Received()
        let endpoint = ScriptedEndpoint { connection, number in
            if number % 5 == 4 {
                connection.write(Self.refusal)
                return true
            }
            received.append(connection.request)
            connection.write(Self.acknowledgement)
            return true
        }
        // Nothing is at this address: the events wait.
        var service = try service([try treeDefinition("t", "n/{id}")])
        var namespace = try Namespace("ns", store, service)
        for number in 0..<100 { try namespace.put(TreePath("n/\(number % 7)"), "\(number)") }
        #expect(service.pending("t") == 100)
        service.stop()
        namespace.database.setRecorder(nil)
        // Everything but the store is new, and the trigger has another address.
        service = try self.service([try treeDefinition("t", "n/{id}", url: endpoint.url)])
        namespace = try Namespace("ns", store, service)
        for number in 100..<150 { try namespace.put(TreePath("n/\(number % 7)"), "\(number)") }
        #expect(await eventually { service.pending("t") == 0 })
        var expected: [String: [String]] = [:]
        for number in 0..<150 {
            expected["n/\(number % 7)", default: []].append(
                "\"data\":\(number < 7 ? "null" : "\(number - 7)"),\"delta\":\(number)}")
        }
        #expect(received.changes == expected)
        #expect(Set(received.all.map { Received.header("ce-id", $0) }).count == 150)
        #expect(try namespace.recordCount() == 0)
        service.stop()
    }

    @Test func aTriggerThatIsGoneTakesItsEventsWithIt() async throws {
        var service = try service([try treeDefinition("t", "n/{id}"), try treeDefinition("u", "n/{id}")])
        var namespace = try Namespace("ns", store, service)
        for number in 0..<30 { try namespace.put(TreePath("n/\(number)"), "1") }
        #expect(service.remove("t"))
        #expect(await eventually { try! namespace.recordCount() == 60 })
        #expect(service.pending("t") == 0 && service.pending("u") == 30)
        service.stop()
        namespace.database.setRecorder(nil)
        // One that is gone at the start.
        service = try self.service([])
        namespace = try Namespace("ns", store, service)
        #expect(await eventually { try! namespace.recordCount() == 0 })
        #expect(service.pending("u") == 0)
        // Its name gets another number, and begins anew.
        try service.set(try treeDefinition("u", "n/{id}"))
        try namespace.put("n/1", "5")
        #expect(service.pending("u") == 1)
        service.stop()
    }

    /// Another trigger gets the name while the events of the former one are being deleted.
    @Test(arguments: 0..<6) func aNewTriggerWithTheNameOfOneThatIsGoneKeepsItsEvents(count: Int) async throws {
        let service = try service([try treeDefinition("t", "n/{id}")])
        defer { service.stop() }
        let namespace = try Namespace("ns", store, service)
        let size = [0, 1, 10, 1999, 2000, 5000][count]
        let members = (0..<size).map { "\"k\($0)\":1" }.joined(separator: ",")
        try namespace.put("n", "{\(members)}")
        #expect(service.pending("t") == size)
        #expect(service.remove("t"))
        try service.set(try treeDefinition("t", "m/{id}"))
        for number in 0..<20 { try namespace.put(TreePath("m/\(number)"), "1") }
        #expect(await eventually { service.pending("t") == 20 })
        #expect(await eventually { try! namespace.recordCount() == 40 })
        // A recorder that is made anew finds the same.
        let view = try namespace.database.view()
        defer { view.close() }
        #expect(try TriggerLedger(TreeEventRecords.self, in: view.records).pending("t") == 20)
    }

    @Test func definitionsHoldForLaterWritesOfTheirNamespaces() throws {
        let service = try service([])
        defer { service.stop() }
        let (one, two) = (try Namespace("one", MemoryStore(), service), try Namespace("two", MemoryStore(), service))
        try one.put("n/a", "1")
        try service.set(try treeDefinition("t", "n/{id}", more: ",\"instance\":\"one\""))
        try service.set(try treeDefinition("all", "n/{id}"))
        for namespace in [one, two] { try namespace.put("n/b", "1") }
        #expect(service.pending("t") == 1 && service.pending("all") == 2)
        try service.set(try treeDefinition("t", "m/{id}"))
        for namespace in [one, two] {
            try namespace.put("n/c", "1")
            try namespace.put("m/c", "1")
        }
        #expect(service.pending("t") == 3 && service.pending("all") == 4)
    }

    /// A namespace that is closed doesn't count, and is not kept.
    @Test func aNamespaceIsNotKeptOpenWithoutEvents() async throws {
        let endpoint = ScriptedEndpoint { connection, _ in
            connection.write(Self.acknowledgement)
            return true
        }
        let service = try service([try treeDefinition("t", "n/{id}", url: endpoint.url)])
        defer { service.stop() }
        weak var owner: Owner?
        do {
            let namespace = try Namespace("ns", store, service)
            owner = namespace.owner
            try namespace.put("n/a", "1")
            #expect(await eventually { service.pending("t") == 0 })
        }
        #expect(await eventually { owner == nil })
    }

    /// - Returns: the namespaces that the service has opened.
    private func start(_ service: TriggerService) -> SharedValue<Mutex<[Namespace]>> {
        let (opened, store) = (SharedValue(Mutex<[Namespace]>([])), store)
        service.start(
            TriggerDirectory(
                names: { () throws(Status) in [] }, exists: { _ throws(Status) in false },
                open: { _, completion in completion(.failure(.unavailable("not asked for"))) },
                namespaces: { () throws(Status) in [] },
                openNamespace: { [weak service] name throws(Status) in
                    guard let service else { return }
                    do {
                        let namespace = try Namespace(name, store, service)
                        opened.value.withLock { $0.append(namespace) }
                    } catch { throw .unavailable("\(error)") }
                }))
        return opened
    }

    /// The answer comes during a stop, when the namespace is closed: it is opened, so that the event is not sent again.
    @Test func whatIsAnsweredDuringAStopIsStored() async throws {
        let (asked, gate) = (Promise<Bool>(), Latch())
        let endpoint = ScriptedEndpoint { connection, _ in
            asked.give(true)
            gate.wait()
            connection.write(Self.acknowledgement)
            return true
        }
        // Longer than a busy machine needs, where the threads that deliver come last.
        let seconds = 900.0
        let service = try service([
            try treeDefinition("t", "n/{id}", url: endpoint.url, more: ",\"timeout\":\"\(Int(seconds))s\"")
        ])
        let opened = start(service)
        weak var owner: Owner?
        do {
            let namespace = try Namespace("ns", store, service)
            owner = namespace.owner
            try namespace.put("n/a", "1")
            #expect(asked.wait())
            namespace.database.setRecorder(nil)
        }
        #expect(await eventually { owner == nil })
        let stop = testThread { service.stop(graceSeconds: seconds) }
        #expect(await eventually { service.state.withLock { $0.isStopped } })
        gate.open()
        stop.join()
        #expect(service.pending("t") == 0 && opened.value.withLock { $0.count } == 1)
        // Nothing that administrators want is begun any more.
        #expect(throws: Status.self) { try service.replay(ofDeadLetters: "t").run() }
    }

    /// A namespace whose events can't be delivered is closed meanwhile, and opened again to send them.
    @Test func aNamespaceIsNotKeptOpenWhileAnEndpointIsDown() async throws {
        let endpoint = ScriptedEndpoint { connection, _ in
            connection.write(Self.acknowledgement)
            return true
        }
        // Nothing is at this address.
        let service = try service([try treeDefinition("t", "n/{id}")])
        defer { service.stop() }
        let opened = start(service)
        weak var owner: Owner?
        do {
            let namespace = try Namespace("ns", store, service)
            owner = namespace.owner
            try namespace.put("n/a", "1")
            try namespace.put("n/b", "1")
            #expect(await eventually { service.journal.figures("t").attemptsUnreachable > 0 })
            namespace.database.setRecorder(nil)
        }
        #expect(await eventually { owner == nil })
        #expect(service.pending("t") == 2)
        try service.set(try treeDefinition("t", "n/{id}", url: endpoint.url))
        #expect(await eventually { service.pending("t") == 0 })
        #expect(opened.value.withLock { $0.count } > 0)
    }
}

extension String {
    fileprivate func range(after mark: String, _ end: Int) -> String {
        let (bytes, wanted) = (Array(utf8), Array(mark.utf8))
        for start in bytes.indices where bytes[start...].starts(with: wanted) {
            return String(decoding: bytes[(start + wanted.count)..<end], as: UTF8.self)
        }
        return ""
    }
}
