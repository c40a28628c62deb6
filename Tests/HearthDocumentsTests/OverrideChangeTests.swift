import HearthModel
import HearthTestDoubles
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// Overrides change a few documents at a time, beside other operations.
@Suite struct OverrideChangeTests {
    let clock = StoppedClock()
    let store = FaultyStore()
    let database: Database

    init() throws {
        database = try Database(name: testDatabaseName, store: store, clock: clock)
    }

    private static let exempt = FieldOverride(collectionID: "c", path: FieldPath("a"), indexes: [])
    private static let ascending = FieldOverride(
        collectionID: "c", path: FieldPath("a"), indexes: [.init(scope: .collection, kind: .ascending)])

    private func fill(_ count: Int) throws {
        for number in 0..<count {
            try database.commit([
                .set(
                    "c/\(number)", map(("a", .array([.integer(Int64(number)), .null])), ("b", .integer(Int64(number)))))
            ])
        }
    }

    private func entries() throws -> Int {
        let view = try database.view()
        return try view.snapshot.count(.entries, KeyRange(lower: [], upper: nil), limit: .max)
    }

    private func query(_ least: Int64) throws -> NormalizedQuery {
        try NormalizedQuery(
            Query(
                parent: ResourceName(database: testDatabaseName, path: ResourcePath()), scope: .collection("c"),
                filter: .field(FieldPath("a"), .arrayContains, .integer(least))))
    }

    @Test func manyDocumentsAreVisitedInSlices() throws {
        try fill(1200)
        let before = try entries()
        try database.setCatalog([], [Self.exempt])
        #expect(database.catalog.changes.isEmpty)
        #expect(try entries() == before - 3 * 1200)
        #expect(try IntegrityCheck.run(database).isSound)
        try database.setCatalog([], [])
        #expect(try entries() == before)
        #expect(try IntegrityCheck.run(database).isSound)
    }

    private static let definition = IndexDefinition(
        id: 0, collectionID: "c", scope: .collection,
        fields: [
            IndexField(path: FieldPath("b"), kind: .ascending), IndexField(path: FieldPath("a"), kind: .contains),
        ],
        nameDescending: false)

    /// The entries of a removed index are deleted in slices, also after a restart; meanwhile they belong to no
    /// document.
    @Test func aRemovedIndexIsDeletedInSlices() throws {
        try fill(1500)
        let before = try entries()
        try database.setCatalog([Self.definition])
        #expect(try entries() == before + 2 * 1500)
        // A document is visited as a whole.
        #expect(store.changesMax.load(ordering: .relaxed) < IndexBuilder.stepEntriesMax + 10)
        var operation = 0
        var leftOver = 0
        while true {
            store.fail(at: operation)
            let status = statusOf { () throws(Status) in try database.setCatalog([]) }
            store.fail(at: nil)
            #expect(try IntegrityCheck.run(database).isSound, "operation \(operation)")
            if !database.catalog.removed.isEmpty { leftOver += 1 }
            if status == nil { break }
            // The index may be requested again while the last one is being deleted; it has entries of its own.
            try database.setCatalog([Self.definition])
            #expect(database.catalog.removed.isEmpty)
            #expect(try entries() == before + 2 * 1500)
            #expect(try IntegrityCheck.run(database).isSound, "operation \(operation)")
            operation += 1
        }
        #expect(leftOver > 0)
        #expect(try entries() == before)
        #expect(store.changesMax.load(ordering: .relaxed) < IndexBuilder.stepEntriesMax + 10)
    }

    /// A failure anywhere leaves a store in which queries find everything, and a reopened database continues.
    @Test func anInterruptedChangeIsContinued() throws {
        try fill(30)
        var operation = 0
        while true {
            store.fail(at: operation)
            let status = statusOf { () throws(Status) in
                try database.setCatalog([], operation.isMultiple(of: 2) ? [Self.exempt] : [Self.ascending])
            }
            store.fail(at: nil)
            #expect(try IntegrityCheck.run(database).isSound, "operation \(operation)")
            #expect(try database.view().results(try query(7)).count == 1, "operation \(operation)")
            try database.commit([.set("c/7", map(("a", .array([.integer(7), .integer(Int64(operation))]))))])
            #expect(try IntegrityCheck.run(database).isSound, "operation \(operation)")
            let reopened = try Database(name: testDatabaseName, store: store, clock: clock)
            reopened.drain()
            #expect(try IntegrityCheck.run(reopened).isSound, "operation \(operation)")
            #expect(reopened.catalog.changes.isEmpty, "operation \(operation)")
            if status == nil { break }
            let promise = Promise<Result<Void, Status>>()
            IndexBuilder(database: database, pipeline: database.pipeline).finishChanges { promise.give($0) }
            _ = promise.wait()
            operation += 37
        }
        #expect(operation > 37)
    }

    /// Writes continue meanwhile, and others change the overrides again.
    @Test func changesMeetWritesAndEachOther() throws {
        try fill(1100)
        let seed = TestRun.seed()
        var random = SeededGenerator(seed: seed)
        var changes: [Promise<Result<Void, Status>>] = []
        let choices = [[Self.exempt], [Self.ascending], []]
        for round in 0..<40 {
            if round.isMultiple(of: 8) {
                let promise = Promise<Result<Void, Status>>()
                database.setCatalog(definitions: [], overrides: random.pick(choices)) { promise.give($0) }
                changes.append(promise)
            }
            let number = Int64(random.below(1100))
            try database.commit([.set("c/\(number)", map(("a", .array([.integer(number), .integer(-1)]))))])
            #expect(try database.view().results(try query(number)).count == 1, "seed \(seed)")
        }
        for promise in changes { _ = try promise.wait().get() }
        database.drain()
        #expect(database.catalog.changes.isEmpty, "seed \(seed)")
        #expect(try IntegrityCheck.run(database).isSound, "seed \(seed)")
    }
}
