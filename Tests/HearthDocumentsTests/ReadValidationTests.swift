import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthDocuments

/// The reads of a transaction are validated against the history when it is older than the commits in memory.
@Suite struct ReadValidationTests: TransactionBench {
    let clock = StoppedClock()
    let database: Database

    init() throws {
        database = try Self.open(clock)
    }

    /// The commits in memory are forgotten, as after many large ones.
    private func forgetRecent(_ database: Database) throws { database.recent.reset(to: try database.view().version) }

    private func isTouched(
        _ readSet: ReadSet, since version: Int64, in database: Database,
        _ bounds: CommitPipeline.ValidationBounds = .long, _ meter: WorkMeter = WorkMeter()
    ) throws -> Bool {
        let view = try database.view()
        return try database.pipeline.isTouched(
            readSet, since: version, through: view.version, in: view.snapshot, bounds, meter: meter)
    }

    /// Every difference of a random read set between two states is found, and unwritten documents are not reported.
    @Test func changedReadsAreFound() throws {
        var random = SeededGenerator(seed: TestRun.seed())
        var changed = 0
        var unchanged = 0
        for _ in 0..<(8 * TestRun.effort) {
            var twin = try RandomDatabase(SeededGenerator(seed: random.next()))
            defer { twin.database.close() }
            for _ in 0..<30 { try twin.commit(documents: 1 + random.below(3)) }
            try forgetRecent(twin.database)
            for _ in 0..<60 {
                let index = random.below(twin.history.count)
                let (version, old) = twin.history[index]
                let later = twin.history[index...].map(\.state)
                var readSet = ReadSet()
                var differs = false
                var isWritten = false
                func compare(at path: ResourcePath, _ counts: (NaiveDocument) -> Bool) {
                    let states = later.map { $0[path] }
                    let ends = [old[path], states.last.flatMap { $0 }]
                    if ends[0] != ends[1], ends.contains(where: { $0.map(counts) ?? false }) { differs = true }
                    if states.contains(where: { $0 != old[path] }) { isWritten = true }
                }
                for _ in 0..<random.below(3) {
                    let path = random.pick(twin.paths)
                    readSet.insert(.document(DocumentKey.encode(path)))
                    compare(at: path) { _ in true }
                }
                for _ in 0..<random.below(3) {
                    var query = twin.randomQuery()
                    (query.start, query.end, query.limit, query.offset) = (nil, nil, nil, 0)
                    guard let normalized = try? NormalizedQuery(query) else { continue }
                    readSet.insert(.query(QueryMatcher(normalized)))
                    let naive = NaiveQuery(query)
                    for path in twin.paths { compare(at: path) { !naive.matches(in: [path: $0]).isEmpty } }
                }
                let isTouched = try isTouched(readSet, since: version, in: twin.database)
                if differs {
                    changed += 1
                    #expect(isTouched)
                } else if !isWritten {
                    unchanged += 1
                    #expect(!isTouched)
                }
            }
        }
        #expect(changed > 100 && unchanged > 50)
    }

    /// However much has changed elsewhere, none of those documents is read.
    @Test func changesOfOtherCollectionsCostNothing() throws {
        for count in [100, 1000, 10_000] {
            let database = try Self.open(clock)
            defer { database.close() }
            let since = try database.view().version
            for number in 0..<(count / 100) {
                try database.commit((0..<100).map { .set("other/\(number)-\($0)", map(("n", .integer(1)))) })
            }
            try database.commit([.set("c/new", map(("n", .integer(77))))])
            try forgetRecent(database)
            var readSet = ReadSet()
            readSet.insert(.document(DocumentKey.encode(resource("c/a").path)))
            var query = Query(
                parent: ResourceName(database: testDatabaseName, path: ResourcePath([])), scope: .collection("c"))
            query.filter = .field(FieldPath("n"), .greaterThan, .integer(1000))
            readSet.insert(.query(QueryMatcher(try NormalizedQuery(query))))
            let meter = WorkMeter()
            #expect(try !isTouched(readSet, since: since, in: database, .short, meter))
            #expect(meter.documentsRead == 2)
            #expect(meter.entriesScanned <= 4)
        }
    }

    /// Documents beyond the bound count as changed, on an event loop and on the writer's thread.
    @Test func readsBeyondTheBoundsCountAsChanges() throws {
        let since = try database.view().version
        try database.commit([set("c/a", 5), set("c/b", 5)])
        try forgetRecent(database)
        var readSet = ReadSet()
        readSet.insert(.document(DocumentKey.encode(resource("d/a").path)))
        readSet.insert(.document(DocumentKey.encode(resource("d/b").path)))
        #expect(try !isTouched(readSet, since: since, in: database))
        let few = CommitPipeline.ValidationBounds(documentsMax: 1, keysBytesMax: 100)
        #expect(try isTouched(readSet, since: since, in: database, few))
        var query = Query(
            parent: ResourceName(database: testDatabaseName, path: ResourcePath([])), scope: .collection("c"))
        query.filter = .field(FieldPath("n"), .greaterThan, .integer(1000))
        var queries = ReadSet()
        queries.insert(.query(QueryMatcher(try NormalizedQuery(query))))
        #expect(try !isTouched(queries, since: since, in: database))
        #expect(try isTouched(queries, since: since, in: database, few))
    }

    /// Such a commit is validated on the preparer's thread, and succeeds or fails like any other.
    @Test func anOldTransactionCommitsWhenItsReadsAreUnchanged() throws {
        for isChanged in [false, true] {
            let database = try Self.open(clock)
            defer { database.close() }
            let transaction = try database.beginTransaction()
            _ = try database.fields("c/a", in: transaction)
            // Its lock on the document has expired, so that others may write it.
            clock.advance(seconds: 6)
            database.tick()
            if isChanged {
                let other = database.submit([set("c/a", 50)])
                database.drain()
                database.tick()
                _ = try other.wait().get()
            }
            let string = String(repeating: "x", count: 900_000)
            for number in 0..<20 { try database.commit([.set("large/\(number)", map(("body", .string(string))))]) }
            #expect(!database.recent.reaches(try database.view().version - 20))
            let result = database.submit([set("c/b", 7)], in: transaction).wait()
            switch result {
            case .success: #expect(!isChanged)
            case .failure(let status): #expect(isChanged && status.code == .aborted)
            }
        }
    }
}
