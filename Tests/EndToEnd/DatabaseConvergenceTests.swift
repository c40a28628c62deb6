import Foundation
import HearthDatabase
import HearthTestSupport
import Testing

/// Three clients of the Realtime Database make random changes offline and over broken connections. When all are online
/// and idle, they show the server's data. At every time the child events that they received add up to the value event, and at
/// the end those of the sequences.
///
/// Five runs, or `HEARTH_TEST_EFFORT` times as many: 40 makes two hundred. A failure prints its seed, and
/// `HEARTH_TEST_SEED` repeats the operations of the clients (not the interleaving of their messages).
@Suite(.serialized, .timeLimit(.minutes(Patience.minutes))) struct DatabaseConvergenceTests {
    private static let runsDefault = 5

    @Test(arguments: TestRun.seeds(runsDefault)) func allClientsAgreeInTheEnd(seed: UInt64) async throws {
        let run = try DatabaseConvergenceRun(seed: seed)
        do {
            try await run.work()
            try await run.settle()
        } catch {
            Issue.record("seed \(seed): \(error)")
        }
        for fault in run.faults { Issue.record("seed \(seed): \(fault)") }
        #expect(run.eventCount > 0)
        await run.end()
    }
}

/// One run: a server, three clients, and a random sequence of operations.
private final class DatabaseConvergenceRun {
    private static let roundsMax = 6
    private static let rules = """
        {"rules": {".read": true, ".write": true, "a": {".indexOn": ["b"]}, "b": {".indexOn": ".value"}}}
        """
    private static let kinds = [
        "set", "set", "leaf", "remove", "update", "update", "priority", "push", "transaction", "transaction",
        "increment", "time",
    ]

    /// A client and its observers. The observers are added again when the client restarts.
    private final class Participant {
        private(set) var device: DatabaseDevice
        private let backend: Backend
        private let folder: TemporaryFolder?
        private let name = "device-\(UUID().uuidString)"
        let observed: [@Sendable (DatabaseReference) -> DatabaseQuery]
        var isOnline = true
        var witnesses: [EventWitness] = []

        init(_ backend: Backend, isPersistent: Bool, observed: [@Sendable (DatabaseReference) -> DatabaseQuery]) throws
        {
            self.backend = backend
            folder = isPersistent ? TemporaryFolder() : nil
            device = try DatabaseDevice(backend, name: name, folder: folder)
            self.observed = observed
        }

        var isPersistent: Bool { folder != nil }

        /// Ends the program and starts it again with the same cache.
        func restart() async throws {
            await device.end()
            device = try DatabaseDevice(backend, name: name, folder: folder)
        }

        var root: DatabaseReference { device.db.reference() }

        func observe() { witnesses = observed.map { EventWitness($0(root)) } }
    }

    private let seed: UInt64
    private var random: SeededGenerator
    private let backend: Backend
    private let participants: [Participant]
    private var ended: [EventWitness] = []
    private var log: [String] = []

    init(seed: UInt64) throws {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        let backend = try Backend(databaseRules: Self.rules)
        self.backend = backend
        participants = [
            try Participant(backend, isPersistent: false, observed: [{ $0 }]),
            try Participant(
                backend, isPersistent: true,
                observed: [
                    { $0.child("a") }, { $0.child("list").queryLimited(toLast: 3) },
                    { $0.child("b").queryOrderedByKey().queryStarting(atValue: "b") }, { $0.child("last") },
                ]),
            try Participant(
                backend, isPersistent: true,
                observed: [
                    { $0.child("a").queryOrdered(byChild: "b").queryLimited(toFirst: 2) }, { $0.child("a/b") },
                    { $0.child("b").queryOrderedByValue() }, { $0.child("list") }, { $0.child("last") },
                    { $0.child("c").queryOrderedByPriority().queryStarting(atValue: 3) },
                ]),
        ]
    }

    var faults: [String] { (participants.flatMap(\.witnesses) + ended).flatMap(\.faults).map { "\($0); \(log)" } }
    var eventCount: Int { (participants.flatMap(\.witnesses) + ended).reduce(0) { $0 + $1.eventCount } }

    // MARK: Operations

    func work() async throws {
        for participant in participants { participant.observe() }
        for _ in 0..<2 + random.below(Self.roundsMax - 1) {
            for (index, participant) in participants.enumerated() { try await act(participant, index) }
            if random.chance(15) {
                log.append("break")
                backend.network.breakConnections()
            }
            if random.chance(10) {
                log.append("server restarts")
                backend.stop()
                try await backend.restart()
            }
        }
    }

    private func act(_ participant: Participant, _ index: Int) async throws {
        if random.chance(35) {
            participant.isOnline.toggle()
            log.append("\(index) \(participant.isOnline ? "online" : "offline")")
            if participant.isOnline { participant.device.db.goOnline() } else { participant.device.db.goOffline() }
        }
        for _ in 0..<random.below(7) { write(participant, index) }
        // A part of the random schedule: other clients sometimes make changes first. No expectation depends on it.
        if random.chance(40) { try await Task.sleep(for: .milliseconds(random.below(30))) }
        if participant.isPersistent, random.chance(12) {
            log.append("\(index) restarts")
            ended += participant.witnesses
            for witness in participant.witnesses { witness.stop() }
            try await participant.restart()
            participant.isOnline = true
            participant.observe()
        }
    }

    private func value(depth: Int) -> Any {
        switch random.below(depth > 1 ? 5 : 7) {
        case 0: return random.below(10)
        case 1: return Double(random.below(100)) / 8
        case 2: return "s\(random.below(5))"
        case 3: return random.chance(50)
        case 4: return [".value": random.below(10), ".priority": random.below(6)]
        default:
            var children: [String: Any] = [:]
            for _ in 0..<1 + random.below(3) {
                children[random.pick(["a", "b", "c", "1", "2"])] = value(depth: depth + 1)
            }
            if random.chance(20) { children[".priority"] = random.below(6) }
            return children
        }
    }

    private func path() -> String {
        (0..<1 + random.below(3)).map { depth in
            depth == 0 ? random.pick(["a", "b", "c"]) : random.pick(["a", "b", "c", "1", "2"])
        }.joined(separator: "/")
    }

    private func write(_ participant: Participant, _ index: Int) {
        let path = path()
        let location = participant.root.child(path)
        let kind = random.pick(Self.kinds)
        log.append("\(index) \(kind) \(path)")
        switch kind {
        case "set": location.setValue(value(depth: 0))
        case "leaf": location.setValue(random.below(100), andPriority: random.chance(50) ? random.below(6) : nil)
        case "remove": location.removeValue()
        case "update":
            var changes: [String: Any] = [:]
            for key in ["a/x", "b", "c/y/z"] where random.chance(60) {
                changes[key] = random.chance(20) ? NSNull() : value(depth: 1)
            }
            if !changes.isEmpty { location.updateChildValues(changes) }
        case "priority": location.setPriority(random.below(6))
        case "push": participant.root.child("list").childByAutoId().setValue(["by": index, "n": random.below(100)])
        case "transaction":
            participant.root.child("a/count").runTransactionBlock { data in
                data.value = (data.value as? Int ?? 0) + 1
                return TransactionResult.success(withValue: data)
            }
        case "increment": location.setValue(ServerValue.increment(NSNumber(value: random.below(10))))
        default: location.setValue(["at": ServerValue.timestamp(), "n": 1])
        }
    }

    // MARK: Convergence

    func settle() async throws {
        for participant in participants {
            // Both calls, so that no connection waits in a backoff.
            participant.device.db.goOffline()
            participant.device.db.goOnline()
        }
        for (index, participant) in participants.enumerated() {
            // Writes are answered in order: when this one is answered, all earlier writes are.
            try await participant.root.child("last/\(index)").setValue(1)
        }
        let another = try DatabaseDevice(backend)
        for (index, participant) in participants.enumerated() {
            for (number, query) in participant.observed.enumerated() {
                // Transactions with conflicts are retried after later writes are answered.
                let (witness, location) = (participant.witnesses[number], query(another.db.reference()))
                var expected = ""
                try await Waiting.until(
                    "client \(index), query \(number): \(witness.value ?? "nothing") instead of \(expected); \(log)"
                ) {
                    expected = EventWitness.string(try await location.getData().valueInExportFormat())
                    return witness.value == expected
                }
                try await Waiting.until("the list of client \(index), query \(number); \(log)") { witness.isListed }
            }
        }
        await another.end()
    }

    func end() async {
        for participant in participants {
            for witness in participant.witnesses { witness.stop() }
            await participant.device.end()
        }
    }
}
