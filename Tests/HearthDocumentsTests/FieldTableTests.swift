import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// Fields of one document that many queries read.
@Suite struct FieldTableTests {
    @Test func findsWhatAReaderFinds() throws {
        var random = SeededGenerator(seed: TestRun.seed())
        for _ in 0..<(200 * TestRun.effort) {
            var values = ValueMaker(SeededGenerator(seed: random.next()))
            let fields = values.map(depth: 3)
            let document = StoredDocument(createVersion: 1, updateVersion: 1, fields: FieldsCodec.encode(fields))
            let table = FieldTable(document)
            let reader = FieldsReader(document.fields)
            let names = fields.fields.map(\.name) + ["a", "b", "zz"]
            for _ in 0..<20 {
                let segments = (0..<(1 + random.below(3))).map { _ in names[random.below(names.count)] }
                let path = FieldPath(segments: segments)
                #expect(try table.value(at: path) == reader.value(at: path))
                #expect(try table.typeClass(at: path) == reader.typeClass(at: path))
                #expect(try table.contains(path) == (reader.locate(path) != nil))
            }
        }
    }

    /// However many queries read a document, and whatever fields.
    @Test(arguments: [10, 100, 1000]) func walksADocumentOnce(queries: Int) throws {
        let size = 5000
        let fields = MapValue(
            (0..<size).map { MapValue.Field(name: "f\($0)", value: .integer(Int64($0))) }
                + [MapValue.Field(name: "m", value: .map(map(("x", .integer(1)), ("y", .integer(2)))))])
        let document = StoredDocument(createVersion: 1, updateVersion: 1, fields: FieldsCodec.encode(fields))
        let table = FieldTable(document)
        var matching = 0
        for number in 0..<queries {
            var query = Query(parent: resource(""), scope: .collection("c"))
            let path = number % 3 == 0 ? FieldPath(segments: ["m", "y"]) : FieldPath("f\(size - 1 - number)")
            query.filter = .field(path, .greaterThan, .integer(1))
            let live = LiveQuery(try NormalizedQuery(query))
            if try live.matches(table, key: DocumentKey.encode(resource("c/d").path)) { matching += 1 }
        }
        #expect(matching == queries)
        #expect(table.entriesRead <= size + 1 + 2)
    }
}
