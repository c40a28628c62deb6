import HearthModel
import HearthWire

/// The requests that the workloads send.
struct BenchRequests: Sendable {
    static let service = "/google.firestore.v1.Firestore/"
    static let project = "bench"

    let database = "projects/\(project)/databases/(default)"
    /// With the indexed fields, a document of about 500 bytes.
    private let payload = String(repeating: "0123456789abcdef", count: 25)

    private var root: String { database + "/documents" }

    func name(_ collection: String, _ number: Int) -> String { "\(root)/\(collection)/d\(number)" }

    /// Of a document, over REST.
    func path(_ collection: String, _ number: Int) -> String { "/v1/" + name(collection, number) }

    /// - Parameter fields: random numbers of nine bytes, so that all documents have the same size.
    private func document(_ collection: String, _ number: Int, _ fields: [(String, Int64)]) -> DocumentMessage {
        var map = fields.map { MapValue.Field(name: $0.0, value: .integer($0.1)) }
        map.append(.init(name: "payload", value: .string(payload)))
        return DocumentMessage(name: name(collection, number), fields: MapValue(map))
    }

    static func value(_ random: inout SeededRandom) -> Int64 { Int64(random.next() >> 4 | 1 << 58) }

    /// Fields that a commit of all fields sets, beside the payload.
    static let changedFields = 5
    /// Fields of a document of which a commit sets one.
    static let indexedFields = 6

    /// A commit that sets all of a document, or one of its indexed fields.
    func commit(
        _ collection: String, documents: Int, _ fields: Workload.CommitFields, _ random: inout SeededRandom
    ) -> [UInt8] {
        let number = Int.random(in: 0..<documents, using: &random)
        let field = fields == .one ? Int.random(in: 0..<Self.indexedFields, using: &random) : 0
        let values = (0..<(fields == .one ? 1 : Self.changedFields)).map { _ in Self.value(&random) }
        return commit(collection, number, fields, field: field, values)
    }

    /// - Parameter field: the one that is set, unless all are.
    func commit(
        _ collection: String, _ number: Int, _ fields: Workload.CommitFields, field: Int, _ values: [Int64]
    ) -> [UInt8] {
        var write: WriteMessage
        switch fields {
        case .all:
            write = WriteMessage(
                update: document(collection, number, values.enumerated().map { ("f\($0.offset)", $0.element) }))
        case .one:
            let map = MapValue(values.map { .init(name: "f\(field)", value: .integer($0)) })
            write = WriteMessage(update: DocumentMessage(name: name(collection, number), fields: map))
            write.updateMask = DocumentMaskMessage(fieldPaths: ["f\(field)"])
        }
        return CommitRequest(database: database, writes: [write]).protobuf()
    }

    /// A part of a collection: `n` counts the documents, `g` is the same for a hundred of them.
    func batch(_ collection: String, _ numbers: Range<Int>, _ random: inout SeededRandom) -> [UInt8] {
        let writes = numbers.map { number in
            let values =
                [("n", Int64(number)), ("g", Int64(number / 100))] + (0..<3).map { ("f\($0)", Self.value(&random)) }
            return WriteMessage(update: document(collection, number, values))
        }
        return BatchWriteRequest(database: database, writes: writes).protobuf()
    }

    /// The same of documents with six indexed fields.
    func batchOfSix(_ collection: String, _ numbers: Range<Int>, _ random: inout SeededRandom) -> [UInt8] {
        let writes = numbers.map { number in
            let values = (0..<Self.indexedFields).map { ("f\($0)", Self.value(&random)) }
            return WriteMessage(update: document(collection, number, values))
        }
        return BatchWriteRequest(database: database, writes: writes).protobuf()
    }

    func get(_ collection: String, documents: Int, _ random: inout SeededRandom) -> [UInt8] {
        GetDocumentRequest(name: name(collection, Int.random(in: 0..<documents, using: &random))).protobuf()
    }

    /// Connections of `get-rest`, each with one request at a time.
    static let restConnections = 128

    /// A whole request of HTTP/1.1.
    func restGet(_ collection: String, _ number: Int) -> [UInt8] {
        Array(
            "GET \(path(collection, number)) HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer owner\r\n\r\n".utf8)
    }

    /// Documents that a query asks for and that match.
    static let queriedDocuments = 100

    /// Asks for a hundred documents.
    func query(
        _ collection: String, documents: Int, _ shape: Workload.QueryShape, _ random: inout SeededRandom
    ) -> [UInt8] {
        let filter: (field: String, op: StructuredQueryMessage.FieldFilter.Operator, value: Int)
        switch shape {
        case .range: filter = ("n", .greaterThanOrEqual, Int.random(in: 0...documents - 100, using: &random))
        case .equality: filter = ("g", .equal, Int.random(in: 0..<documents / 100, using: &random))
        }
        var query = StructuredQueryMessage()
        query.from = [.init(collectionId: collection)]
        query.`where` = .init(
            fieldFilter: .init(
                field: .init(fieldPath: filter.field), op: filter.op, value: .integer(Int64(filter.value))))
        query.limit = Int32(Self.queriedDocuments)
        return RunQueryRequest(parent: root, structuredQuery: query).protobuf()
    }

    func count(_ collection: String) throws(Status) -> [UInt8] {
        let json = """
            {"parent": "\(root)", "structuredAggregationQuery": {"structuredQuery": {"from": [{"collectionId": "\(collection)"}]},
             "aggregations": [{"alias": "n", "count": {}}]}}
            """
        return try RunAggregationQueryRequest(json: json).protobuf()
    }

    /// The number in the answers to `count`; nil without one.
    static func counted(_ answers: [[UInt8]]) -> Int? {
        for answer in answers {
            do throws(Status) {
                let fields = try RunAggregationQueryResponse(protobuf: answer).result?.aggregateFields
                if case .integer(let count) = fields?["n"] { return Int(count) }
            } catch { return nil }
        }
        return nil
    }
}
