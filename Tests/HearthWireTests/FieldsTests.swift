import HearthModel
import HearthWire
import Testing

@Suite struct FieldsTests {
    private let fields = MapValue([
        .init(name: "a", value: .integer(1)),
        .init(
            name: "m",
            value: .map(
                MapValue([
                    .init(
                        name: "n",
                        value: .map(
                            MapValue([.init(name: "x", value: .string("deep")), .init(name: "y", value: .null)]))),
                    .init(name: "o", value: .double(.nan)), .init(name: "a.b", value: .boolean(true)),
                ]))),
        .init(name: "v", value: .vector([1, 2])), .init(name: "l", value: .array([.integer(1)])),
        .init(name: "e", value: .map(MapValue())),
    ])

    @Test func valuesAreFoundByPath() throws {
        let reader = FieldsReader(FieldsCodec.encode(fields))
        for path in ["a", "m", "m.n", "m.n.x", "m.n.y", "m.o", "m.`a.b`", "v", "l", "e"] {
            let path = try FieldPath(parsing: path)
            let value = try #require(fields[path: path])
            #expect(try reader.value(at: path) == value)
            #expect(try reader.typeClass(at: path) == ValueOrder.typeClass(of: value))
            let range = try #require(try reader.locate(path))
            #expect(try reader.value(range) == value)
        }
        for path in ["b", "A", "z", "a.b", "m.x", "m.n.z", "v.value", "v.`__typ`", "l.`0`", "e.x", "m.n.x.y"] {
            let path = try FieldPath(parsing: path)
            #expect(try reader.value(at: path) == nil)
            #expect(try reader.typeClass(at: path) == nil)
        }
        #expect(try reader.value(at: FieldPath(segments: ["v", "__type__"])) == nil)
    }

    @Test func entriesComeInOrder() throws {
        let reader = FieldsReader(FieldsCodec.encode(fields))
        let entries = try reader.entries()
        #expect(try entries.map { try reader.string($0.name) } == ["a", "e", "l", "m", "v"])
        #expect(try entries.map { try reader.value($0.value) } == fields.fields.map(\.value))
    }

    @Test(
        arguments: [
            (["a"], #"{"a":{"integerValue":"1"}}"#), ([], "{}"),
            (["z", "m.z", "a.b", "v.value", "l.`0`", "e.x"], "{}"),
            (["m.n.x"], #"{"m":{"mapValue":{"fields":{"n":{"mapValue":{"fields":{"x":{"stringValue":"deep"}}}}}}}}"#),
            (
                ["m.n.y", "m.o", "a"],
                #"{"a":{"integerValue":"1"},"m":{"mapValue":{"fields":{"n":{"mapValue":{"fields":{"y":{"nullValue":null}}}},"o":{"doubleValue":"NaN"}}}}}"#
            ),
            (
                ["m.n.x", "m.n", "m.n.y"],
                #"{"m":{"mapValue":{"fields":{"n":{"mapValue":{"fields":{"x":{"stringValue":"deep"},"y":{"nullValue":null}}}}}}}}"#
            ),
            (["m.`a.b`", "e"], #"{"e":{"mapValue":{}},"m":{"mapValue":{"fields":{"a.b":{"booleanValue":true}}}}}"#),
            (
                ["v", "v.value"],
                #"{"v":{"mapValue":{"fields":{"__type__":{"stringValue":"__vector__"},"value":{"arrayValue":{"values":[{"doubleValue":1.0},{"doubleValue":2.0}]}}}}}}"#
            ),
        ] as [([String], String)])
    func projectionsKeepWhatTheyName(_ paths: [String], _ expected: String) throws {
        let projected = try FieldsCodec.project(
            FieldsCodec.encode(fields), paths: paths.map { try FieldPath(parsing: $0) })
        var writer = JSONWriter()
        try writer.fields(encoded: projected)
        #expect(string(writer.bytes) == expected)
        // The result is canonical again.
        #expect(try FieldsCodec.encode(FieldsCodec.decode(projected)) == projected)
    }

    @Test(arguments: [11, 12, 13] as [UInt64])
    func projectionsAgreeWithTheTree(_ seed: UInt64) throws {
        var generator = ValueGenerator(seed: seed)
        for _ in 0..<300 {
            let fields = generator.map()
            let paths = (0..<3).map { _ in
                FieldPath(segments: (0..<Int.random(in: 1...3, using: &generator.random)).map { _ in generator.name() })
            }
            var expected = MapValue()
            for path in paths.sorted() { if let value = fields[path: path] { expected.set(path, value) } }
            let projected = try FieldsCodec.project(FieldsCodec.encode(fields), paths: paths)
            #expect(try FieldsCodec.decode(projected) == expected, "seed \(seed), \(paths)")
        }
    }

    /// A mask of many paths costs a document only O(its own fields).
    @Test(arguments: [10, 1000, 100_000]) func aFieldIsFoundAmongManyPathsInGrowingSteps(count: Int) {
        for wanted in [0, 1, 7, count / 2, count - 1, count] {
            for start in [0, wanted / 2, wanted] {
                var visited = 0
                let found = Projection.firstIndex(from: start, count: count) {
                    visited += 1
                    return $0 < wanted
                }
                #expect(found == wanted)
                #expect(visited <= 2 * (Int.bitWidth - count.leadingZeroBitCount) + 2)
            }
        }
    }

    @Test func damagedFieldsAreDataLoss() {
        let damaged: [UInt8] = [0x12, 200, 1, 0x0a]
        do throws(Status) {
            _ = try FieldsCodec.decode(damaged)
            Issue.record("accepted")
        } catch {
            #expect(error.code == .dataLoss)
        }
        do throws(Status) {
            _ = try FieldsReader(damaged).value(at: FieldPath("a"))
            Issue.record("accepted")
        } catch {
            #expect(error.code == .dataLoss)
        }
    }

    // MARK: Responses

    private var document: EncodedDocument {
        EncodedDocument(
            Document(
                name: "projects/p/databases/d/documents/c/x", fields: fields,
                createTime: Timestamp(microseconds: 1_700_000_000_000_001),
                updateTime: Timestamp(microseconds: 1_700_000_001_000_000)))
    }

    private func message(_ document: EncodedDocument) throws -> DocumentMessage {
        DocumentMessage(try document.document())
    }

    @Test func splicedAnswersEqualEncodedMessages() throws {
        let time = Timestamp(microseconds: 1_700_000_002_000_003)
        let readTime = TimestampMessage(time)
        let empty = EncodedDocument(name: "n")
        let metrics = ExplainMetricsMessage(executionStats: ExecutionStatsMessage(resultsReturned: 1))
        for document in [document, empty] {
            let message = try message(document)
            var both = Both()
            var nameless = document
            nameless.name = ""
            both.binary.runQueryResponse(
                nameless, name: Array(document.name.utf8), readTime: time, explainMetrics: metrics)
            try both.json.runQueryResponse(document, readTime: time, explainMetrics: metrics)
            both.expect(RunQueryResponse(document: message, readTime: readTime, explainMetrics: metrics))
            both.binary.batchGetDocumentsResponse(found: document, readTime: time)
            try both.json.batchGetDocumentsResponse(found: document, readTime: time)
            both.expect(BatchGetDocumentsResponse(found: message, readTime: readTime))
            both.binary.documentChangeResponse(document, targetIDs: [1, 300], removedTargetIDs: [-1])
            try both.json.documentChangeResponse(document, targetIDs: [1, 300], removedTargetIDs: [-1])
            both.expect(
                ListenResponse(
                    documentChange: DocumentChangeMessage(
                        document: message, targetIds: [1, 300], removedTargetIds: [-1])))
            both.binary.listDocumentsResponse([document, document], nextPageToken: "t")
            try both.json.listDocumentsResponse([document, document], nextPageToken: "t")
            both.expect(ListDocumentsResponse(documents: [message, message], nextPageToken: "t"))
            #expect(document.protobuf() == message.protobuf())
            #expect(try document.json() == message.json())
        }
        var both = Both()
        both.binary.listDocumentsResponse([])
        try both.json.listDocumentsResponse([])
        both.expect(ListDocumentsResponse())
        both.binary.batchGetDocumentsResponse(missing: "n", readTime: time, transaction: [9])
        both.json.batchGetDocumentsResponse(missing: "n", readTime: time, transaction: [9])
        both.expect(BatchGetDocumentsResponse(missing: "n", transaction: [9], readTime: readTime))
    }

    @Test func writeAnswersEqualEncodedMessages() {
        let time = Timestamp(microseconds: -1)
        let results = [WriteResult(updateTime: time, transformResults: [.null, .integer(5)]), WriteResult()]
        let messages = results.map { WriteResultMessage($0) }
        var both = Both()
        both.binary.commitResponse(results, commitTime: time)
        both.json.commitResponse(results, commitTime: time)
        both.expect(CommitResponse(writeResults: messages, commitTime: TimestampMessage(time)))
        both.binary.writeResponse(streamID: "s", streamToken: [1], results: results, commitTime: time)
        both.json.writeResponse(streamID: "s", streamToken: [1], results: results, commitTime: time)
        both.expect(
            WriteResponse(streamId: "s", streamToken: [1], writeResults: messages, commitTime: TimestampMessage(time)))
        both.binary.writeResponse(streamToken: [2])
        both.json.writeResponse(streamToken: [2])
        both.expect(WriteResponse(streamToken: [2]))
    }

    /// A response in both forms. It must equal a message, member by member: the order of JSON members may differ.
    private struct Both {
        var binary = ProtobufWriter()
        var json = JSONWriter()

        mutating func expect<M: WireMessage>(_ message: M, _ location: SourceLocation = #_sourceLocation) {
            #expect(binary.bytes == message.protobuf(), sourceLocation: location)
            #expect(throws: Never.self, sourceLocation: location) {
                let parsed = try M(json: json.bytes)
                #expect(parsed.protobuf() == message.protobuf(), sourceLocation: location)
            }
            binary = ProtobufWriter()
            json = JSONWriter()
        }
    }
}
