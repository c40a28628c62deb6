import Foundation
import Glibc
import HearthFirestore
import HearthTestSupport
import Synchronization
import Testing

/// Three devices make random changes offline and over broken connections. Meanwhile they and the server are killed, the
/// server is restored from a copy, emptied, or replaced by a new one, its rules change, and some writes are invalid for
/// every server. When all are online and idle, they agree, and each write has the outcome that was reported.
///
/// Five runs, or `HEARTH_TEST_EFFORT` times as many: 10 makes fifty. A failure prints its seed, and `HEARTH_TEST_SEED`
/// repeats the operations of the devices (not the interleaving of their messages).
@Suite(.serialized, .timeLimit(.minutes(Patience.minutes))) struct ConvergenceTests {
    private static let runsDefault = 5
    /// Seeds of runs that failed before.
    private static let known: [UInt64] = [445_088_258, 947_407_366]

    @Test(arguments: known + TestRun.seeds(runsDefault)) func allDevicesAgreeInTheEnd(seed: UInt64) async throws {
        let run = try ConvergenceRun(seed: seed)
        do {
            try await run.work()
            try await run.settle()
            try await run.compare()
        } catch {
            Issue.record("seed \(seed): \(error)")
        }
        await run.end()
    }
}

extension ConvergenceTests {
    /// Documents that one device writes and another deletes so quickly that the server never sends them.
    @Test func documentsThatAreDeletedAtOnceAreSettled() async throws {
        let backend = try Backend()
        let (one, two) = (try Device(backend), try Device(backend))
        let (received, registration) = one.db.collection("c").record()
        try await received.latest { $0.string == "" }
        for round in 0..<40 {
            let (writes, deletions) = (one.db.batch(), (0..<8).map { _ in two.db.batch() })
            for n in 0..<8 {
                // One is shown with its local estimate, the other with the result of the server's transform.
                let data: [String: Any] = n % 2 == 0 ? ["n": n] : ["n": n, "at": FieldValue.serverTimestamp()]
                writes.setData(data, forDocument: one.db.document("c/\(round)-\(n)"))
                for batch in deletions { batch.deleteDocument(two.db.document("c/\(round)-\(n)")) }
            }
            for (index, batch) in deletions.enumerated() {
                if index == 2 { writes.commit(completion: nil) }
                batch.commit(completion: nil)
            }
            for device in [one, two] { try await device.db.waitForPendingWrites() }
        }
        try await two.db.document("c/last").setData(["n": 1])
        let there = QueryEvent(snapshot: try await two.db.collection("c").getDocuments(source: .server)).string
        try await received.latest { $0.string == there }
        registration.remove()
        await one.end()
        await two.end()
    }
}

/// One run: a server, three devices, and a random sequence of operations.
private final class ConvergenceRun {
    private static let roundsMax = 6
    private static let documentCount = 5
    private static let kinds = [
        "set", "set", "merge", "update", "delete", "increment", "union", "remove", "time", "nested",
    ]

    /// The reported outcomes of the writes that are also recorded in the device's own document.
    private final class Outcomes: Sendable {
        struct Reported {
            var made: Set<Int> = []
            var refused: Set<Int> = []
            var oddRefused = 0
        }

        let reported = Mutex(Reported())
    }

    /// A device and its listener. The listener is added again when the device restarts.
    private final class Participant {
        let device: Device
        let isPersistent: Bool
        var isOnline = true
        var received = Recorder<QueryEvent>()
        var registration: (any ListenerRegistration & Sendable)?
        let outcomes = Outcomes()
        var noted = 0
        var firstAfterRestore = 0
        var odd = 0

        init(_ backend: Backend, isPersistent: Bool) throws {
            self.isPersistent = isPersistent
            device = try Device(backend, isPersistent: isPersistent)
        }

        var query: Query { device.db.collection("c") }

        func listen() {
            registration?.remove()
            (received, registration) = query.record()
        }
    }

    private let seed: UInt64
    private var random: SeededGenerator
    private let backend: Backend
    private let participants: [Participant]
    /// A copy of the server's data.
    private var copy: TemporaryFolder?
    /// The operations, for the analysis of a failure.
    private var log: [String] = []

    init(seed: UInt64) throws {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        let backend = try Backend(rules: Self.rules(refusing: -1))
        self.backend = backend
        participants = try [false, true, true].map { try Participant(backend, isPersistent: $0) }
    }

    /// Rules that reject every document with a state that a given device has written.
    private static func rules(refusing index: Int) -> String {
        """
        rules_version = '2';
        service cloud.firestore { match /databases/{database}/documents {
          match /notes/{note} { allow read, write; }
          match /c/{document} {
            allow read, delete;
            allow create, update: if request.resource.data.get('by', 'nobody') != \(index);
          }
        } }
        """
    }

    // MARK: Operations

    func work() async throws {
        for participant in participants { participant.listen() }
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
            if random.chance(8) {
                log.append("server is killed")
                let folder = "\(backend.folder.path)/data"
                DiskFaults.plant(DiskFaults.Plan(folder: folder, code: EIO) { _ in true })
                // A part of the random schedule: no expectation depends on how long it is.
                if random.chance(50) { try await Task.sleep(for: .milliseconds(random.below(100))) }
                backend.stop()
                DiskFaults.remove(from: folder)
                try await backend.restart()
            }
            if random.chance(20) {
                let index = random.below(4) - 1
                log.append("rules refuse \(index)")
                try await backend.change(rules: Self.rules(refusing: index))
            }
            if copy == nil, random.chance(25) {
                log.append("back up")
                copy = try await backend.backUp()
            } else if let copy, random.chance(15) {
                log.append("restore")
                noteLoss()
                try await backend.restore(copy)
            } else if random.chance(6) {
                log.append("server replaced")
                noteLoss()
                try await backend.replace()
            } else if random.chance(6) {
                log.append("server emptied")
                noteLoss()
                try await backend.empty()
            }
        }
    }

    /// Earlier writes may have been applied and lost, whenever their outcome is delivered.
    private func noteLoss() {
        for participant in participants { participant.firstAfterRestore = participant.noted }
    }

    private func act(_ participant: Participant, _ index: Int) async throws {
        if random.chance(45) {
            participant.isOnline.toggle()
            log.append("\(index) \(participant.isOnline ? "online" : "offline")")
            if participant.isOnline {
                try await participant.device.db.enableNetwork()
            } else {
                try await participant.device.db.disableNetwork()
            }
        }
        for _ in 0..<random.below(6) {
            if random.chance(40) {
                let batch = participant.device.db.batch()
                log.append("\(index) batch \(participant.noted)")
                for _ in 0..<1 + random.below(3) { write(participant, index, batch) }
                commit(batch, of: participant, index)
            } else if random.chance(10) {
                writeOddly(participant)
            } else {
                write(participant, index, nil)
            }
        }
        // Sometimes waits, so that other devices make changes first.
        if participant.isOnline, random.chance(40) { try await participant.device.db.waitForPendingWrites() }
        if participant.isPersistent, random.chance(12) {
            participant.registration?.remove()
            if random.chance(50) {
                log.append("\(index) restarts")
                try await participant.device.restart()
            } else {
                log.append("\(index) killed")
                try await participant.device.kill()
            }
            participant.isOnline = true
            participant.listen()
        }
    }

    private static func note(_ index: Int) -> String { "notes/\(index)" }

    /// Records the batch in the device's own document, atomically with its effects, and then its reported outcome.
    private func commit(_ batch: WriteBatch, of participant: Participant, _ index: Int) {
        let number = participant.noted
        participant.noted += 1
        batch.setData(
            ["all": FieldValue.arrayUnion([number]), "count": FieldValue.increment(Int64(1))],
            forDocument: participant.device.db.document(Self.note(index)),
            merge: true)
        batch.commit { [outcomes = participant.outcomes] error in
            outcomes.reported.withLock { reported in
                switch error {
                case nil: reported.made.insert(number)
                // Rejected by the server, or by the device's disk: a write that the disk rejects is never sent.
                case let error?
                where FirestoreErrorCode.permissionDenied ~= error || FirestoreErrorCode.notFound ~= error
                    || FirestoreErrorCode.unavailable ~= error:
                    reported.refused.insert(number)
                // It may be sent after a restart of the program.
                default: break
                }
            }
        }
    }

    /// Writes that every server rejects.
    private func writeOddly(_ participant: Participant) {
        participant.odd += 1
        let db = participant.device.db
        let note: @Sendable ((any Error)?) -> Void = { [outcomes = participant.outcomes] error in
            if let error, FirestoreErrorCode.invalidArgument ~= error {
                outcomes.reported.withLock { $0.oddRefused += 1 }
            }
        }
        switch random.below(3) {
        case 0: db.document("c/__x__").setData(["n": 1], completion: note)
        case 1: db.document("c/0").setData([String(repeating: "f", count: 1501): 1], merge: true, completion: note)
        default:
            let batch = db.batch()
            batch.setData(["n": "never"], forDocument: db.document("c/0"))
            batch.setData(["n": 1], forDocument: db.document("c/.."))
            batch.commit(completion: note)
        }
    }

    private func write(_ participant: Participant, _ index: Int, _ batch: WriteBatch?) {
        let document = participant.query.firestore.document("c/\(random.below(Self.documentCount))")
        let number = random.below(100)
        let kind = random.below(Self.kinds.count)
        log.append("\(index) \(Self.kinds[kind]) \(document.path) \(number)")
        func set(_ data: [String: Any], merge: Bool) {
            if let batch {
                batch.setData(data, forDocument: document, merge: merge)
            } else {
                document.setData(data, merge: merge)
            }
        }
        func update(_ fields: [AnyHashable: Any]) {
            if let batch { batch.updateData(fields, forDocument: document) } else { document.updateData(fields) }
        }
        switch kind {
        case 0, 1: set(["n": number, "by": index, "tags": ["t\(number % 4)"]], merge: false)
        case 2: set(["n": number, "m\(number % 3)": index, "map": ["k\(number % 2)": number]], merge: true)
        case 3: update(["n": number, "by": index])
        case 4: if let batch { batch.deleteDocument(document) } else { document.delete() }
        case 5: set(["n": FieldValue.increment(Int64(number)), "d": FieldValue.increment(0.5)], merge: true)
        case 6: set(["tags": FieldValue.arrayUnion(["t\(number % 5)", index])], merge: true)
        case 7: update(["tags": FieldValue.arrayRemove(["t\(number % 5)"]), "m0": FieldValue.delete()])
        case 8: set(["at": FieldValue.serverTimestamp(), "low": FieldValue.minimum(Int64(number))], merge: true)
        default: update(["map.k\(number % 3)": number, "map.list": [index, number]])
        }
    }

    // MARK: Convergence

    func settle() async throws {
        try await backend.change(rules: Self.rules(refusing: -1))
        for participant in participants {
            // Both calls, so that no stream waits in a backoff.
            try await participant.device.db.disableNetwork()
            try await participant.device.db.enableNetwork()
        }
        for participant in participants { try await participant.device.db.waitForPendingWrites() }
        // The last write, from another device: a device that receives it has received all earlier changes.
        let another = try Device(backend)
        try await another.db.document("c/last").setData(["n": 1])
        await another.end()
        for (index, participant) in participants.enumerated() {
            try await Waiting.until(
                "seed \(seed): device \(index) is idle: \(participant.received.all.suffix(2)); \(log)"
            ) {
                guard let snapshot = participant.received.all.last?.snapshot else { return false }
                return !snapshot.metadata.isFromCache && !snapshot.metadata.hasPendingWrites
                    && snapshot.documents.contains { $0.documentID == "last" }
            }
        }
    }

    func compare() async throws {
        let fresh = try Device(backend)
        let expected = Self.lines(try await fresh.db.collection("c").getDocuments(source: .server))
        #expect(!expected.isEmpty)
        for (index, participant) in participants.enumerated() {
            let received = try #require(participant.received.all.last?.snapshot)
            let cached = try await participant.query.getDocuments(source: .cache)
            #expect(!cached.metadata.hasPendingWrites, "seed \(seed), device \(index)")
            #expect(Self.lines(received) == expected, "seed \(seed), device \(index) listens; \(log)")
            #expect(Self.lines(cached) == expected, "seed \(seed), device \(index), cache; \(log)")
            for id in 0..<Self.documentCount {
                let document = participant.query.firestore.document("c/\(id)")
                let server = try await document.getDocument(source: .server)
                let line = server.data().map { "\(id): \(Self.string($0))" }
                #expect(
                    line == expected.first { $0.hasPrefix("\(id): ") },
                    "seed \(seed), device \(index), document \(id); \(log)")
            }
            let again = try await participant.query.getDocuments(source: .server)
            #expect(Self.lines(again) == expected, "seed \(seed), device \(index), server; \(log)")
        }
        for (index, participant) in participants.enumerated() {
            let note = try await fresh.db.document(Self.note(index)).getDocument(source: .server)
            let all = Set((note.get("all") as? [Int]) ?? [])
            #expect(
                note.get("count") as? Int ?? 0 == all.count,
                "seed \(seed), device \(index): a write was applied twice: \(note.data() ?? [:]); \(log)")
            let reported = participant.outcomes.reported.withLock { $0 }
            let retained = reported.made.filter { $0 >= participant.firstAfterRestore }
            #expect(retained.isSubset(of: all), "seed \(seed), device \(index): made \(reported.made), \(all); \(log)")
            #expect(
                reported.refused.isDisjoint(with: all),
                "seed \(seed), device \(index): refused \(reported.refused), \(all); \(log)")
            #expect(reported.oddRefused == participant.odd, "seed \(seed), device \(index)")
        }
        await fresh.end()
    }

    func end() async {
        for participant in participants {
            participant.registration?.remove()
            await participant.device.end()
        }
    }

    private static func lines(_ snapshot: QuerySnapshot) -> [String] {
        snapshot.documents.map { "\($0.documentID): \(string($0.data()))" }
    }

    /// A value as a string; only equal values have equal strings.
    private static func string(_ value: Any) -> String {
        switch value {
        case let map as [String: Any]:
            "{" + map.sorted { $0.key < $1.key }.map { "\($0.key)=\(string($0.value))" }.joined(separator: ",") + "}"
        case let list as [Any]: "[" + list.map { string($0) }.joined(separator: ",") + "]"
        case let time as Timestamp: "@\(time.seconds).\(time.nanoseconds)"
        case let string as String: "\"\(string)\""
        case let number as NSNumber: "\(number)"
        case is NSNull: "null"
        default: "?\(type(of: value))"
        }
    }
}
