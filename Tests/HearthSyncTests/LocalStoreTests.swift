import HearthModel
import HearthTestSupport
import Testing

@testable import HearthSync

@Suite("Local store")
struct LocalStoreTests {
    private let key = ResourcePath("c/a")

    private func increment(_ by: Int64) -> Mutation {
        Mutation(
            key: key, kind: .patch([:], mask: []),
            transforms: [FieldTransform(path: FieldPath("n"), operation: .increment(.integer(by)))],
            precondition: .exists(true))
    }

    private func receive(_ store: LocalStore, _ document: ClientDocument) throws -> ClientDocument? {
        var event = RemoteEvent(snapshotVersion: document.version)
        event.documentUpdates[document.key] = document
        return try store.apply(event)[document.key]
    }

    private func acknowledge(
        _ store: LocalStore, _ version: Int64, _ transformResults: [Value] = []
    ) throws -> ClientDocument? {
        let batch = try #require(try store.nextBatch(after: MutationBatch.unknownID))
        let result = MutationResult(version: .seconds(version), transformResults: transformResults)
        return try store.acknowledge(
            BatchResult(batch: batch, commitVersion: .seconds(version), results: [result], streamToken: [1]))[key]
    }

    @Test(
        "An increment is applied once when the server's update arrives before its answer",
        arguments: CacheKind.allCases)
    func increments(_ kind: CacheKind) throws {
        try kind.with { persistence in
            let store = LocalStore(persistence, user: .unauthenticated)
            _ = try store.allocate(ClientQuery(path: ResourcePath("c")).target)
            _ = try receive(store, .found("c/a", 1, ["n": .integer(10)]))
            #expect(try store.write([increment(1)]).changed[key]?.fields == ["n": .integer(11)])
            #expect(try store.write([increment(2)]).changed[key]?.fields == ["n": .integer(13)])
            let seen = try receive(store, .found("c/a", 5, ["n": .integer(11), "x": .null]))
            #expect(seen?.fields == ["n": .integer(13), "x": .null] && seen?.hasLocalMutations == true)
            let first = try acknowledge(store, 5, [.integer(11)])
            #expect(first?.fields == ["n": .integer(13), "x": .null])
            let second = try acknowledge(store, 6, [.integer(13)])
            #expect(second?.fields == ["n": .integer(13), "x": .null])
            #expect(second?.hasCommittedMutations == true && second?.version == .seconds(6))
            #expect(try store.highestUnacknowledgedBatchID() == MutationBatch.unknownID)
            #expect(try store.stream().token == [1])
        }
    }

    @Test("Many pending writes of one document cost the same for each answer", arguments: CacheKind.allCases)
    func manyWritesOfOneDocument(_ kind: CacheKind) throws {
        /// Seconds of CPU time of this thread per answer.
        func seconds(_ count: Int) throws -> Double {
            var seconds = 0.0
            try kind.with { persistence in
                let store = LocalStore(persistence, user: .unauthenticated)
                _ = try store.allocate(ClientQuery(path: ResourcePath("c")).target)
                _ = try receive(store, .found("c/a", 1, ["n": .integer(0)]))
                for _ in 0..<count { _ = try store.write([increment(1)]) }
                let start = threadSeconds()
                for number in 1...count {
                    let document = try acknowledge(store, Int64(1 + number), [.integer(Int64(number))])
                    // The user's last state, whatever has been answered.
                    #expect(document?.fields == ["n": .integer(Int64(count))])
                    #expect(document?.hasLocalMutations == (number < count))
                }
                seconds = (threadSeconds() - start) / Double(count)
                #expect(try store.highestUnacknowledgedBatchID() == MutationBatch.unknownID)
            }
            return seconds
        }
        let few = try seconds(100)
        let many = try seconds(1000)
        #expect(many < 4 * few, "\(few) s and \(many) s for an answer")
    }

    /// A server that was restored resets its targets, with a snapshot from before the write that it lost.
    @Test(
        "The documents of a reset target apply when its snapshots are newer than our writes",
        arguments: [true, false])
    func renewal(isLost: Bool) throws {
        try CacheKind.sqlite.with { persistence in
            let store = LocalStore(persistence, user: .unauthenticated)
            _ = try store.allocate(ClientQuery(path: ResourcePath("c")).target)
            _ = try receive(store, .found("c/a", 2, ["n": .integer(1)]))
            _ = try store.write([.set("c/a", ["n": .integer(2)])])
            _ = try acknowledge(store, 5)
            var event = RemoteEvent(snapshotVersion: .seconds(4))
            event.documentUpdates[key] = .found("c/a", 1, ["n": .integer(0)])
            event.renewedDocuments = [key]
            #expect(try store.apply(event)[key] == nil)
            var next = RemoteEvent(snapshotVersion: .seconds(6))
            if !isLost { next.documentUpdates[key] = .found("c/a", 5, ["n": .integer(2)]) }
            #expect(try store.apply(next)[key]?.fields == ["n": .integer(isLost ? 0 : 2)])
            #expect(try store.document(key).version == .seconds(isLost ? 1 : 5))
            #expect(try store.apply(RemoteEvent(snapshotVersion: .seconds(7))).isEmpty)
        }
    }

    @Test("The server's results of other fields are shown in the end", arguments: [3, 200])
    func transformsOfSeveralFields(_ count: Int) throws {
        try CacheKind.sqlite.with { persistence in
            let store = LocalStore(persistence, user: .unauthenticated)
            let time = Mutation(
                key: key, kind: .patch([:], mask: []),
                transforms: [FieldTransform(path: FieldPath("t"), operation: .requestTime)], precondition: .exists(true)
            )
            _ = try store.allocate(ClientQuery(path: ResourcePath("c")).target)
            _ = try receive(store, .found("c/a", 1, ["n": .integer(0)]))
            _ = try store.write([time])
            for _ in 0..<count { _ = try store.write([increment(1)]) }
            var seen = try acknowledge(store, 2, [.timestamp(.seconds(2))])
            var answers = 0
            while PendingServerTimestamp.isPending(try #require(seen?.fields["t"])) {
                answers += 1
                seen = try acknowledge(store, Int64(2 + answers), [.integer(Int64(answers))])
            }
            // At once with few pending writes, and otherwise long before the last answer.
            #expect(seen?.fields == ["n": .integer(Int64(count)), "t": .timestamp(.seconds(2))])
            #expect(answers <= count / OverlayDebts.batchesPerAnswer)
            while answers < count {
                answers += 1
                seen = try acknowledge(store, Int64(2 + answers), [.integer(Int64(answers))])
            }
            #expect(seen?.fields == ["n": .integer(Int64(count)), "t": .timestamp(.seconds(2))])
            #expect(seen?.hasLocalMutations == false)
        }
    }

    @Test("A server timestamp is pending until it is known", arguments: CacheKind.allCases)
    func serverTimestamps(_ kind: CacheKind) throws {
        try kind.with { persistence in
            let store = LocalStore(persistence, user: .unauthenticated)
            let mutation = Mutation(
                key: key, kind: .set([:]),
                transforms: [FieldTransform(path: FieldPath("t"), operation: .requestTime)])
            let written = try #require(try store.write([mutation]).changed[key]?.fields["t"])
            #expect(PendingServerTimestamp.isPending(written))
            #expect(try store.document(key).fields["t"] == written)
            let known = try acknowledge(store, 7, [.timestamp(.seconds(7))])
            #expect(known?.fields == ["t": .timestamp(.seconds(7))] && known?.hasCommittedMutations == true)
        }
    }

    @Test("A rejected write also reverts the writes that depend on it", arguments: CacheKind.allCases)
    func rejection(_ kind: CacheKind) throws {
        try kind.with { persistence in
            let store = LocalStore(persistence, user: .unauthenticated)
            let (batchID, _) = try store.write([.set("c/a", ["a": .integer(1)])])
            let patch = Mutation(
                key: key, kind: .patch(["b": .integer(2)], mask: [FieldPath("b")]), precondition: .exists(true))
            #expect(try store.write([patch]).changed[key]?.fields == ["a": .integer(1), "b": .integer(2)])
            #expect(try store.reject(batchID)[key]?.isFound == false)
            #expect(try store.document(key).isFound == false)
            let documents = try store.execute(ClientQuery(path: ResourcePath("c")), usesPreviousResults: false)
                .documents
            #expect(documents.isEmpty)
            let seen = try receive(store, .found("c/a", 3, ["c": .null]))
            #expect(seen?.fields == ["b": .integer(2), "c": .null], "now the patch applies")
        }
    }

    @Test("A patch follows the document's existence", arguments: CacheKind.allCases)
    func existence(_ kind: CacheKind) throws {
        try kind.with { persistence in
            let store = LocalStore(persistence, user: .unauthenticated)
            _ = try store.allocate(ClientQuery(path: ResourcePath("c")).target)
            _ = try receive(store, .found("c/a", 1, ["n": .integer(1)]))
            _ = try store.write([increment(1)])
            let missing = try receive(store, ClientDocument(key: key, kind: .missing, version: .seconds(2)))
            #expect(missing?.isFound == false)
            let back = try receive(store, .found("c/a", 3, ["x": .null]))
            #expect(back?.fields["x"] == .null && back?.hasLocalMutations == true)
        }
    }

    @Test("A write has the time of the clock", arguments: CacheKind.allCases)
    func writeTime(_ kind: CacheKind) throws {
        try kind.with { persistence in
            let clock = StoppedClock()
            let store = LocalStore(persistence, user: .unauthenticated, clock: clock)
            let first = clock.now()
            _ = try store.write([.set("c/a")])
            clock.advance(seconds: 60)
            _ = try store.write([.set("c/b")])
            let batches = try persistence.mutationQueue(for: .unauthenticated).allBatches
            #expect(batches.map(\.localWriteTime) == [first, clock.now()])
        }
    }

    @Test("Each user has writes of their own", arguments: CacheKind.allCases)
    func users(_ kind: CacheKind) throws {
        try kind.with { persistence in
            let store = LocalStore(persistence, user: .unauthenticated)
            let (first, _) = try store.write([.set("c/a", ["a": .integer(1)])])
            let changed = try store.changeUser(ClientUser(uid: "x"))
            #expect(changed[key]?.isValid == false)
            let (second, _) = try store.write([.set("c/b")])
            #expect(second > first)
            #expect(Set(try store.changeUser(.unauthenticated).keys) == [key, ResourcePath("c/b")])
            #expect(try store.document(key).fields == ["a": .integer(1)])
        }
    }

    @Test(
        "A query finds the same with the server's keys as without", arguments: CacheKind.allCases, [UInt64(1), 2, 3])
    func previousResults(_ kind: CacheKind, _ seed: UInt64) throws {
        try kind.with { persistence in
            var model = QueryModel(LocalStore(persistence, user: .unauthenticated), seed: seed)
            for _ in 0..<150 { try model.step() }
            #expect(model.comparedCount > 100)
        }
    }
}

/// A server and a local store that receives its changes, at random.
private struct QueryModel {
    private let store: LocalStore
    private var random: SeededGenerator
    private var version: Int64 = 10
    private var server: [ResourcePath: ClientDocument] = [:]
    private var targets: [(query: ClientQuery, targetID: Int32, keys: Set<ResourcePath>)] = []
    private(set) var comparedCount = 0

    private static let queries: [ClientQuery] = [
        .collection("c", [filter("n", .lessThan, .integer(20))], limit: 4),
        .collection("c", [filter("n", .greaterThan, .integer(5))]),
        .collection("c", [filter("flag", .equal, .boolean(true))], orders: [("n", true)], limit: 3),
    ]

    init(_ store: LocalStore, seed: UInt64) {
        self.store = store
        random = SeededGenerator(seed: seed)
    }

    mutating func step() throws {
        if targets.isEmpty {
            for query in Self.queries { targets.append((query, try store.allocate(query.target).targetID, [])) }
        }
        switch random.below(4) {
        case 0: _ = try store.write([mutation()])
        case 1:
            if let batch = try store.nextBatch(after: MutationBatch.unknownID) {
                if random.chance(30) { _ = try store.reject(batch.id) } else { try commit(batch) }
            }
        default: try change()
        }
        try compare()
    }

    private mutating func fields() -> MapValue {
        ["n": .integer(Int64(random.below(30))), "flag": .boolean(random.chance(60))]
    }

    private mutating func mutation() -> Mutation {
        let key = ResourcePath("c/\(random.below(15))")
        if random.chance(20) { return Mutation(key: key, kind: .delete) }
        if random.chance(50) { return Mutation(key: key, kind: .set(fields())) }
        return Mutation(
            key: key, kind: .patch(["n": .integer(Int64(random.below(30)))], mask: [FieldPath("n")]),
            precondition: .exists(true))
    }

    private mutating func commit(_ batch: MutationBatch) throws {
        version += 1
        for mutation in batch.mutations {
            var document = server[mutation.key] ?? ClientDocument(key: mutation.key, kind: .missing)
            guard mutation.precondition.holds(for: document) else {
                _ = try store.reject(batch.id)
                return
            }
            try mutation.applyAcknowledged(
                to: &document, MutationResult(version: .seconds(version), transformResults: []))
            document.state = .synced
            server[mutation.key] = document
        }
        let results = batch.mutations.map { _ in MutationResult(version: .seconds(version), transformResults: []) }
        _ = try store.acknowledge(
            BatchResult(batch: batch, commitVersion: .seconds(version), results: results, streamToken: []))
        if random.chance(70) { try deliver(Set(batch.keys)) }
    }

    private mutating func change() throws {
        version += 1
        var keys: Set<ResourcePath> = []
        for _ in 0...random.below(3) {
            let key = ResourcePath("c/\(random.below(15))")
            keys.insert(key)
            server[key] =
                random.chance(25)
                ? ClientDocument(key: key, kind: .missing, version: .seconds(version))
                : ClientDocument(key: key, kind: .found, version: .seconds(version), fields: fields())
        }
        try deliver(keys)
    }

    /// The server sends the present documents of its targets.
    private mutating func deliver(_ keys: Set<ResourcePath>) throws {
        version += 1
        var event = RemoteEvent(snapshotVersion: .seconds(version))
        for key in keys { event.documentUpdates[key] = server[key] }
        for index in targets.indices {
            let query = targets[index].query
            let comparator = query.comparator
            let matching = server.values.filter { query.matches($0) }.sorted { comparator.compare($0, $1) < 0 }
            let now = Set(matching.prefix(query.limit ?? .max).map(\.key))
            let before = targets[index].keys
            for key in now.subtracting(before) { event.documentUpdates[key] = server[key] }
            event.targetChanges[targets[index].targetID] = TargetChange(
                resumeToken: [1], isCurrent: true, added: now.subtracting(before), removed: before.subtracting(now))
            targets[index].keys = now
        }
        _ = try store.apply(event)
        try store.notify(
            targets.map { ViewChange(targetID: $0.targetID, isFromCache: false, added: [], removed: []) })
    }

    private mutating func compare() throws {
        for target in targets {
            let view = View(target.query, remoteKeys: [])
            let scan = View(target.query, remoteKeys: [])
            let documents = try store.execute(target.query, usesPreviousResults: true).documents
            _ = view.apply(view.computeFirst(documents))
            let all = try store.execute(target.query, usesPreviousResults: false).documents
            _ = scan.apply(scan.computeFirst(all))
            // Documents that the target lost are not looked up in this model: only the scan may contain them.
            let lost = scan.documents.filter { !target.keys.contains($0.key) && !$0.hasPendingWrites }
            if !lost.isEmpty { continue }
            #expect(view.documents == scan.documents)
            comparedCount += 1
        }
    }
}
