import HearthTestSupport
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthDocuments
import HearthWire
import Synchronization
import Testing

@testable import HearthHost
@testable import HearthFirestoreServer

/// The state of a client, computed only from the messages that it received, as SDKs do it.
private struct ShownTargets {
    /// By target and name: update time and fields.
    var documents: [Int32: [String: ShownDocument]] = [:]
    /// Targets that the stream has brought to a version.
    private(set) var current: Set<Int32> = []
    var token: [UInt8] = []
    private(set) var resets = 0
    private var taken = 0

    struct ShownDocument: Equatable {
        var fields: MapValue
    }

    /// Takes the messages since the last call.
    /// - Parameter atBoundary: called with the version of each boundary of all targets.
    mutating func take(_ responses: [ListenResponse], _ atBoundary: (ShownTargets, Int64) throws -> Void) rethrows {
        for response in responses.dropFirst(taken) {
            if let change = response.documentChange, let document = change.document {
                for id in change.targetIds {
                    documents[id, default: [:]][document.name] = ShownDocument(fields: document.fields)
                }
                remove(document.name, change.removedTargetIds)
            }
            if let change = response.documentDelete { remove(change.document, change.removedTargetIds) }
            if let change = response.documentRemove { remove(change.document, change.removedTargetIds) }
            guard let change = response.targetChange else { continue }
            if change.targetChangeType == .reset || change.targetChangeType == .remove {
                resets += 1
                for id in change.targetIds { documents[id] = [:] }
            }
            if change.targetChangeType == .current { current.formUnion(change.targetIds) }
            guard change.targetChangeType == .noChange, change.targetIds.isEmpty,
                let token = ResumeToken(change.resumeToken)
            else { continue }
            self.token = change.resumeToken
            try atBoundary(self, token.version)
        }
        taken = responses.count
    }

    /// A new stream resumes from the shown state.
    mutating func beginStream() {
        taken = 0
        current = []
    }

    private mutating func remove(_ name: String, _ ids: [Int32]) {
        for id in ids { documents[id]?[name] = nil }
    }
}

/// At each boundary a client shows for each target the results of a fresh query of that version.
@Suite("Windows of listeners converge")
struct WindowConvergenceTests {
    private struct Target {
        var id: Int
        /// The parts of the query after its collection.
        var string: String
        var projection: [String]?
        var normalized: NormalizedQuery

        init(_ id: Int, _ rest: String, projection: [String]? = nil) throws {
            self.id = id
            self.projection = projection
            let fields = projection.map { $0.map { #"{"fieldPath":"\#($0)"}"# }.joined(separator: ",") }
            string = #","orderBy":[\#(rest)"# + (fields.map { #","select":{"fields":[\#($0)]}"# } ?? "")
            let request = ListenHarness.target(id, "c", string)
            let message = try ListenRequest(json: Array(request.utf8), at: "")
            let query = try #require(message.addTarget?.query)
            normalized = try ListenStream.live(query, StreamBench.name).query
        }

        func expected(_ view: ReadView) throws -> [String: ShownTargets.ShownDocument] {
            var expected: [String: ShownTargets.ShownDocument] = [:]
            let execution = try QueryExecution(normalized, view: view)
            while let result = try execution.next() {
                let path = try #require(DocumentKey.decode(result.key))
                var fields = try FieldsCodec.decode(result.document.fields)
                if let projection { fields = MapValue(fields.fields.filter { projection.contains($0.name) }) }
                expected["\(ListenHarness.name)/documents/\(path)"] = ShownTargets.ShownDocument(fields: fields)
            }
            return expected
        }
    }

    private static func order(_ field: String, _ direction: String = "ASCENDING") -> String {
        #"{"field":{"fieldPath":"\#(field)"},"direction":"\#(direction)"}"#
    }

    private static func integer(_ number: Int) -> String { #"{"integerValue":"\#(number)"}"# }

    /// Overlapping windows: both limit types, offsets, cursors, filters, projections, and equal queries.
    private static func targets() throws -> [Target] {
        let name = order("__name__")
        let up = order("n")
        let down = order("n", "DESCENDING")
        let filter = #""where":{"fieldFilter":{"field":{"fieldPath":"g"},"op":"EQUAL","value":{"booleanValue":true}}}"#
        let atLeast =
            #""where":{"fieldFilter":{"field":{"fieldPath":"n"},"op":"GREATER_THAN","value":\#(integer(2))}}"#
        return [
            try Target(1, #"\#(up)],"limit":3"#),
            try Target(2, #"\#(down)],"limit":3"#),
            try Target(3, #"\#(up),\#(order("__name__", "DESCENDING"))],"limit":7,"offset":2"#),
            try Target(4, #"\#(up)],"startAt":{"values":[\#(integer(3))],"before":true},"limit":4"#),
            try Target(5, #"\#(down)],"endAt":{"values":[\#(integer(4))],"before":false},"limit":6"#),
            try Target(6, #"\#(name)],"offset":5"#),
            try Target(7, #"\#(up)],\#(atLeast),"limit":5"#),
            try Target(8, #"\#(name)],\#(filter),"limit":2"#),
            try Target(9, #"\#(up)],"limit":4"#, projection: ["n"]),
            try Target(10, #"\#(up)],"limit":1"#),
            try Target(11, #"\#(up)],"limit":40"#),
            try Target(12, #"\#(up)],"limit":3"#),
        ]
    }

    private static func write(_ random: inout SeededGenerator, _ ids: Int) -> Write {
        let name = ResourceName(database: StreamBench.name, path: ResourcePath(["c", "d\(random.below(ids))"]))
        if random.below(3) == 0 { return Write(document: name, operation: .delete) }
        var fields = [MapValue.Field(name: "g", value: .boolean(random.below(2) == 0))]
        // Some have no position in an order by `n`.
        if random.below(6) > 0 { fields.append(.init(name: "n", value: .integer(Int64(random.below(6))))) }
        if random.below(2) == 0 { fields.append(.init(name: "x", value: .integer(Int64(random.below(1000))))) }
        return Write(document: name, operation: .update(fields: MapValue(fields), mask: nil))
    }

    /// Each document at most once.
    private static func commit(_ random: inout SeededGenerator, _ ids: Int) -> [Write] {
        let writes = (0..<1 + random.below(random.below(8) == 0 ? 30 : 3)).map { _ in write(&random, ids) }
        var known: Set<String> = []
        return writes.filter { known.insert("\($0.document)").inserted }
    }

    private static let rules = """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{database}/documents { match /c/{id} { allow read: if true; } }
        }
        """

    /// Two clients of the same targets that come, wait and leave while documents change.
    private final class Run {
        let seed: UInt64
        let harness: ListenHarness
        let cached: MemoryBudget
        private var random: SeededGenerator
        private let identity: Identity
        private let targets: [Target]
        private let ids: Int
        private var shown = [ShownTargets](repeating: ShownTargets(), count: 2)
        private var clients: [ListenClient?] = [nil, nil]
        private(set) var compared = 0
        private var clearedVersion: Int64 = 0
        private var database: Database { harness.database }

        init(seed: UInt64) throws {
            self.seed = seed
            random = SeededGenerator(seed: seed)
            // Sometimes there is no memory to cache windows, or memory for some of them.
            let capacity = [1 << 20, 1 << 20, 6 << 10, 0][random.below(4)]
            cached = MemoryBudget(bytesMax: capacity, shareBytesMax: capacity)
            let isJudged = random.below(2) == 0
            harness = try ListenHarness(
                ServerMemory(cachedWindows: cached), rules: isJudged ? WindowConvergenceTests.rules : nil)
            identity = isJudged ? .nobody : .owner
            targets = try WindowConvergenceTests.targets()
            ids = [8, 30, 80][random.below(3)]
        }

        func step(_ number: Int) async throws {
            let writes = WindowConvergenceTests.commit(&random, ids)
            try await database.commit(writes)
            let index = random.below(2)
            if let client = clients[index] {
                try await move(client, index)
            } else {
                await connect(index, connection: UInt64(number))
            }
        }

        /// Lets a client leave, or take, or not, what the server has for it.
        private func move(_ client: ListenClient, _ index: Int) async throws {
            switch random.below(12) {
            case 0:
                await client.leave()
                try check(index)
                clients[index] = nil
            case 1, 2: await client.setTakes(false)
            case 3, 4, 5: await client.setTakes(true)
            case 6:
                await client.setTakes(true)
                await client.rest()
            default: break
            }
            try check(index)
        }

        /// The second stream's targets have the same queries, and it resumes from its state.
        private func connect(_ index: Int, connection: UInt64) async {
            let client = await harness.client(connection: connection, identity: identity)
            clients[index] = client
            let token = shown[index].token.isEmpty ? nil : ListenHarness.base64(shown[index].token)
            shown[index].beginStream()
            await client.ask(targets.map { ListenHarness.target($0.id, "c", $0.string, token: token) })
            // Until all targets are current, a boundary covers those that were added.
            await client.rest()
            await until { client.hasCurrent(targets.count) }
        }

        func clear() async throws {
            let database = database
            try await withCheckedContinuation { continuation in
                database.clear { continuation.resume(returning: $0) }
            }.get()
            clearedVersion = try database.view().version
        }

        /// Compares the boundaries that a client has taken since the last check.
        private func check(_ index: Int) throws {
            guard let client = clients[index] else { return }
            try shown[index].take(client.responses) { shown, version in
                // States before the clearing cannot be read any more.
                if version < clearedVersion { return }
                let view = try database.view(atVersion: version)
                for target in targets where shown.current.contains(Int32(target.id)) {
                    compared += 1
                    let expected = try target.expected(view)
                    let found = shown.documents[Int32(target.id)] ?? [:]
                    #expect(found == expected, "seed \(seed), version \(version), target \(target.id)")
                }
            }
            #expect(client.refusals.isEmpty, "seed \(seed)")
            guard let end = client.end else { return }
            // A stream whose state was cleared connects again.
            #expect(clearedVersion > 0 && end.code == .unavailable, "seed \(seed): \(end)")
            clients[index] = nil
        }

        /// Compares what the clients show when they have taken everything.
        func finish() async throws {
            for (index, client) in clients.enumerated() {
                guard let client else { continue }
                await client.setTakes(true)
                await client.rest()
                try check(index)
                if clients[index] == nil { continue }
                let view = try database.view()
                for target in targets {
                    let found = shown[index].documents[Int32(target.id)] ?? [:]
                    #expect(found == (try target.expected(view)), "seed \(seed), at the end, target \(target.id)")
                }
                await client.leave()
            }
        }
    }

    @Test("to the results of a fresh query, after any commits", arguments: 1...10 as ClosedRange<UInt64>)
    func random(seed: UInt64) async throws {
        let run = try Run(seed: seed)
        for step in 0..<160 {
            try await run.step(step)
            if step % 61 == 60 { try await run.clear() }
        }
        try await run.finish()
        #expect(run.compared > 100)
        await until { run.cached.usedBytes == 0 }
        run.harness.stop()
    }
}

extension ListenClient {
    fileprivate func hasCurrent(_ count: Int) -> Bool {
        isFinished || (changes.last { $0.targetChangeType == .noChange } != nil && currentCount >= count)
    }
}
