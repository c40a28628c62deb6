import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// Random commits of all kinds, with random catalogs, against a naive evaluation; after each the store is consistent.
@Suite struct RandomCommitTests {
    @Test func commitsFollowTheDocumentedRules() throws {
        var random = SeededGenerator(seed: TestRun.seed())
        for _ in 0..<(25 * TestRun.effort) {
            try run(seed: TestRun.givenSeed ?? random.next())
            if TestRun.givenSeed != nil { break }
        }
    }

    private func run(seed: UInt64) throws {
        var writer = RandomWriter(seed)
        let clock = StoppedClock()
        let database = try Database(name: testDatabaseName, store: MemoryStore(), clock: clock)
        defer { database.close() }
        var state: NaiveState = [:]
        var history: [(version: Int64, state: NaiveState)] = []
        var succeeded = 0
        for round in 0..<120 {
            clock.advance(seconds: Double(writer.random.below(3)) * 0.7)
            if writer.random.chance(6) { try database.setCatalog(writer.definitions(), writer.overrides()) }
            let writes = writer.writes(on: state)
            let outcome = database.submit(writes).wait()
            let naive = Result { () throws(Status) in
                try NaiveCommit(writes, on: state, requestTime: clock.now())
            }
            switch (outcome, naive) {
            case (.success(let outcome), .success(let naive)):
                succeeded += 1
                let version = outcome.commitTime.microseconds
                state = naive.state(version: version)
                expectResults(outcome, naive, writes, state, "seed \(seed), round \(round)")
                history.append((version, state))
            case (.failure(let status), .failure(let expected)):
                #expect(status.code == expected.code, "seed \(seed), round \(round): \(status)")
            default:
                Issue.record("seed \(seed), round \(round): \(outcome) instead of \(naive)")
                return
            }
            try expect(try database.view(), shows: state, "seed \(seed), round \(round)")
            if round.isMultiple(of: 5) { try expectSound(database, "seed \(seed), round \(round)") }
        }
        #expect(succeeded > 30, "seed \(seed)")
        try expectSound(database, "seed \(seed)")
        for (version, state) in history where writer.random.chance(30) {
            let view = try database.view(.readTime(Timestamp(microseconds: version)))
            try expect(view, shows: state, "seed \(seed), at \(version)")
        }
    }

    private func expectSound(_ database: Database, _ context: String) throws {
        let report = try IntegrityCheck.run(database)
        #expect(report.isSound, "\(context): \(report.problems.prefix(3))")
    }

    private func expectResults(
        _ outcome: CommitOutcome, _ naive: NaiveCommit, _ writes: [Write], _ state: NaiveState, _ context: String
    ) {
        #expect(
            outcome.results.map { encoded($0.transformResults) } == naive.results.map { encoded($0.transformResults) },
            "\(context)")
        #expect(outcome.results.map { $0.updateTime != nil } == naive.results.map(\.tellsTime), "\(context)")
        for (write, result) in zip(writes, outcome.results) {
            guard let time = result.updateTime, let document = state[write.document.path] else { continue }
            if case .verify = write.operation { continue }
            #expect(time.microseconds == document.updateTime, "\(context)")
        }
    }

    /// Values in answers and in stored form, where one NaN represents all.
    private func encoded(_ values: [Value]) -> [UInt8] { FieldsCodec.encode(map(("values", .array(values)))) }

    private func expect(_ view: ReadView, shows state: NaiveState, _ context: String) throws {
        for path in RandomWriter.paths {
            let stored = try view.document(path)
            let expected = state[path]
            #expect(stored.map(\.fields) == expected.map { FieldsCodec.encode($0.fields) }, "\(context): \(path)")
            #expect(stored?.createVersion == expected?.createTime, "\(context): \(path)")
            #expect(stored?.updateVersion == expected?.updateTime, "\(context): \(path)")
        }
    }
}

/// Makes writes of every kind to a few documents.
struct RandomWriter {
    var random: SeededGenerator
    private var values: ValueMaker

    static let paths = ["c/1", "c/2", "c/3", "c/1/c/1", "c/1/d/1", "d/1", "e\u{301}/1", "\u{E9}/1"]
        .map { ResourcePath($0.split(separator: "/").map(String.init)) }
    static let fields = [["a"], ["b"], ["m"], ["m", "x"], ["m", "y"], ["m", "x", "z"], ["t"], ["a.b"]]
        .map { FieldPath(segments: $0) }

    init(_ seed: UInt64) {
        random = SeededGenerator(seed: seed)
        values = ValueMaker(random.fork())
    }

    mutating func writes(on state: NaiveState) -> [Write] {
        (0..<random.pick([0, 1, 1, 1, 2, 3, 6])).map { _ in write(on: state) }
    }

    private mutating func write(on state: NaiveState) -> Write {
        let path = random.pick(Self.paths)
        let name = ResourceName(database: testDatabaseName, path: path)
        let precondition = precondition(state[path])
        switch random.below(10) {
        case 0...1: return Write(document: name, operation: .delete, precondition: precondition)
        case 2: return Write(document: name, operation: .verify, precondition: precondition)
        default:
            let mask = random.chance(60) ? (0..<random.below(5)).map { _ in random.pick(Self.fields) } : nil
            let repeated = random.chance(15) ? state[path]?.fields : nil
            return Write(
                document: name, operation: .update(fields: repeated ?? document(), mask: mask),
                transforms: transforms(),
                precondition: precondition)
        }
    }

    private mutating func precondition(_ present: NaiveDocument?) -> Precondition {
        switch random.below(12) {
        case 0: .exists(present == nil)
        case 1...2: .exists(present != nil)
        case 3: .updateTime(Timestamp(microseconds: present?.updateTime ?? 5))
        case 4: .updateTime(Timestamp(microseconds: (present?.updateTime ?? 5) - 1))
        default: .none
        }
    }

    private mutating func document() -> MapValue {
        var fields = MapValue()
        for path in Self.fields where random.chance(45) { fields.set(path, values.value()) }
        return fields
    }

    private mutating func transforms() -> [FieldTransform] {
        guard random.chance(30) else { return [] }
        return (0..<(1 + random.below(3))).map { _ in
            let number =
                random.chance(50)
                ? Value.integer(random.pick(ValueMaker.integers)) : .double(random.pick(ValueMaker.doubles))
            let elements = (0..<random.below(3)).map { _ in values.scalar() }
            let operations: [FieldTransform.Operation] = [
                .requestTime, .increment(number), .maximum(number), .minimum(number), .appendMissingElements(elements),
                .removeAllFromArray(elements),
            ]
            return FieldTransform(path: random.pick(Self.fields), operation: random.pick(operations))
        }
    }

    // MARK: Catalogs

    mutating func definitions() -> [IndexDefinition] {
        (0..<random.below(4)).map { _ in
            var fields: [IndexField] = []
            for path in Self.fields.shuffled(using: &random).prefix(1 + random.below(3)) {
                let hasArray = fields.contains { $0.kind == .contains }
                let kind: IndexField.Kind =
                    random.chance(25) && !hasArray ? .contains : random.chance(50) ? .ascending : .descending
                fields.append(IndexField(path: path, kind: kind))
            }
            return IndexDefinition(
                id: 0, collectionID: random.pick(["c", "c", "d", "\u{E9}"]),
                scope: random.chance(50) ? .collection : .collectionGroup, fields: fields,
                nameDescending: random.chance(40))
        }
    }

    mutating func overrides() -> [FieldOverride] {
        (0..<random.below(3)).map { _ in
            let all = FieldOverride.automaticIndexes + [FieldOverride.Index(scope: .collectionGroup, kind: .ascending)]
            return FieldOverride(
                collectionID: random.pick(["c", "d", "e\u{301}"]),
                path: random.chance(20) ? nil : random.pick(Self.fields),
                indexes: all.filter { _ in random.chance(50) })
        }
    }
}
