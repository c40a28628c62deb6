import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// Preconditions, update times and transforms of commits, as google.firestore.v1.Write documents them.
@Suite struct CommitTests {
    let clock = StoppedClock()
    let database: Database

    init() throws {
        database = try Database(name: testDatabaseName, store: MemoryStore(), clock: clock)
    }

    static let root = "projects/p/databases/(default)/documents/"

    private func feedRecords() throws -> Int {
        let view = try database.view()
        return try view.snapshot.count(.feed, KeyRange(lower: [], upper: nil), limit: .max)
    }

    private func time(_ path: String) throws -> Timestamp? {
        try database.view().document(resource(path).path).map { Timestamp(microseconds: $0.updateVersion) }
    }

    // MARK: Preconditions

    @Test func existsTrueRequiresADocument() throws {
        let missing = Status.notFound("No document to update: \(Self.root)c/d")
        #expect(statusOf { () throws(Status) in try database.commit([.set("c/d", map(), .exists(true))]) } == missing)
        #expect(statusOf { () throws(Status) in try database.commit([.delete("c/d", .exists(true))]) } == missing)
        #expect(statusOf { () throws(Status) in try database.commit([.verify("c/d", .exists(true))]) } == missing)
        try database.commit([.set("c/d", map())])
        try database.commit([.set("c/d", map(("a", .null)), .exists(true)), .verify("c/d", .exists(true))])
        #expect(try database.fields("c/d") == map(("a", .null)))
    }

    @Test func existsFalseRequiresNoDocument() throws {
        try database.commit([.verify("c/d", .exists(false)), .set("c/d", map(), .exists(false))])
        let present = Status(.alreadyExists, "Document already exists: \(Self.root)c/d")
        for write in [
            Write.set("c/d", map(), .exists(false)), .delete("c/d", .exists(false)), .verify("c/d", .exists(false)),
        ] {
            #expect(statusOf { () throws(Status) in try database.commit([write]) } == present)
        }
    }

    @Test func updateTimeMustBeTheStoredOne() throws {
        let outcome = try database.commit([.set("c/d", map())])
        let stored = outcome.commitTime.microseconds
        clock.advance(seconds: 1)
        for wanted in [stored - 1, stored + 1] {
            let mismatch = Status.failedPrecondition(
                "the stored version (\(stored)) does not match the required base version (\(wanted))")
            for write in writes(.updateTime(Timestamp(microseconds: wanted))) {
                #expect(statusOf { () throws(Status) in try database.commit([write]) } == mismatch)
            }
        }
        try database.commit([.verify("c/d", .updateTime(outcome.commitTime))])
        try database.commit([.set("c/d", map(("a", .null)), .updateTime(outcome.commitTime))])
        try database.commit([.delete("c/d", .updateTime(try #require(try time("c/d"))))])
        // A missing document counts as version 0, so that a client's transaction is retried.
        let missing = Status.failedPrecondition(
            "the stored version (0) does not match the required base version (\(stored))")
        for write in writes(.updateTime(outcome.commitTime)) {
            #expect(statusOf { () throws(Status) in try database.commit([write]) } == missing)
        }
    }

    private func writes(_ precondition: Precondition) -> [Write] {
        [.set("c/d", map(), precondition), .delete("c/d", precondition), .verify("c/d", precondition)]
    }

    @Test func aFutureUpdateTimeFails() throws {
        try database.commit([.set("c/d", map())])
        let future = Timestamp(microseconds: clock.now().microseconds + 1_000_000)
        for write in writes(.updateTime(future)) {
            #expect(statusOf { () throws(Status) in try database.commit([write]) }?.code == .invalidArgument)
        }
    }

    // MARK: Several writes of one commit

    @Test func eachWriteSeesTheOnesBefore() throws {
        let outcome = try database.commit([
            .set("c/d", map(("n", .integer(1))), .exists(false)),
            try .merge("c/d", map(("m", .integer(2))), ["m"], .exists(true)),
            .set("c/e", map()),
            .delete("c/e", .exists(true)),
            .verify("c/e", .exists(false)),
            try .merge(
                "c/d", map(), [], transforms: [FieldTransform(path: FieldPath("n"), operation: .increment(.integer(5)))]
            ),
        ])
        #expect(try database.fields("c/d") == map(("m", .integer(2)), ("n", .integer(6))))
        #expect(try database.fields("c/e") == nil)
        #expect(
            outcome.results == [
                WriteResult(updateTime: outcome.commitTime), WriteResult(updateTime: outcome.commitTime),
                WriteResult(updateTime: outcome.commitTime), WriteResult(), WriteResult(),
                WriteResult(updateTime: outcome.commitTime, transformResults: [.integer(6)]),
            ])
    }

    @Test func oneFailureUndoesAll() throws {
        try database.commit([.set("c/a", map())])
        let before = try database.view().version
        #expect(
            statusOf { () throws(Status) in
                try database.commit([
                    .set("c/b", map()), .delete("c/a"), .set("c/none", map(), .exists(true)),
                    .set("c/b", map(), .exists(false)),
                ])
            } == .notFound("No document to update: \(Self.root)c/none"))
        #expect(try database.fields("c/a") != nil)
        #expect(try database.fields("c/b") == nil)
        #expect(try database.view().version == before)
    }

    @Test func anUpdateTimeOfTheSameCommitFails() throws {
        let outcome = try database.commit([.set("c/d", map(("a", .integer(1))))])
        clock.advance(seconds: 1)
        #expect(
            statusOf { () throws(Status) in
                try database.commit([
                    .set("c/d", map(("a", .integer(2)))), .verify("c/d", .updateTime(outcome.commitTime)),
                ])
            }?.code == .failedPrecondition)
        // A write that changes nothing keeps the update time.
        try database.commit([
            .set("c/d", map(("a", .integer(1)))), .verify("c/d", .updateTime(outcome.commitTime)),
            .set("c/d", map(("a", .integer(2))), .updateTime(outcome.commitTime)),
        ])
        #expect(
            statusOf { () throws(Status) in
                try database.commit([.delete("c/d"), .verify("c/d", .updateTime(outcome.commitTime))])
            }?.code == .failedPrecondition)
    }

    @Test func allDocumentsOfACommitHaveItsTime() throws {
        let outcome = try database.commit([.set("c/a", map()), .set("c/b", map()), .set("d/a/e/b", map())])
        for path in ["c/a", "c/b", "d/a/e/b"] { #expect(try time(path) == outcome.commitTime) }
        // The clock does not move, and yet each commit has a time of its own.
        let next = try database.commit([.set("c/a", map(("x", .null)))])
        #expect(next.commitTime > outcome.commitTime)
    }

    // MARK: Times

    @Test func createTimeStaysUntilTheDocumentIsMadeAnew() throws {
        func times() throws -> [Int64] {
            try database.view().document(resource("c/d").path).map { [$0.createVersion, $0.updateVersion] } ?? []
        }
        let first = try database.commit([.set("c/d", map())]).commitTime.microseconds
        #expect(try times() == [first, first])
        let second = try database.commit([.set("c/d", map(("a", .null)))]).commitTime.microseconds
        #expect(try times() == [first, second])
        // Deleted and made again in one commit, even with the same content, it is a new document.
        let third = try database.commit([.delete("c/d"), .set("c/d", map(("a", .null)))]).commitTime.microseconds
        #expect(try times() == [third, third])
        try database.commit([.delete("c/d")])
        let fourth = try database.commit([.set("c/d", map(("a", .null)))]).commitTime.microseconds
        #expect(try times() == [fourth, fourth])
    }

    @Test func aWriteWithoutEffectKeepsTheUpdateTime() throws {
        let time = try database.commit([.set("c/d", map(("a", .integer(3)), ("m", .map(map(("x", .null))))))])
            .commitTime
        let noops: [Write] = [
            .set("c/d", map(("m", .map(map(("x", .null)))), ("a", .integer(3)))),
            try .merge("c/d", map(("a", .integer(3))), ["a"]), try .merge("c/d", map(("a", .integer(9))), []),
            try .merge("c/d", map(), ["none", "a.below", "m.y"]),
            try .merge(
                "c/d", map(), [], transforms: [FieldTransform(path: FieldPath("a"), operation: .maximum(.integer(2)))]),
            .verify("c/d", .exists(true)),
        ]
        for write in noops {
            let outcome = try database.commit([write])
            #expect(outcome.commitTime > time)
            #expect(outcome.results.map(\.updateTime) == [time])
            #expect(try self.time("c/d") == time)
        }
        #expect(try feedRecords() == 1)
        // Equivalent isn't identical.
        let outcome = try database.commit([.set("c/d", map(("a", .double(3)), ("m", .map(map(("x", .null))))))])
        #expect(try self.time("c/d") == outcome.commitTime)
    }

    @Test func aRevertedChangeIsNotAChange() throws {
        let time = try database.commit([.set("c/d", map(("a", .integer(1))))]).commitTime
        let outcome = try database.commit([.set("c/d", map(("a", .integer(2)))), .set("c/d", map(("a", .integer(1))))])
        #expect(outcome.results.map(\.updateTime) == [time, time])
        #expect(try self.time("c/d") == time)
        let created = try database.commit([.set("c/new", map()), .delete("c/new")])
        #expect(created.results.map(\.updateTime) == [created.commitTime, nil])
        #expect(try feedRecords() == 1)
    }

    @Test func anEmptyDocumentOverNothingIsAChange() throws {
        let outcome = try database.commit([try .merge("c/d", map(), [])])
        #expect(try time("c/d") == outcome.commitTime)
        #expect(try database.commit([]).results.isEmpty)
        #expect(try database.commit([.delete("c/none")]).results == [WriteResult()])
    }

    // MARK: Transforms

    @Test func requestTimeIsOneForTheCommitAndNotLaterThanIt() throws {
        clock.advance(seconds: 0.001_7)
        let stamp = FieldTransform(path: FieldPath("t"), operation: .requestTime)
        let outcome = try database.commit([
            .set("c/a", map(), transforms: [stamp]), .set("c/b", map(), transforms: [stamp]),
        ])
        let times = outcome.results.flatMap(\.transformResults)
        #expect(times == [times[0], times[0]])
        guard case .timestamp(let time) = times[0] else { return }
        #expect(time <= outcome.commitTime)
        #expect(time.microseconds.isMultiple(of: 1000))
        #expect(clock.now().microseconds - time.microseconds < 1000)
    }

    @Test func transformsAreAppliedAfterTheUpdateInOrder() throws {
        let outcome = try database.commit([
            .set(
                "c/d", map(("n", .integer(1)), ("a", .array([.integer(1)]))),
                transforms: [
                    FieldTransform(path: FieldPath("n"), operation: .increment(.integer(5))),
                    FieldTransform(path: FieldPath("n"), operation: .minimum(.integer(4))),
                    FieldTransform(path: FieldPath("a"), operation: .appendMissingElements([.integer(2)])),
                    FieldTransform(path: FieldPath("a"), operation: .removeAllFromArray([.double(1)])),
                    FieldTransform(path: FieldPath(segments: ["n", "x"]), operation: .increment(.integer(1))),
                ])
        ])
        #expect(
            try database.fields("c/d")
                == map(("a", .array([.integer(2)])), ("n", .map(map(("x", .integer(1)))))))
        #expect(outcome.results[0].transformResults == [.integer(6), .integer(4), .null, .null, .integer(1)])
    }

    // MARK: Limits

    @Test func documentsAreBounded() throws {
        // Name 4 + 16, field 2, 32 more: the rest is the string with its end.
        let rest = Limits.documentSizeBytesMax - (2 + 2 + 16) - 32
        func document(_ size: Int) -> MapValue {
            map(
                ("a", .bytes(Array(repeating: 7, count: size / 2 - 2))),
                ("b", .bytes(Array(repeating: 7, count: size - size / 2 - 2))))
        }
        try database.commit([.set("c/d", document(rest))])
        #expect(
            statusOf { () throws(Status) in try database.commit([.set("c/d", document(rest + 1))]) }
                == .invalidArgument(
                    "Document '\(Self.root)c/d' cannot be written because its size (1,048,577 bytes) exceeds the maximum "
                        + "allowed size of 1,048,576 bytes."))
        #expect(
            statusOf { () throws(Status) in try database.commit([try! .merge("c/d", map(("x", .null)), ["x"])]) }?.code
                == .invalidArgument)
    }

    @Test func transformsAreBounded() throws {
        let one = FieldTransform(path: FieldPath("n"), operation: .increment(.integer(1)))
        let most = Array(repeating: one, count: Limits.transformsPerDocumentMax)
        try database.commit([.set("c/d", map(), transforms: most), .set("c/e", map(), transforms: [one])])
        #expect(try database.fields("c/d") == map(("n", .integer(500))))
        #expect(
            statusOf { () throws(Status) in
                try database.commit([
                    .set("c/d", map(), transforms: most), try! .merge("c/d", map(), [], transforms: [one]),
                ])
            }
                == .invalidArgument(
                    "Document \(Self.root)c/d cannot have more than 500 field transforms on a single document"))
    }

    @Test func transformsCantNestTooDeep() throws {
        func path(_ depth: Int) -> FieldPath { FieldPath(segments: Array(repeating: "k", count: depth)) }
        let tooDeep = Status.invalidArgument("Property k contains an invalid nested entity.")
        let operations: [(FieldTransform.Operation, Int)] = [
            (.increment(.integer(1)), 21), (.requestTime, 21), (.appendMissingElements([.null]), 20),
            (.appendMissingElements([.map(map(("x", .null)))]), 19),
        ]
        for (operation, depth) in operations {
            try database.commit([
                .set("c/d", map(), transforms: [FieldTransform(path: path(depth), operation: operation)])
            ])
            for deeper in [depth + 1, 700] {
                let transform = FieldTransform(path: path(deeper), operation: operation)
                #expect(
                    statusOf { () throws(Status) in try database.commit([.set("c/d", map(), transforms: [transform])]) }
                        == tooDeep)
            }
        }
        #expect(try database.fields("c/d") != nil)
    }

    @Test func indexEntriesAreBounded() throws {
        func numbers(_ count: Int, from start: Int = 0) -> Value {
            .array((start..<(start + count)).map { .integer(Int64($0)) })
        }
        let tooMany = Status.invalidArgument("too many index entries for entity /c/d")
        // Two for the array, two for each distinct element.
        try database.commit([.set("c/d", map(("a", numbers(19_999))))])
        #expect(
            statusOf { () throws(Status) in try database.commit([.set("c/d", map(("a", numbers(20_000))))]) } == tooMany
        )
        // Also when an update adds only a part of them.
        #expect(
            statusOf { () throws(Status) in try database.commit([try! .merge("c/d", map(("b", .null)), ["b"])]) }
                == tooMany)
        // Equal elements count once.
        try database.commit([.set("c/d", map(("a", .array(Array(repeating: .integer(1), count: 30_000)))))])
        // An exempt field counts nothing.
        try database.setCatalog([], [FieldOverride(collectionID: "c", path: FieldPath("a"), indexes: [])])
        try database.commit([.set("c/d", map(("a", numbers(30_000))))])
        #expect(try IntegrityCheck.run(database).problems.isEmpty)
    }

    @Test func sizesOfIndexEntriesAreBounded() throws {
        let collection = String(repeating: "c", count: 1400)
        let string = (0..<4).map { _ in String(repeating: "d", count: 1400) }.joined(separator: "/")
        // 19,000 entries with a name of 7 KB each.
        let elements = (0..<19_000).map { Value.integer($0) }
        #expect(
            statusOf { () throws(Status) in
                try database.commit([.set("\(string)", map(("a", .array(elements))))])
            }?.message.contains("larger than 8388608 bytes") == true)
        // One entry: a long name and a long path and a long value.
        let path = FieldPath(String(repeating: "f", count: 1400))
        #expect(
            statusOf { () throws(Status) in
                try database.commit([
                    .set("\(string)", MapValue([.init(name: path.string, value: .string(collection))]))
                ])
            } == .invalidArgument("Index entry is too large."))
        #expect(try IntegrityCheck.run(database).isSound)
    }

    @Test func commitsAreBounded() throws {
        let big = map(("a", .bytes(Array(repeating: 1, count: 900_000))))
        let writes = (0..<80).map { Write.set("c/d\($0)", big) }
        #expect(
            statusOf { () throws(Status) in try database.commit(writes) }
                == .invalidArgument("Transaction too big. Decrease transaction size."))
        try database.commit(Array(writes[..<60]))
        #expect(try IntegrityCheck.run(database).documents == 60)
    }

    // MARK: Versions

    @Test func versionsFollowTheClockAndNeverGoBack() throws {
        let first = try database.commit([.set("c/d", map())]).commitTime
        #expect(first == clock.now())
        clock.jump(microseconds: -3_600_000_000)
        let second = try database.commit([.delete("c/d")]).commitTime
        #expect(second.microseconds == first.microseconds + 1)
        clock.jump(microseconds: 7_200_000_000)
        #expect(try database.commit([.set("c/d", map())]).commitTime == clock.now())
    }

    @Test func observersAreNotifiedOfEveryChangeInOrder() throws {
        let observed = Gathered<ChangeSet>()
        database.observe { observed.append($0) }
        let first = try database.commit([.set("c/a", map()), .set("c/b", map())])
        try database.commit([.set("c/a", map()), .verify("c/b", .exists(true))])
        let last = try database.commit([.delete("c/a")])
        database.drain()
        #expect(observed.values.map(\.version) == [first.commitTime.microseconds, last.commitTime.microseconds])
        #expect(observed.values.map(\.changes.count) == [2, 1])
        #expect(observed.values[1].changes[0].before != nil && observed.values[1].changes[0].after == nil)
    }
}
