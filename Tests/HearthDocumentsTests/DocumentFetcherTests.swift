import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// Documents are found whether or not they are stored in the order of the requests.
struct DocumentFetcherTests {
    @Test(arguments: [false, true]) func findsEveryDocumentInAnyOrder(reverse: Bool) throws {
        let database = try Database(name: testDatabaseName, store: MemoryStore(), clock: StoppedClock())
        defer { database.close() }
        let paths = (0..<200).map { "c/\(1000 + $0)" }
        try database.commit(paths.map { .set($0, map(("p", .string($0)))) })
        let snapshot = try database.store.snapshot()
        defer { snapshot.close() }
        let seed = TestRun.seed()
        var random = SeededGenerator(seed: seed)
        for order in [paths, paths.reversed(), paths.shuffled(using: &random), paths + paths] {
            let fetcher = DocumentFetcher(snapshot, reverse: reverse)
            for (index, path) in order.enumerated() {
                let document = try fetcher.document(DocumentKey.encode(resource(path).path))
                #expect(
                    try document.map { document throws(Status) in try FieldsCodec.decode(document.fields) }
                        == map(("p", .string(path))), "seed \(seed)")
                // Now and then a missing one, within the run and before and after all.
                if index % 7 == 3 {
                    #expect(try fetcher.document(DocumentKey.encode(resource(path + "x").path)) == nil)
                    #expect(try fetcher.document(DocumentKey.encode(resource("a/a").path)) == nil)
                    #expect(try fetcher.document(DocumentKey.encode(resource("z/z").path)) == nil)
                }
            }
        }
    }
}
