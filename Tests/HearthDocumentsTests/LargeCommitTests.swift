import HearthConcurrency
import HearthModel
import HearthTestSupport
import HearthWire
import Synchronization
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// Commits of many writes: their cost grows with their size, and others don't wait for them.
@Suite struct LargeCommitTests {
    let clock = StoppedClock()
    let store = MemoryStore()
    let database: Database

    init() throws {
        database = try Database(name: testDatabaseName, store: store, clock: clock)
    }

    private func stage(_ writes: [Write]) throws(Status) -> StagedCommit {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        return try StagedCommit(
            writes, on: snapshot, catalog: IndexCatalog(), requestTime: clock.now(), latest: clock.now().microseconds)
    }

    @Test func aHundredThousandWritesAreStagedInAWalk() throws {
        let seconds = try threadSeconds {
            let staged = try stage((0..<100_000).map { .delete("c/\($0)") })
            #expect(staged.changedKeys.isEmpty)
            #expect(staged.workBytes == 0)
            let sets = try stage((0..<100_000).map { .set("c/\($0)", map(("n", .integer(Int64($0))))) })
            #expect(sets.changedKeys.count == 100_000)
        }
        // Quadratic time would take hours.
        #expect(seconds < 120)
    }

    @Test func manyWritesToOneDocumentDecodeItOnce() throws {
        let fields = MapValue((0..<2000).map { MapValue.Field(name: "f\($0)", value: .integer(Int64($0))) })
        try database.commit([.set("c/d", fields)])
        let size = try #require(try database.view().document(resource("c/d").path)).fields.count
        for count in [10, 100, 1000] {
            let staged = try stage(
                try (0..<count).map { try .merge("c/d", map(("f7", .integer(Int64($0)))), ["f7"]) })
            #expect(staged.workBytes == size, "\(count) writes")
        }
    }

    @Test func updateTimePreconditionsCompareTouchedFields() throws {
        let fields = MapValue((0..<500).map { MapValue.Field(name: "f\($0)", value: .integer(Int64($0))) })
        let time = try database.commit([.set("c/d", fields)]).commitTime
        let size = try #require(try database.view().document(resource("c/d").path)).fields.count
        for count in [10, 100, 1000] {
            let staged = try stage(
                try (0..<count).map { _ in try .merge("c/d", map(("f7", .integer(7))), ["f7"], .updateTime(time)) })
            #expect(staged.workBytes == size, "\(count) writes")
            #expect(staged.changedKeys.isEmpty)
        }
        // Changed and changed back: only a comparison of the whole shows it.
        let there = try Write.merge("c/d", map(("f7", .integer(8))), ["f7"])
        let back = try Write.merge("c/d", map(("f7", .integer(7))), ["f7"])
        #expect(throws: Never.self) { try stage([there, back, .verify("c/d", .updateTime(time))]) }
        #expect(throws: Status.self) { try stage([there, .verify("c/d", .updateTime(time))]) }
    }

    @Test func excessiveComparisonsFail() throws {
        let time = try database.commit([
            .set("c/d", map(("a", .integer(0)), ("s", .string(String(repeating: "x", count: 1_000_000)))))
        ]).commitTime
        var writes: [Write] = []
        for _ in 0..<400 {
            writes.append(try .merge("c/d", map(("a", .integer(1))), ["a"]))
            writes.append(try .merge("c/d", map(("a", .integer(0))), ["a"]))
            writes.append(.verify("c/d", .updateTime(time)))
        }
        #expect(statusOf { () throws(Status) in _ = try stage(writes) } == StagedCommit.tooBig)
    }

    @Test func aCommitIsBoundedByTheRecordsThatItChanges() throws {
        let elements = (0..<10_000).map { Value.integer(Int64($0)) }
        let writes = (0..<8).map { Write.set("c/\($0)", map(("a", .array(elements)))) }
        #expect(statusOf { () throws(Status) in _ = try database.commit(writes) } == StagedCommit.tooBig)
        try database.commit(Array(writes.prefix(4)))
        #expect(try IntegrityCheck.run(database).isSound)
    }

    // MARK: Arrays

    private static func remove(_ path: String, _ elements: [Value]) -> FieldTransform {
        FieldTransform(path: FieldPath(path), operation: .removeAllFromArray(elements))
    }

    private static func append(_ path: String, _ elements: [Value]) -> FieldTransform {
        FieldTransform(path: FieldPath(path), operation: .appendMissingElements(elements))
    }

    @Test(arguments: [2, 50, 500]) func manyOperationsOnOneArrayReadItOnce(count: Int) throws {
        let elements = (0..<5000).map { Value.integer(Int64($0)) }
        try database.commit([.set("c/d", map(("a", .array(elements)), ("b", .array(elements))))])
        let size = try #require(try database.view().document(resource("c/d").path)).fields.count
        let transforms = (0..<count).map { number in
            let element = [Value.integer(Int64(number * 7))]
            let path = number % 4 < 2 ? "a" : "b"
            return number % 2 == 0 ? Self.remove(path, element) : Self.append(path, element)
        }
        let staged = try stage([try .merge("c/d", map(), [], transforms: transforms)])
        // The document, each array once, and the elements of the operations.
        #expect(staged.workBytes <= size + 2 * 5000 * 16 + count * 16)
        // A commit that only the stored array makes large is prepared on a snapshot.
        let request = QueuedCommit(
            writes: [try .merge("c/d", map(), [], transforms: transforms)], owner: 0,
            requestTime: clock.now(), guard: nil, sizeBytes: 0, waitUntil: 0, completion: { _ in })
        request.arrayOperations = CommitCost.measure(request.writes).arrayOperations
        #expect(request.arrayOperations == count)
        #expect(request.isLarge == (count >= 8))
    }

    /// Any order of operations, on one field or on those above and below it.
    @Test func operationsTogetherEqualOperationsInSequence() throws {
        var maker = ValueMaker(SeededGenerator(seed: TestRun.seed()))
        let paths = [["a"], ["b"], ["m"], ["m", "a"], ["m", "a", "x"]].map { FieldPath(segments: $0) }
        for round in 0..<(300 * TestRun.effort) {
            func elements() -> [Value] {
                (0..<maker.random.below(12)).map { _ in
                    maker.random.chance(50) ? maker.scalar() : .integer(Int64(maker.random.below(6)))
                }
            }
            let fields = map(
                ("a", .array(elements())), ("b", maker.scalar()), ("m", .map(map(("a", .array(elements()))))))
            let transforms = (0..<(2 + maker.random.below(8))).map { _ in
                let operation: FieldTransform.Operation =
                    switch maker.random.below(5) {
                    case 0, 1: .appendMissingElements(elements())
                    case 2, 3: .removeAllFromArray(elements())
                    default: maker.random.chance(50) ? .increment(.integer(1)) : .maximum(.integer(3))
                    }
                return FieldTransform(path: paths[maker.random.below(paths.count)], operation: operation)
            }
            var expected = fields
            var results: [Value] = []
            for transform in transforms {
                let (value, result) = transform.apply(to: expected[path: transform.path], requestTime: clock.now())
                expected.set(transform.path, value)
                results.append(result)
            }
            var tree = fields
            var run = TransformRun(transforms, requestTime: clock.now())
            for transform in transforms { try run.apply(transform, to: &tree) }
            try run.finish(&tree)
            #expect(tree == expected, "round \(round): \(transforms)")
            #expect(run.results == results)
            #expect(run.isSame == (tree == fields) || !run.isSame)
        }
    }

    @Test func longNamesCostTheWriterTheirBytes() throws {
        let long = String(repeating: "x", count: 1500)
        func cost(_ path: String) -> Int {
            CommitCost.measure((0..<10).map { .set("\(path)/\($0)", map(("n", .integer(1)))) }).units
        }
        #expect(cost("c") == 20)
        #expect(cost("\(long)/\(long)/\(long)") >= 20 * 17)
    }

    // MARK: Prepared on a snapshot

    @Test func aLargeCommitBehavesLikeASmallOne() throws {
        let outcome = try database.commit((0..<3000).map { .set("c/\($0)", map(("n", .integer(Int64($0))))) })
        #expect(outcome.results.count == 3000)
        #expect(try database.fields("c/2999") == map(("n", .integer(2999))))
        try database.commit((0..<3000).map { .delete("c/\($0)") })
        #expect(try database.fields("c/0") == nil)
        #expect(try IntegrityCheck.run(database).isSound)
    }

    /// A commit comes between the preparation and the writer: increments aren't lost.
    @Test func aCommitIsPreparedAgainAfterAChange() throws {
        let increment = FieldTransform(path: FieldPath("n"), operation: .increment(.integer(1)))
        let large = try (0..<200).map { try Write.merge("c/\($0)", map(), [], transforms: [increment]) }
        var pending: [Promise<Result<CommitOutcome, Status>>] = []
        for round in 0..<20 {
            pending.append(submit(large, connection: 1))
            for offset in 0..<5 {
                pending.append(submit([large[(round * 7 + offset) % 200]], connection: UInt64(2 + offset)))
            }
        }
        for promise in pending { _ = try promise.wait().get() }
        var sum: Int64 = 0
        for number in 0..<200 {
            if case .integer(let value)? = try database.fields("c/\(number)")?["n"] { sum += value }
        }
        #expect(sum == 20 * 200 + 100)
    }

    private func submit(
        _ writes: [Write], connection: UInt64, guard commitGuard: (any CommitGuard)? = nil,
        isWanted: (@Sendable () -> Bool)? = nil, to target: Database? = nil
    ) -> Promise<Result<CommitOutcome, Status>> {
        let promise = Promise<Result<CommitOutcome, Status>>()
        (target ?? database).commit(
            writes, guard: commitGuard,
            requester: Requester(account: 7, connection: connection, isAdministrator: false), isWanted: isWanted
        ) { promise.give($0) }
        return promise
    }

    // MARK: Guards

    /// Counts the commits that it judges, and denies writes to one collection.
    private final class CountingGuard: CommitGuard {
        let judged = Atomic<Int>(0)
        let readsOthers: Bool

        init(readsOthers: Bool = false) { self.readsOthers = readsOthers }

        func check(_ commit: GuardedCommit) throws(Status) {
            for write in commit.writes {
                judged.add(1, ordering: .relaxed)
                _ = try commit.before(write.document.path)
                _ = try commit.after(write.document.path)
                if readsOthers, try commit.after(resource("c/key").path) != nil { continue }
                if write.document.path.segments[0] == "shut" || readsOthers { throw Status(.permissionDenied, "No.") }
            }
        }
    }

    @Test func aCommitWithADeniedFirstWriteIsJudgedByThatAlone() throws {
        let refusing = CountingGuard()
        let writes = (0..<20_000).map { Write.delete("shut/\($0)") }
        #expect(throws: Status(.permissionDenied, "No.")) {
            try submit(writes, connection: 1, guard: refusing).wait().get()
        }
        #expect(refusing.judged.load(ordering: .relaxed) == 1)
    }

    @Test func theFirstWriteIsJudgedByTheStateAfterTheWholeCommit() throws {
        // The first write is allowed because of the result of the last one.
        let reading = CountingGuard(readsOthers: true)
        let writes = (0..<200).map { Write.set("c/\($0)", map()) } + [.set("c/key", map())]
        _ = try submit(writes, connection: 1, guard: reading).wait().get()
        #expect(try database.fields("c/0") != nil)
    }

    @Test func aCommitWithoutAWaitingCallerIsNotStarted() throws {
        let judge = CountingGuard()
        for count in [1, 300] {
            let writes = (0..<count).map { Write.set("c/\($0)", map()) }
            let outcome = submit(writes, connection: 1, guard: judge, isWanted: { false }).wait()
            #expect(outcome.failure?.code == .cancelled)
        }
        #expect(judge.judged.load(ordering: .relaxed) == 0)
        #expect(try database.view().version == 0)
    }
}

extension Result {
    var failure: Failure? { if case .failure(let failure) = self { failure } else { nil } }
}
