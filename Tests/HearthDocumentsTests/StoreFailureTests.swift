import HearthModel
import HearthTestDoubles
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// The store fails at every single operation of a group of commits, and of everything else that writes.
@Suite struct StoreFailureTests {
    let clock = StoppedClock()
    let store = FaultyStore()
    let database: Database

    init() throws {
        database = try Database(name: testDatabaseName, store: store, clock: clock)
        try database.setCatalog([
            IndexDefinition(
                id: 0, collectionID: "c", scope: .collection,
                fields: [
                    IndexField(path: FieldPath("a"), kind: .ascending),
                    IndexField(path: FieldPath("b"), kind: .descending),
                ],
                nameDescending: true)
        ])
        try database.commit([.set("c/old", map(("a", .integer(1)), ("b", .array([.integer(1), .integer(2)]))))])
        try database.commit([.set("c/gone", map())])
        try database.commit([.delete("c/gone")])
    }

    /// Everything that is stored, by keyspace.
    private func contents() throws -> [[[UInt8]: [UInt8]]] {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        return try Keyspace.allCases.map { keyspace in
            var all: [[UInt8]: [UInt8]] = [:]
            let cursor = try snapshot.scan(keyspace, KeyRange(lower: [], upper: nil), reverse: false, values: true)
            while try cursor.next() { all[cursor.key] = cursor.value }
            return all
        }
    }

    /// Runs three commits that share a group.
    private func commitGroup() -> [Result<CommitOutcome, Status>] {
        store.hold()
        // The first is taken alone and waits at the gate; the others gather behind it.
        let first = database.submit([.set("c/first", map(("a", .integer(1)), ("b", .integer(2))))])
        let rest = [
            database.submit([
                .set("c/old", map(("a", .integer(2)))), .delete("c/none"), .set("c/gone", map(("b", .null))),
            ]),
            database.submit([.set("c/none", map(), .exists(true))]),
            database.submit([.delete("c/old"), .set("c/d/c/x", map(("b", .null)))].dropLast() + [.set("c/d", map())]),
        ]
        store.release()
        return [first.wait()] + rest.map { $0.wait() }
    }

    /// They are prepared on a snapshot, this many ahead of it.
    @Test(.timeLimit(.minutes(Patience.minutes))) func largeCommitsContinueAfterTransactionsThatCouldNotBegin() throws {
        let writes = (0..<Limits.commitsPreparedMax * 200).map { Write.set("c/large\($0)", map()) }
        for _ in 0...Limits.commitsPreparedMax {
            store.refuse(transactions: 1)
            #expect(throws: Status.unavailable("The disk is full.")) { try database.commit(writes) }
        }
        try database.commit(writes)
    }

    @Test(arguments: [
        Status.unavailable("The disk is full."), .internalError("A bug."), Status(.dataLoss, "A bad page."),
    ])
    func nothingIsHalfApplied(_ status: Status) throws {
        store.fail(at: nil)
        var failures = 0
        var operation = 0
        while true {
            let before = try contents()
            let version = try database.view().version
            store.fail(at: operation, with: status)
            let outcome = database.submit([
                .set("c/new\(operation)", map(("a", .integer(1)), ("b", .array([.integer(1)])))),
                .set("c/old", map(("a", .integer(Int64(operation))))), .delete("c/none"),
            ]).wait()
            guard case .failure(let failure) = outcome else { break }
            failures += 1
            // A failure during a read may concern this commit alone, and keeps its code.
            #expect(failure == status || failure.code == .unavailable, "operation \(operation)")
            #expect(try contents() == before, "operation \(operation)")
            #expect(try database.view().version == version)
            store.fail(at: nil)
            try database.commit([.set("c/next", map(("n", .integer(Int64(operation)))))])
            #expect(try database.fields("c/next") == map(("n", .integer(Int64(operation)))))
            operation += 1
        }
        #expect(failures > 10)
        #expect(try IntegrityCheck.run(database).isSound)
    }

    @Test func allOfAGroupAreAnswered() throws {
        var operation = 0
        var results: [Result<CommitOutcome, Status>] = []
        repeat {
            let before = try contents()
            store.fail(at: operation)
            results = commitGroup()
            #expect(results.count == 4)
            let failed = results.filter {
                if case .failure(let status) = $0 { status.code == .unavailable } else { false }
            }
            if failed.count == 4 { #expect(try contents() == before) }
            #expect(try IntegrityCheck.run(database).isSound, "operation \(operation)")
            store.fail(at: nil)
            try database.commit([
                .delete("c/first"), .delete("c/d"), .delete("c/gone"), .set("c/old", map(("a", .integer(1)))),
            ])
            operation += 1
        } while operation < 120
        // The last group had no fault: one commit failed for its precondition, the others succeeded.
        store.fail(at: nil)
        results = commitGroup()
        #expect(results.map { if case .success = $0 { true } else { false } } == [true, true, false, true])
    }

    @Test func indexChangesHappenWholeOrNotAtAll() throws {
        let added = IndexDefinition(
            id: 0, collectionID: "c", scope: .collectionGroup,
            fields: [IndexField(path: FieldPath("a"), kind: .ascending)],
            nameDescending: false)
        let exempt = FieldOverride(collectionID: "c", path: FieldPath("b"), indexes: [])
        var operation = 0
        while true {
            let before = database.catalog
            let stored = try contents()
            store.fail(at: operation)
            let status = statusOf { () throws(Status) in try database.setCatalog([added], [exempt]) }
            store.fail(at: nil)
            #expect(try IntegrityCheck.run(database).isSound, "operation \(operation)")
            let view = try database.view()
            #expect(try CatalogStore.load(from: view.snapshot) == database.catalog, "operation \(operation)")
            if status == nil { break }
            #expect(status?.code == .unavailable)
            // Either nothing has happened, or the new definition waits to be built.
            if database.catalog == before { #expect(try contents() == stored) }
            try database.commit([.set("c/old", map(("a", .integer(Int64(operation))), ("b", .integer(1))))])
            #expect(try IntegrityCheck.run(database).isSound, "operation \(operation)")
            try database.setCatalog(before.ownDefinitions, before.overrides)
            operation += 1
        }
        #expect(operation > 10)
        #expect(database.catalog.definitions.map(\.state) == [.ready])
    }

    @Test func clearingAndForgettingHappenWholeOrNotAtAll() throws {
        clock.advance(seconds: 4000)
        for operation in 0..<30 {
            let before = try contents()
            store.fail(at: operation)
            let status = statusOf { () throws(Status) in try database.collectAllGarbage() }
            store.fail(at: nil)
            #expect(try IntegrityCheck.run(database).isSound, "operation \(operation)")
            if status == nil { break }
            #expect(try contents() == before)
        }
        try database.commit([.set("c/old", map(("a", .integer(7))))])
        for operation in 0..<30 {
            let before = try contents()
            let time = try database.view().readTime
            store.fail(at: operation)
            let status = statusOf { () throws(Status) in try database.clear() }
            store.fail(at: nil)
            #expect(try IntegrityCheck.run(database).isSound, "operation \(operation)")
            if status == nil { break }
            #expect(try contents() == before)
            // The history is still there.
            #expect(try database.view(.readTime(time)).document(resource("c/old").path) != nil)
        }
        #expect(try database.fields("c/old") == nil)
    }
}
