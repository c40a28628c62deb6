import Foundation
import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthBundle

struct BuilderConformanceTests {
    @Test func everyCaseIsBuiltOrRefused() throws {
        let cases = try TestData.cases("build.json")
        #expect(cases.count == 15)
        for test in cases {
            let name = test["name"] as? String ?? ""
            var builder = try BundleBuilder(id: test["id"] as? String ?? "")
            if let message = test["error"] as? String {
                let error = #expect(throws: Status.self) { try add(test, to: &builder) }
                #expect(error?.message.contains(message) == true, "\(name)")
                continue
            }
            try add(test, to: &builder)
            let bytes = try builder.build()
            #expect(try builder.build() == bytes, "\(name)")
            var framing = BundleFraming()
            framing.feed(bytes)
            framing.finish()
            var elements: [NSDictionary] = []
            while let frame = try framing.next() {
                let json = Data(framing.buffer[frame.json])
                elements.append(try #require(JSONSerialization.jsonObject(with: json) as? NSDictionary))
            }
            let expected = try #require(test["elements"] as? [NSDictionary])
            // Members and times are written like those of the vectors, so that even the byte totals agree.
            #expect(elements == expected, "\(name)")
            #expect(Reading(bytes).failure == nil, "\(name)")
        }
    }

    @Test func theWorkedExampleIsBuiltByteForByte() throws {
        let test = try #require(try TestData.cases("build.json").first)
        var builder = try BundleBuilder(id: test["id"] as? String ?? "")
        try add(test, to: &builder)
        #expect(try builder.build() == TestData.bytes("example.bundle"))
        let summary = try builder.summary()
        #expect(summary.sizeBytes == 1769)
        #expect(summary.metadata.totalBytes == 1650)
    }

    private func add(_ test: [String: Any], to builder: inout BundleBuilder<BundleMemorySpool>) throws {
        for member in test["adds"] as? [[String: Any]] ?? [] {
            if let document = member["document"] as? [String: Any] {
                try add(document, query: nil, to: &builder)
            } else {
                let query = try #require(member["query"] as? [String: Any])
                let name = try #require(query["name"] as? String)
                try builder.add(
                    query: name, parent: try ResourceName(parent: query["parent"] as? String ?? ""),
                    try StructuredQueryMessage(json: TestData.json(query["structuredQuery"] ?? [:])),
                    limitType: query["limitType"] as? String == "LAST" ? .last : .first,
                    readTime: try time(query["readTime"]))
                for document in query["documents"] as? [[String: Any]] ?? [] {
                    try add(document, query: name, to: &builder)
                }
            }
        }
    }

    private func add(
        _ snapshot: [String: Any], query: String?, to builder: inout BundleBuilder<BundleMemorySpool>
    ) throws {
        let readTime = try time(snapshot["readTime"])
        guard snapshot["exists"] as? Bool == true else {
            return try builder.add(missing: snapshot["name"] as? String ?? "", readTime: readTime, query: query)
        }
        let members = snapshot.filter { $0.key != "exists" && $0.key != "readTime" }
        let message = try DocumentMessage(json: TestData.json(members))
        try builder.add(EncodedDocument(message), readTime: readTime, query: query)
    }

    private func time(_ string: Any?) throws -> TimestampMessage {
        let instant = try #require(RFC3339.parse(string as? String ?? ""))
        return TimestampMessage(seconds: instant.seconds, nanos: instant.nanoseconds)
    }
}

@Suite struct BuilderTests {
    static func document(_ path: String, _ fields: MapValue = MapValue()) -> EncodedDocument {
        EncodedDocument(
            name: "\(TestData.root)/\(path)", fields: FieldsCodec.encode(fields),
            createTime: Timestamp(microseconds: 1), updateTime: Timestamp(microseconds: 2_000_003))
    }

    static let now = TimestampMessage(seconds: 100, nanos: 1)

    /// Names are identified by their bytes. Swift's `String` compares by canonical equivalence.
    @Test func theTwoSpellingsOfALetterAreTwoNames() throws {
        let spellings = ["\u{e9}", "e\u{301}"]
        var builder = try BundleBuilder(id: "x")
        for (number, spelling) in spellings.enumerated() {
            let query = try StructuredQueryMessage(json: Array(#"{"from": [{"collectionId": "c"}]}"#.utf8))
            try builder.add(
                query: spelling, parent: try ResourceName(parent: TestData.root), query, readTime: Self.now)
            let fields = MapValue([.init(name: "n", value: .integer(Int64(number)))])
            try builder.add(Self.document("c/\(spelling)", fields), readTime: Self.now, query: spelling)
        }
        #expect(builder.documentCount == 2)
        let reading = Reading(try builder.build())
        #expect(reading.failure == nil && reading.documents.count == 2)
        #expect(reading.documents.allSatisfy { !$0.isRepeated })
        #expect(reading.documents.map { Array($0.queries[0].utf8) } == spellings.map { Array($0.utf8) })
    }

    @Test func emptyMapsAndArraysAreWrittenWithTheirMember() throws {
        var builder = try BundleBuilder(id: "x")
        let fields = MapValue([
            .init(name: "a", value: .array([])), .init(name: "m", value: .map(MapValue())),
        ])
        try builder.add(Self.document("c/d", fields), readTime: Self.now)
        try builder.add(Self.document("c/e"), readTime: Self.now)
        let string = String(decoding: try builder.build(), as: UTF8.self)
        #expect(string.contains(#""a":{"arrayValue":{"values":[]}},"m":{"mapValue":{"fields":{}}}"#))
        #expect(string.contains(#"/c/e","fields":{},"#))
    }

    @Test func unloadableContentIsRejected() throws {
        var builder = try BundleBuilder(id: "x")
        let parent = try ResourceName(parent: TestData.root)
        let from = StructuredQueryMessage.CollectionSelector(collectionId: "c")
        for query in [
            StructuredQueryMessage(), StructuredQueryMessage(from: [from], offset: 1),
            StructuredQueryMessage(select: .init(), from: [from]), StructuredQueryMessage(from: [from, from]),
            StructuredQueryMessage(from: [from], findNearest: .init()),
        ] {
            #expect(throws: Status.self) {
                try builder.add(query: "q", parent: parent, query, readTime: Self.now)
            }
        }
        let other = MapValue([.init(name: "r", value: .reference("projects/o/databases/(default)/documents/a/b"))])
        #expect(throws: Status.self) { try builder.add(Self.document("c/d", other), readTime: Self.now) }
        #expect(throws: Status.self) { try BundleBuilder(id: "") }
        #expect(builder.documentCount == 0)
        try builder.add(query: "q", parent: parent, StructuredQueryMessage(from: [from]), readTime: Self.now)
        let foreign = "projects/o/databases/(default)/documents/a/b"
        #expect(throws: Status.self) { try builder.add(missing: foreign, readTime: Self.now) }
        #expect(Reading(try builder.build()).failure == nil)
    }

    /// For any order of additions, the bundle contains the newest version of each document.
    @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64])
    func randomBundlesReadBackAsTheyWereBuilt(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var builder = try BundleBuilder(id: "seed-\(seed)")
        var expected: [String: (time: Int32, number: Int64?)] = [:]
        var order: [String] = []
        for step in 0..<200 {
            let path = "c/\(Int.random(in: 0..<40, using: &random))"
            let nanos = Int32.random(in: 0..<50, using: &random) * 1000
            let readTime = TimestampMessage(seconds: 100, nanos: nanos)
            let exists = Bool.random(using: &random)
            if exists {
                let fields = MapValue([.init(name: "n", value: .integer(Int64(step)))])
                try builder.add(Self.document(path, fields), readTime: readTime)
            } else {
                try builder.add(missing: "\(TestData.root)/\(path)", readTime: readTime)
            }
            if expected[path] == nil { order.append(path) }
            if let known = expected[path], known.time >= nanos { continue }
            expected[path] = (nanos, exists ? Int64(step) : nil)
        }
        let bytes = try builder.build()
        let cuts = (0..<20).map { _ in Int.random(in: 0...bytes.count, using: &random) }.sorted()
        let reading = Reading(bytes, cuts: cuts)
        #expect(reading.failure == nil, "seed \(seed)")
        #expect(reading.documents.map(\.name.path.string) == order, "seed \(seed)")
        for document in reading.documents {
            let state = try #require(expected[document.name.path.string])
            #expect(document.contents?.fields["n"] == state.number.map { .integer($0) }, "seed \(seed)")
        }
        #expect(reading.reader.bytesRead == reading.reader.metadata?.totalBytes)
    }
}
