import HearthModel
import HearthTestDoubles
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// The cost of a change of the index catalog for other operations.
@Suite struct CatalogGrowthTests {
    private static func definition(_ number: Int) -> IndexDefinition {
        IndexDefinition(
            id: 0, collectionID: "c\(number % 7)", scope: .collection,
            fields: [
                IndexField(path: FieldPath("f\(number)"), kind: .ascending),
                IndexField(path: FieldPath("g"), kind: .descending),
            ], nameDescending: false)
    }

    /// One more definition besides n, 10n and 100n: the same number of the writer's operations, which decode nothing;
    /// the catalog itself is written whole, in a bounded number of bytes per definition.
    @Test func oneMoreIndexTakesTheSameSteps() throws {
        let store = FaultyStore()
        let database = try Database(name: testDatabaseName, store: store, clock: StoppedClock())
        var operations: [Int] = []
        for count in [9, 90, 900] {
            let epoch = database.currentCatalog.epoch
            try database.setCatalog((0..<count).map(Self.definition))
            // Of many at once some hundred share a transaction. Each change begins and ends.
            #expect((database.currentCatalog.epoch - epoch) / 2 <= 2 + count / 400)
            store.fail(at: nil)
            try database.setCatalog((0...count).map(Self.definition))
            operations.append(store.operations)
            let catalog = database.catalog
            #expect(catalog.definitions.count == count + 1 && catalog.nextID > catalog.definitions[count].id)
            #expect(CatalogStore.encode(catalog).count < 200 * (count + 2))
        }
        #expect(operations[0] < 20)
        #expect(operations[1] == operations[0] && operations[2] == operations[0])
        #expect(database.currentCatalog.loads == 0)
        // Ids are never reused, also after a restart.
        let next = database.catalog.nextID
        let epoch = database.currentCatalog.epoch
        try database.setCatalog([])
        #expect((database.currentCatalog.epoch - epoch) / 2 <= 4)
        let again = try Database(name: testDatabaseName, store: store, clock: StoppedClock(microseconds: 1 << 40))
        try again.setCatalog([Self.definition(1)])
        #expect(again.catalog.definitions.map(\.id) == [next])
        #expect(again.catalog.nextID == next + 1)
        again.close()
        database.close()
    }

    /// Readers have the catalog of their snapshot without decoding it, while another one is made durable.
    @Test func readersDecodeNothingWhileTheCatalogChanges() throws {
        let store = MemoryStore()
        func catalog(_ count: Int) -> IndexCatalog {
            IndexCatalog(
                definitions: (0..<count).map { number in
                    var definition = Self.definition(number)
                    definition.id = UInt32(number)
                    return definition
                }, overrides: [], changes: [], removed: [], nextID: UInt32(count))
        }
        func write(_ catalog: IndexCatalog) throws {
            try store.write { transaction throws(Status) in
                try transaction.put(.meta, CatalogStore.key, CatalogStore.encode(catalog))
            }
        }
        func seen(_ current: CurrentCatalog) throws -> IndexCatalog {
            let (snapshot, catalog) = try current.snapshot(of: store)
            defer { snapshot.close() }
            #expect(try CatalogStore.load(from: snapshot) == catalog)
            return catalog
        }
        let current = CurrentCatalog(IndexCatalog())
        #expect(try seen(current) == IndexCatalog())
        for count in [1, 10, 100, 1000] {
            let before = current.value
            let after = catalog(count)
            current.beginChange(to: after, CatalogStore.encode(after))
            #expect(try seen(current) == before)
            try write(after)
            #expect(try seen(current) == after)
            current.endChange(after)
            #expect(try seen(current) == after)
        }
        // A change without effect.
        let before = current.value
        current.beginChange(to: catalog(5), CatalogStore.encode(catalog(5)))
        #expect(try seen(current) == before)
        current.endChange(nil)
        #expect(try seen(current) == before)
        #expect(current.loads == 0)
    }
}
