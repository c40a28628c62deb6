import HearthModel
import HearthTestSupport
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// The work of queries grows with the collection as it must, and not faster.
@Suite struct QueryGrowthTests {
    /// IN with an order for which there is no composite index: the order's index is scanned once for all alternatives.
    @Test func alternativesShareAScan() throws {
        let database = try Database(name: testDatabaseName, store: MemoryStore(), clock: StoppedClock())
        defer { database.close() }
        var number = 0
        for count in [1000, 3000] {
            while number < count {
                let writes = (0..<100).map { offset in
                    let value = Int64(number + offset)
                    return Write.set("c/d\(value)", map(("a", .integer(value % 2)), ("b", .integer(-value))))
                }
                try database.commit(writes)
                number += 100
            }
            let parent = ResourceName(database: testDatabaseName, path: ResourcePath([]))
            var query = Query(parent: parent, scope: .collection("c"))
            // Of two of the alternatives there are more documents than the planner counts, in the larger collection.
            query.filter = .field(FieldPath("a"), .in, .array([.integer(0), .integer(1), .string("x")]))
            query.orders = [Query.Order(field: FieldPath("b"), descending: false)]
            query.offset = count - 10
            query.limit = 20
            let meter = WorkMeter()
            let execution = try QueryExecution(try NormalizedQuery(query), view: try database.view(), meter: meter)
            var results: [String] = []
            while let result = try execution.next() { results.append(DocumentKey.decode(result.key)?.string ?? "?") }
            #expect(results == (0..<10).reversed().map { "c/d\($0)" })
            // Each entry and each document once, whether by a scan or by a join and a sort; some documents are read
            // again when they are sent.
            #expect(meter.documentsRead <= count + 20 && meter.entriesScanned <= count + 20, "\(meter.documentsRead)")
        }
    }
}
